"""How long the command takes to start: ``python -m bench.cli``.

Wall time from starting the installed ``interlace`` until it has ended, with its output thrown away. Prints the
median of 20 starts beside the budget and stores the times.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from bench.figures import Figure, table, verdict

RESULT = Path(__file__).parent / "results" / "cli.json"
BUDGET = 100.0
"""Milliseconds."""
STARTS = 20
_LIMIT = 30.0

CASES: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "interlace --help": (("--help",), {}),
    "interlace --version": (("--version",), {}),
    "interlace completion bash": (("completion", "bash"), {}),
    "Tab after `interlace `": (
        (),
        {"_INTERLACE_COMPLETE": "bash_complete", "COMP_WORDS": "interlace ", "COMP_CWORD": "1"},
    ),
}
"""What is started: arguments and environment."""


class Starts(msgspec.Struct, kw_only=True):
    """Result file."""

    python: str
    cores: int
    load_before: float
    milliseconds: dict[str, list[float]]


def measure_start(arguments: tuple[str, ...], environment: dict[str, str]) -> float:
    """Milliseconds of one start. Raises CalledProcessError if the command fails or takes longer than 30 s."""
    command = [str(Path(sys.executable).with_name("interlace")), *arguments]
    begin = time.perf_counter()
    process = subprocess.Popen(
        command,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    # Waiting with a time limit would look every 50 ms only.
    ended = os.pidfd_open(process.pid)
    try:
        select.select([ended], [], [], _LIMIT)
        taken = time.perf_counter() - begin
    finally:
        os.close(ended)
        process.kill()
    if process.wait() != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return taken * 1000


def measure() -> Starts:
    """All cases in turn, so that a busy moment of the machine strikes them alike; the first round is left out."""
    times: dict[str, list[float]] = {name: [] for name in CASES}
    load = os.getloadavg()[0]
    for turn in range(STARTS + 1):
        for name, (arguments, environment) in CASES.items():
            taken = measure_start(arguments, environment)
            if turn:
                times[name].append(round(taken, 1))
    return Starts(
        python=sys.version.split()[0], cores=os.cpu_count() or 1, load_before=round(load, 2), milliseconds=times
    )


def render(starts: Starts) -> str:
    """A table of the starts beside the budget."""
    rows = []
    for name, times in starts.milliseconds.items():
        figure = Figure.of(times)
        rows.append([name, figure.text(), f"{BUDGET:.0f}", verdict(figure, BUDGET)])
    return table(["start of", "milliseconds, median (range)", "budget", ""], rows)


def main() -> int:
    """Exit code 0 if every budget is met, else 1."""
    starts = measure()
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_bytes(msgspec.json.format(msgspec.json.encode(starts), indent=1) + b"\n")
    print(render(starts))
    return 1 if any(Figure.of(times).median > BUDGET for times in starts.milliseconds.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
