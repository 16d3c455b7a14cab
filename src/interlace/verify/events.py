"""What a log says beside its tables: lines of NCCL, of the launcher, of daemons, for whoever looks for a cause.

Invariant: the number of events is bounded whatever the log's size: of lines that differ in numbers alone only the
first ``EACH`` are handed on, and after ``MOST`` events only warnings are.
"""

from __future__ import annotations

import msgspec

EACH = 2048
"""Events of one shape (a text without its digits); enough to see every rank of a large job once."""
MOST = 50_000
"""Events of a log that are no warnings; as many warnings again."""


class LogEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One line that is no part of a table."""

    line: int
    """Number in its source, from 1."""
    level: str
    """``INFO``, ``WARN``, ``TRACE`` and so on of NCCL; ``TEST``: a failure of nccl-tests; ``""``: all else."""
    text: str
    """Without launcher prefix, time and NCCL's own prefix."""
    rank: int | None = None
    """From the launcher's tag or the table of ranks."""
    host: str | None = None
    pid: int | None = None
    device: int | None = None
    """CUDA device that NCCL's prefix names."""
    where: str | None = None
    """File and line of NCCL's source, where a warning names them: ``transport/nvls.cc:158``."""
    time: str | None = None
    """As the log gives it."""
    source: str = "-"
    """Name of the file."""
