"""On a terminal: the question, the bars, and what an answer does."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.unit.gke.engine.ground import Ground, ground


class Told(NamedTuple):
    code: int
    out: str
    shown: str


def _talk(bed: Ground, *arguments: str, answer: str) -> Told:
    """Run a verb whose stdin and stderr are a terminal, and answer its question."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm", "COLUMNS": "160"}
    process = subprocess.Popen(
        [sys.executable, "-m", "interlace.cli.main", *bed.arguments(*arguments)],
        stdin=theirs,
        stderr=theirs,
        stdout=subprocess.PIPE,
        text=True,
        env=env,
    )
    os.close(theirs)
    shown: list[bytes] = []

    def read() -> None:
        asked = False
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux: nobody has the other end open any more
                return
            if not piece:
                return
            shown.append(piece)
            if not asked and b"[y/N]" in b"".join(shown):
                asked = True
                os.write(ours, answer.encode())

    reader = threading.Thread(target=read)
    reader.start()
    with process:
        out, _ = process.communicate(timeout=100)
    reader.join(30)
    os.close(ours)
    return Told(process.returncode, out, b"".join(shown).decode(errors="replace"))


def test_yes_does_it_with_bars(tmp_path: Path) -> None:
    with ground(tmp_path, seconds=0.3) as bed:
        told = _talk(bed, "apply", answer="y\n")
        assert told.code == 0, told.shown
        assert "16 to create" in told.shown
        assert "Do this? [y/N]" in told.shown
        assert "of 16 done" in told.shown
        assert "left (an estimate)" in told.shown
        assert "interlace: create" not in told.shown
        assert "(simulated): 16 done" in told.out
        gone = _talk(bed, "destroy", answer="y\n")
        assert gone.code == 0, gone.shown
        assert "- network/high-net-1" in gone.shown
        assert bed.made() == []


@pytest.mark.parametrize(("answer", "code"), [("n\n", 2), ("\x04", 130)])
def test_anything_else_does_nothing(tmp_path: Path, answer: str, code: int) -> None:
    with ground(tmp_path) as bed:
        told = _talk(bed, "apply", answer=answer)
        assert told.code == code, told.shown
        assert bed.mutations() == []
