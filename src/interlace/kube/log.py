"""Log set-up of a process: one line an event on stderr, JSON in a cluster, coloured text on a terminal.

Invariant: stdout stays free for answers; the standard library's loggers (aiohttp, grpclib,
asyncio) end in the same stream and format. This is the one place that sets process-wide state.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Any

import msgspec
import structlog

LEVELS = ("debug", "info", "warning", "error")


def configure(level: str = "info", *, json: bool) -> None:
    """Set up structlog and ``logging``; ``level`` is one of ``LEVELS``, else ``ValueError``."""
    if level not in LEVELS:
        raise ValueError(f"log level {level!r} is not one of {', '.join(LEVELS)}")
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if json:
        shared += [structlog.processors.format_exc_info, _render]
    else:
        colors = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        shared += [structlog.dev.ConsoleRenderer(colors=colors)]
    structlog.configure(
        processors=shared,
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers = [_Bridge()]
    # Libraries are chatty at info and below; what they warn of concerns us.
    root.setLevel(logging.DEBUG if level == "debug" else logging.WARNING)


class _Bridge(logging.Handler):
    """Hands records of the standard library on to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            structlog.get_logger().log(
                min(record.levelno, logging.ERROR), record.getMessage(), logger=record.name, exc_info=record.exc_info
            )
        except Exception:  # noqa: BLE001 - logging must not fail its caller; the standard handler reports it
            self.handleError(record)


def _render(logger: Any, name: str, event: dict[str, Any]) -> str:  # noqa: ARG001 - structlog's signature
    """A JSON line: time, level and event first."""
    ordered = {key: event.pop(key) for key in ("timestamp", "level", "event") if key in event}
    return msgspec.json.encode(ordered | event, enc_hook=str).decode()
