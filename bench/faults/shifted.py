"""A component whose wall clock can be moved while it runs: ``python -m bench.faults.shifted SPEC``.

What Python code asks for the time (``time.time``, ``datetime.now``) is moved by the seconds in the file
``etc/clock-offset`` below the machine's root; the monotonic clock is not, as on a real machine. Processes that the
component starts keep the machine's time.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
import time
from pathlib import Path
from typing import Final, Self

OFFSET_FILE: Final = "etc/clock-offset"
_real_time: Final = time.time


def read_offset(path: Path) -> float:
    """Seconds, 0 while the file says nothing."""
    try:
        return float(path.read_text())
    except (OSError, ValueError):
        return 0.0


def shift(path: Path) -> None:
    """From now on the clocks of this process follow the file; modules that were imported earlier keep theirs."""
    real = dt.datetime

    class Shifted(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Self:
            return real.now(tz) + dt.timedelta(seconds=read_offset(path))  # type: ignore[return-value]

    time.time = lambda: _real_time() + read_offset(path)
    dt.datetime = Shifted  # type: ignore[misc]


def main() -> None:
    """Entry point."""
    spec = json.loads(Path(sys.argv[1]).read_bytes())
    shift(Path(spec["root"]) / OFFSET_FILE)
    from interlace.sim.kubelet import child  # noqa: PLC0415  its modules must see the moved clock

    child.main()


if __name__ == "__main__":
    main()
