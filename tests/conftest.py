"""Fixtures for all tiers, and the rule that a tier without tests is a failure."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_asyncio import is_async_test

from tests.planes import PLANES, embedded_plane, plane, real_plane

__all__ = ["embedded_plane", "plane", "real_plane"]


def pytest_configure() -> None:
    """Begin from a known state of the process, whoever started it."""
    # Before Python 3.12 asking for the loop makes one; pytest-asyncio asks, and would never close it.
    asyncio.set_event_loop(None)
    # Tests send signals to programs; what nohup or a background job ignores would be ignored there too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """A program under test sets up logging for its process; the next test must not inherit that."""
    loggers = [logging.getLogger(), logging.getLogger("interlace")]
    before = [(logger.level, list(logger.handlers)) for logger in loggers]
    yield
    for logger, (level, handlers) in zip(loggers, before, strict=True):
        logger.setLevel(level)
        logger.handlers = handlers


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put tests into the event loop of their plane; refuse a folder that was asked for and holds no test."""
    for item in items:
        if is_async_test(item) and PLANES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)
    if config.getoption("lf", default=False):
        return  # where nothing failed, nothing is wanted
    for argument in config.args:
        folder = (config.invocation_params.dir / argument).resolve()
        if folder.is_dir() and not any(folder in item.path.resolve().parents for item in items):
            raise pytest.UsageError(f"{Path(argument)} holds no test; a tier whose parts are missing fails")
