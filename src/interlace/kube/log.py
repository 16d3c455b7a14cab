"""Logging with fields, on the standard library: one line an event on stderr, JSON in a cluster, text on a terminal.

``log.info("claim done", claim=name)`` keeps the event constant and the values searchable. Invariant:
stdout stays free for answers; the loggers of libraries (aiohttp, grpclib, asyncio) end in the same
stream and format. ``configure`` is the one place that sets process-wide state.

Its own, since an agent idles on every node: the usual package for this takes 4 MB of each process.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

LEVELS: Final = ("debug", "info", "warning", "error")
_ROOT: Final = "interlace"
_COLORS: Final = {"DEBUG": "\x1b[2m", "WARNING": "\x1b[33m", "ERROR": "\x1b[31m"}
_RESET: Final = "\x1b[0m"


class Log:
    """Writes events with fields; a field may have any name and value, values JSON does not know become text."""

    __slots__ = ("_fields", "_logger")

    def __init__(self, logger: logging.Logger, fields: Mapping[str, Any]) -> None:
        self._logger = logger
        self._fields = fields

    def bind(self, /, **fields: Any) -> Log:
        """A logger whose events have these fields too."""
        return Log(self._logger, {**self._fields, **fields})

    def debug(self, event: str, /, **fields: Any) -> None:
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, /, **fields: Any) -> None:
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, /, **fields: Any) -> None:
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, /, *, exc_info: BaseException | None = None, **fields: Any) -> None:
        """``exc_info`` adds the traceback of an exception."""
        self._write(logging.ERROR, event, fields, exc_info)

    def exception(self, event: str, /, **fields: Any) -> None:
        """An error with the traceback of the exception that is being handled."""
        self._write(logging.ERROR, event, fields, sys.exception())

    def _write(self, level: int, event: str, fields: Mapping[str, Any], error: BaseException | None = None) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, event, exc_info=error, extra={"fields": {**self._fields, **fields}})


def get_logger(name: str) -> Log:
    """The logger of a module (``__name__``), or of a part that is named otherwise."""
    return Log(logging.getLogger(name if name.startswith(f"{_ROOT}.") else f"{_ROOT}.{name}"), {})


def configure(level: str = "info", *, json: bool) -> None:
    """Set up ``logging``; ``level`` is one of ``LEVELS``, else ``ValueError``."""
    if level not in LEVELS:
        raise ValueError(f"log level {level!r} is not one of {', '.join(LEVELS)}")
    number = logging.getLevelNamesMapping()[level.upper()]
    handler = logging.StreamHandler(sys.stderr)
    colors = not json and sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    handler.setFormatter(_Json() if json else _Text(colors=colors))
    root = logging.getLogger()
    root.handlers = [handler]
    # Libraries are chatty at info and below; what they warn of concerns us.
    root.setLevel(max(number, logging.WARNING) if number > logging.DEBUG else number)
    logging.getLogger(_ROOT).setLevel(number)


def _details(record: logging.LogRecord, formatter: logging.Formatter) -> tuple[str, dict[str, Any], str]:
    """Time, fields and traceback of a record; a library's has no fields."""
    time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    trace = formatter.formatException(record.exc_info) if record.exc_info and record.exc_info[0] else ""
    return time, getattr(record, "fields", {}), trace


class _Json(logging.Formatter):
    """A JSON object a line: time, level, logger and event first."""

    def format(self, record: logging.LogRecord) -> str:
        time, fields, trace = _details(record, self)
        line = {
            "timestamp": time,
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        # The second time so that no field replaces what every line has.
        line = line | fields | line | ({"exception": trace} if trace else {})
        return msgspec.json.encode(line, enc_hook=str).decode()


class _Text(logging.Formatter):
    """Time, level, event and ``key=value``; a traceback on lines of its own."""

    def __init__(self, *, colors: bool) -> None:
        super().__init__()
        self._colors = _COLORS if colors else {}

    def format(self, record: logging.LogRecord) -> str:
        time, fields, trace = _details(record, self)
        color = self._colors.get(record.levelname, "")
        level = f"{color}{record.levelname.lower():7}{_RESET if color else ''}"
        words = [time, level, record.getMessage(), *(f"{key}={_word(value)}" for key, value in fields.items())]
        return " ".join(words) + (f"\n{trace}" if trace else "")


def _word(value: Any) -> str:
    """A value on one line, quoted where it would not be one word."""
    text = value if isinstance(value, str) else str(value)
    return text if text.isprintable() and text and not any(sign in text for sign in ' ="') else repr(text)
