"""Verdicts on tables that were published, and on a run that was healthy."""

from __future__ import annotations

import json

import pytest

from interlace.verify import statement
from tests.unit.verify.recorded import DATA, failed, published, recorded
from tests.unit.verify.scenes import HEALTHY, judged, said, seen, table, with_lines


def test_the_published_tcpxo_table_fails_for_a3_mega() -> None:
    judgement = judged(published("nccl-tcpxo"), family="a3-mega")
    assert judgement.verdict == "fail"
    assert "122.1 GB/s at 1 GiB, 61% of the bound of 200 GB/s" in judgement.cause
    assert "the time is flat from 1 MiB to 512 MiB" in judgement.cause
    assert "tuner" in judgement.remedy
    assert any(each.kind == "latency" and "4.65 ms" in each.text for each in judgement.evidence)
    assert any("56.3 and 43 GB/s" in each.text for each in judgement.evidence)
    assert judgement.nodes == 2


def test_the_published_tcpx_table_passes_for_a3_high_at_512_mib() -> None:
    judgement = judged(published("nccl-tcpx"), family="a3-high")
    assert judgement.verdict == "pass"
    assert "70.87 GB/s at 512 MiB, 71% of the bound of 100 GB/s" in judgement.cause
    assert judgement.assessments[0].shapes == ()
    assert any(each.startswith("which transport carried the data") for each in judgement.not_tested)


def test_the_tcpxo_table_with_a_wrong_digit_is_no_measurement() -> None:
    lines = published("nccl-tcpxo")
    assert sum("122.14" in each for each in lines) == 1
    judgement = judged([each.replace("122.14", "112.14") for each in lines], family="a3-mega")
    assert judgement.verdict == "cannot tell"
    assert "1073741824" in judgement.cause


@pytest.mark.parametrize("family", ["a3-ultra", "gb200-nvl72", "a3-mega", None])
@pytest.mark.parametrize("name", sorted(path.name for path in (DATA / "nccl-logs").glob("*.log")))
def test_a_healthy_run_over_nvlink_is_blamed_for_nothing(name: str, family: str | None) -> None:
    judgement = judged(recorded(name), family=family)
    assert judgement.verdict == "cannot tell"
    assert (judgement.causes, judgement.noted) == ((), ())
    assert judgement.nodes == 1
    assert "the network between nodes: all ranks ran on one node" in judgement.not_tested


def test_the_healthy_log_holds_lines_that_would_be_faults_elsewhere() -> None:
    text = "\n".join(recorded("all_gather_info.log"))
    for harmless in ("Could not find: libnccl-net.so", "NET/IB : No device found", "Using network Socket", "MNNVL 0"):
        assert harmless in text


def test_the_same_lines_between_nodes_are_a_fault() -> None:
    plugin = [each for each in recorded("all_gather_info.log") if "Could not find: libnccl-net.so" in each]
    judgement = judged(with_lines(table(HEALTHY), [*said(network="Socket", channels=False), *plugin]))
    assert judgement.verdict == "fail"
    assert judgement.causes[0].signature.id == "plugin-not-found"
    assert [each.signature.id for each in judgement.causes[0].consequences] == ["socket-fallback"]


def test_the_secret_of_a_recorded_environment_is_in_no_answer() -> None:
    document = json.dumps(statement.document(judged(recorded("ag.json"))))
    assert "EXAMPLE_SERVICE_TOKEN" in "\n".join(recorded("ag.json"))
    assert "TOKEN" not in document
    assert "must-never-be-stored" not in document
    assert '"all_gather"' in document


@pytest.mark.parametrize(
    ("name", "first", "consequences"),
    [
        ("gpu-twice", "gpu-twice", {"init-incomplete"}),
        ("no-interface", "bootstrap-interface", set()),
        ("no-plugin", "no-net-plugin", set()),
        ("damaged-topology", "topology-file", {"init-incomplete"}),
        ("peer-killed", "peer-closed", set()),
    ],
)
def test_a_start_that_failed_is_judged_by_its_first_cause(name: str, first: str, consequences: set[str]) -> None:
    judgement = judged(failed(name), family="a3-ultra")
    assert judgement.verdict == "fail"
    assert judgement.causes[0].signature.id == first
    assert {each.signature.id for each in judgement.causes[0].consequences} == consequences
    assert "unknown-warning" not in seen(judgement)


def test_sockets_that_ended_nothing_stand_behind_what_did() -> None:
    causes = [each.signature.id for each in judged(failed("peer-killed"), family="a3-ultra").causes]
    assert causes == ["peer-closed", "plugin-not-found"]
    assert judged(failed("peer-killed"), family="a3-ultra").transport == "Socket"
