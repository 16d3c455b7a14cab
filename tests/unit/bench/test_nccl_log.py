"""The logs that the reading of logs is measured with are what they say."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path

import pytest

from bench import nccl_log
from interlace.verify.events import LogEvent
from interlace.verify.reader import read_text


def test_the_measured_log_holds_a_run_and_what_its_ranks_say() -> None:
    events: list[LogEvent] = []
    text = "\n".join([*nccl_log.lines(lambda rank: f"[1,{rank}]<stdout>:", random.Random(1), ranks=16), ""])
    (run,) = read_text(text, events=events.append)
    assert (run.collective, run.ranks, len(run.rows), run.transport) == ("all_gather", 1024, 14, "FasTrak")
    assert run.warnings == ()
    assert {event.rank for event in events} == set(range(16))


def test_a_training_log_holds_no_run() -> None:
    assert read_text("\n".join([*islice(nccl_log.training(), 500), ""])) == []


def test_a_log_is_as_large_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nccl_log, "SIZE", 5000)
    nccl_log.write(iter(["x" * 99] * 80), tmp_path / "x.log")
    assert (tmp_path / "x.log").stat().st_size == 5000


def test_figures_stand_beside_their_budgets() -> None:
    times = {name: [1.5, 1.6, 2.5] for name in nccl_log.LOGS}
    found = nccl_log.Readings(python="3", cores=2, load_before=0.0, wall=times, cpu=times, memory=times)
    shown = nccl_log.render(found)
    assert shown.count("1.60 (1.50–2.50)") == 2 * len(nccl_log.LOGS)
    assert "missed" not in shown
