"""The bandwidth model: its logs are read and judged like those of hardware."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlace.fabric.family import Family, families, find
from interlace.sim.measure.bandwidth import Faults, Model, Question
from interlace.sim.measure.printing import LABEL, log
from interlace.verify.events import LogEvent
from interlace.verify.judgement import Judgement, judge
from interlace.verify.reader import read
from interlace.verify.run import Run
from interlace.verify.sweep import COLLECTIVES

GKE = [family.id for family in families() if family.node.gke]
PAIR = ("tray-00", "tray-01")


def _question(family: Family, **changes: object) -> Question:
    collective = "all_reduce" if family.node.mnnvl else "all_gather"
    return Question(**({"nodes": PAIR, "collective": collective} | changes))  # type: ignore[arg-type]


def _read(family: Family, question: Question, **faults: object) -> tuple[list[Run], list[LogEvent], str]:
    model = Model(family=family, faults=Faults(**faults))  # type: ignore[arg-type]
    text, events = log(family, question, model.answer(question)), list[LogEvent]()
    return list(read([text.encode()], source="pod", events=events.append, begun=True)), events, text


def _judged(family: Family, **faults: object) -> Judgement:
    runs, events, _ = _read(family, _question(family), **faults)
    return judge(runs, events, family=family)


@pytest.mark.parametrize("id_", GKE)
def test_a_healthy_fabric_passes_and_is_labelled_simulated(id_: str) -> None:
    family = find(id_)
    runs, events, text = _read(family, _question(family))
    assert text.startswith(LABEL)
    assert "simulated" in (runs[0].program or "")
    assert runs[0].ranks == 2 * family.node.gpus
    assert runs[0].warnings == ()
    assert judge(runs, events, family=family).verdict == "pass"


@pytest.mark.parametrize("id_", GKE)
def test_a_node_at_half_its_speed_fails(id_: str) -> None:
    assert _judged(find(id_), slow_nodes={"tray-01": 0.5}).verdict == "fail"


@pytest.mark.parametrize("id_", GKE)
def test_a_link_at_half_its_speed_fails_whichever_end_is_named_first(id_: str) -> None:
    assert _judged(find(id_), slow_links={("tray-01", "tray-00"): 0.5}).verdict == "fail"


@pytest.mark.parametrize("id_", GKE)
def test_the_fall_back_to_sockets_is_recognised(id_: str) -> None:
    found = _judged(find(id_), sockets=frozenset({"tray-00"}))
    assert (found.verdict, found.transport) == ("fail", "Socket")
    assert "sockets" in found.cause


@pytest.mark.parametrize("id_", ["a3-high", "a3-mega", "a3-ultra", "a4"])
def test_missing_nics_cost_their_share_and_are_counted(id_: str) -> None:
    found = _judged(find(id_), missing_nics={"tray-00": 2})
    assert found.verdict in {"degraded", "fail"}
    assert f"{find(id_).node.nics - 2} of {find(id_).node.nics} NICs" in found.cause


@pytest.mark.parametrize("id_", GKE)
def test_wrong_data_fail_whatever_the_bandwidth(id_: str) -> None:
    found = _judged(find(id_), wrong_data=frozenset({"tray-00"}))
    assert found.verdict == "fail"
    assert "wrong" in found.cause


def test_a_broken_node_prints_no_table() -> None:
    runs, _, text = _read(find("a3-mega"), _question(find("a3-mega")), broken=frozenset({"tray-01"}))
    assert runs == []
    assert "tray-01 does not answer on port 222" in text


def test_faults_of_other_nodes_change_nothing() -> None:
    family = find("a3-mega")
    faults = Faults(slow_nodes={"x": 0.1}, slow_links={("x", "tray-00"): 0.1}, sockets=frozenset({"x"}))
    question = _question(family)
    assert Model(family=family, faults=faults).answer(question) == Model(family=family).answer(question)


def test_a_slow_rail_is_slow_by_itself_and_in_the_whole() -> None:
    family = find("a3-mega")
    model = Model(family=family, noise=0.0, faults=Faults(slow_rails={("tray-00", 3): 0.5}))

    def slowest(rail: int | None) -> float:
        return model.answer(_question(family, rail=rail)).rows[-1].times[0]

    assert slowest(3) > 1.8 * slowest(2)
    assert slowest(None) > 1.8 * Model(family=family, noise=0.0).answer(_question(family)).rows[-1].times[0]


def test_the_same_question_has_the_same_answer_and_the_next_attempt_another_one() -> None:
    family = find("a4")
    model = Model(family=family)
    assert model.answer(_question(family)) == model.answer(_question(family))
    assert model.answer(_question(family)) != model.answer(_question(family, attempt=1))


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(GKE), st.sampled_from(COLLECTIVES), st.integers(2, 5), st.integers(10, 24), st.integers(0, 8))
def test_whatever_is_asked_reads_back_without_a_doubt(id_: str, name: str, nodes: int, least: int, more: int) -> None:
    family = find(id_)
    question = Question(
        nodes=tuple(f"tray-{number:02d}" for number in range(nodes)),
        collective=name,
        least=1 << least,
        most=1 << (least + more),
    )
    runs, _, _ = _read(family, question)
    assert len(runs) == 1
    assert (runs[0].collective, runs[0].ranks, runs[0].nodes) == (name, nodes * family.node.gpus, nodes)
    assert len(runs[0].rows) == more + 1
    assert (runs[0].warnings, runs[0].partial_rows) == ((), 0)
