"""The command itself, ended from outside: SIGKILL leaves work for the next run, Ctrl-C says what goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from interlace.sim.gke.server import Entry
from tests.unit.gke.engine.ground import Ground, ground

LIMIT = 100.0


class Hook:
    """Ends a process when the server has come to the POST of a number, of those that make or wait."""

    def __init__(self, at: int, number: signal.Signals) -> None:
        self.at = at
        self.number = number
        self.seen = 0
        self.process = 0

    async def __call__(self, entry: Entry) -> None:
        if self.process and entry.request.method == "POST":
            self.seen += 1
            if self.seen == self.at:
                os.kill(self.process, self.number)
                self.process = 0


def _start(bed: Ground, verb: str) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "interlace.cli.main", *bed.arguments(verb, "--yes")]
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    )


def _ended(bed: Ground, verb: str, moment: str, hook: Hook) -> tuple[int, str]:
    """Exit status and stderr of a verb that the hook ends."""
    setattr(bed.server, moment, hook)
    with _start(bed, verb) as process:
        hook.process = process.pid
        _, errors = process.communicate(timeout=LIMIT)
    setattr(bed.server, moment, None)
    return process.returncode, errors


def _whole(bed: Ground, verb: str) -> tuple[int, str]:
    """Exit status and stderr of a verb, in a process of its own as the one before."""
    with _start(bed, verb) as process:
        _, errors = process.communicate(timeout=LIMIT)
    return process.returncode, errors


@pytest.mark.parametrize(("moment", "at"), [("before", 1), ("after", 3), ("after", 20)])
def test_sigkill_at_a_request_and_run_again(tmp_path: Path, moment: str, at: int) -> None:
    with ground(tmp_path, seconds=0.05) as bed:
        code, _ = _ended(bed, "apply", moment, Hook(at, signal.SIGKILL))
        assert code == -signal.SIGKILL
        code, errors = _whole(bed, "apply")
        assert code == 0, errors
        assert len(bed.made()) >= 16
        assert [line for line, count in Counter(bed.mutations()).items() if count > 1] == []
        assert bed.run("plan", "--exit-code").exit_code == 0


def test_sigkill_while_destroying_and_run_again(tmp_path: Path) -> None:
    with ground(tmp_path, seconds=0.05) as bed:
        assert bed.run("apply", "--yes").exit_code == 0
        code, _ = _ended(bed, "destroy", "before", Hook(2, signal.SIGKILL))
        assert code == -signal.SIGKILL
        code, errors = _whole(bed, "destroy")
        assert code == 0, errors
        assert bed.made() == []
        assert [line for line, count in Counter(bed.mutations()).items() if count > 1] == []


def test_ctrl_c_stops_sending_and_says_what_goes_on(tmp_path: Path) -> None:
    with ground(tmp_path, seconds=1000.0) as bed:
        code, text = _ended(bed, "apply", "after", Hook(3, signal.SIGINT))
        assert code == 130, text
        assert "create network/high-" in text
        assert "goes on at Google" in text
        assert "to go on: interlace gke apply" in text
        assert "Traceback" not in text
        assert len(bed.mutations()) >= 3
        assert all("/global/networks" in line for line in bed.mutations())
        code, text = _ended(bed, "destroy", "before", Hook(1, signal.SIGINT))
        assert code == 130, text
        assert "waiting for what is at work on network/high-" in text
        assert "goes on at Google" in text
        assert "to go on: interlace gke destroy" in text
        assert not any(line.startswith("DELETE") for line in bed.mutations())
