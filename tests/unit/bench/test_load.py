"""Who gets the cores while a bench runs."""

from __future__ import annotations

import os
from pathlib import Path

from bench.domains.load import share_niceness


def test_programs_of_nodes_yield_to_the_control_plane(tmp_path: Path) -> None:
    for pid in (7, 8, 9):
        (tmp_path / str(pid)).mkdir()
    share_niceness([7], proc=tmp_path)
    share_niceness([8], more=10, proc=tmp_path)
    share_niceness([9], more=100, proc=tmp_path)
    found = [int((tmp_path / str(pid) / "autogroup").read_text()) for pid in (7, 8, 9)]
    assert found == [os.nice(0), min(19, os.nice(0) + 10), 19]


def test_a_process_that_has_ended_is_passed_over(tmp_path: Path) -> None:
    share_niceness([4711], proc=tmp_path)
    assert list(tmp_path.iterdir()) == []
