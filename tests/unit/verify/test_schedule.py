"""What is measured next, and what an interruption costs: nothing."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlace.verify.attribution import attribute
from interlace.verify.journal import JournalError, open_journal
from interlace.verify.pairing import match
from interlace.verify.schedule import Plan, Task, missing, next_tasks, rounds
from tests.unit.verify.pairworld import NODES, World

PLAN = Plan(nodes=NODES[:8], noise=0.1)
WORLD = World(slow={"node-05": 0.6, ("node-01", "node-02"): 0.5})


def _play(path: Path, *, resume: bool, most: int = 10_000) -> list[Task]:
    """Measure until nothing is missing, or ``most`` were; what was measured."""
    made: list[Task] = []
    with open_journal(path, plan=PLAN, resume=resume) as journal:
        while len(made) < most and (tasks := missing(PLAN, journal.readings)):
            made.append(tasks[0])
            journal.add(WORLD.measure(tasks[0]))
    return made


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 60))
def test_killed_and_resumed_gives_the_same_answer_and_no_pair_twice(stop: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        whole, broken = Path(folder, "whole"), Path(folder, "broken")
        made = _play(whole, resume=False)
        first = _play(broken, resume=False, most=stop)
        second = _play(broken, resume=True)
        assert Counter(each.key for each in first + second) == Counter(each.key for each in made)
        assert max(Counter(each.key for each in first + second).values()) == 1
        with open_journal(whole, plan=PLAN, resume=True) as one, open_journal(broken, plan=PLAN, resume=True) as two:
            assert attribute(one.readings, noise=0.1) == attribute(two.readings, noise=0.1)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 400))
def test_a_file_cut_anywhere_in_its_last_line_loses_that_line_alone(cut: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "journal")
        _play(path, resume=False, most=5)
        lines = path.read_bytes().splitlines(keepends=True)
        last = lines[-1]
        os.truncate(path, path.stat().st_size - min(cut, len(last)))
        with open_journal(path, plan=PLAN, resume=True) as journal:
            assert len(journal.readings) == 4
            journal.add(WORLD.measure(missing(PLAN, journal.readings)[0]))
        assert path.read_bytes().splitlines(keepends=True) == lines


def test_a_journal_is_not_overwritten_without_resume(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    _play(path, resume=False, most=1)
    with pytest.raises(JournalError, match="--resume"), open_journal(path, plan=PLAN, resume=False):
        pass


def test_a_journal_of_another_plan_is_refused_and_says_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    _play(path, resume=False, most=1)
    other = Plan(nodes=NODES[:9], noise=0.1)
    with pytest.raises(JournalError, match="nodes differ"), open_journal(path, plan=other, resume=True):
        pass


def test_a_journal_in_use_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with (
        open_journal(path, plan=PLAN, resume=False),
        pytest.raises(JournalError, match="another measurement"),
        open_journal(path, plan=PLAN, resume=True),
    ):
        pass


@pytest.mark.parametrize("text", ["hello\n", "hello", '{"journal": "other"}\n', "[]\n", '{"version": 7}\n'])
def test_what_is_no_journal_is_refused_and_kept(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes"
    path.write_text(text)
    with pytest.raises(JournalError, match="no journal"), open_journal(path, plan=PLAN, resume=True):
        pass
    assert path.read_text() == text


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    _play(path, resume=False, most=3)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], lines[1][:-9], *lines[2:]]) + "\n")
    with pytest.raises(JournalError, match="line 2 is damaged"), open_journal(path, plan=PLAN, resume=True):
        pass


def test_suspects_are_measured_again_and_the_others_are_not() -> None:
    readings = [WORLD.measure(Task(match=each)) for step in rounds(PLAN) for each in step]
    again = missing(PLAN, readings)
    assert {each.stage for each in again} == {1}
    assert match("node-01", "node-02") in {each.match for each in again}
    assert len({each.match for each in again}) < len(readings) / 2


def test_no_node_is_in_two_measurements_at_once() -> None:
    tasks = missing(PLAN, [])
    started = next_tasks(tasks, busy={"node-00"}, room=99)
    nodes = [node for each in started for node in each.match.nodes]
    assert "node-00" not in nodes
    assert len(nodes) == len(set(nodes)) == 6
    assert len(next_tasks(tasks, busy=(), room=2)) == 2


def test_quick_schedules_give_suspects_new_partners() -> None:
    plan = Plan(nodes=NODES, quick=1, noise=0.1)
    world = World(slow={"node-05": 0.5}, spread=(0.01, 0.02))
    met = {each.match.partner("node-05") for each in world.readings(plan) if "node-05" in each.match.nodes}
    assert len(met) >= 4
