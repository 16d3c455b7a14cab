"""A server that takes requests and never answers: reading ends in its time, or when it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from interlace.cli import gke_live
from interlace.cli.exits import Code, Exit
from interlace.cli.gke_live import Kubeconfig, read_live
from interlace.gke.observed.gathering import Target

TARGETS = (Target(project="my-project", location="us-central1-a"),)


@asynccontextmanager
async def silent() -> AsyncIterator[tuple[str, asyncio.Event]]:
    """Its URL, and what is set when the first request has come."""
    came, over = asyncio.Event(), asyncio.Event()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.set()
        await over.wait()
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", came
    finally:
        over.set()
        server.close()
        await server.wait_closed()


async def test_reading_ends_in_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gke_live, "LONGEST", 0.2)
    async with silent() as (url, _):
        with pytest.raises(Exit) as ended:
            await read_live(TARGETS, endpoint=url, kubeconfig=Kubeconfig())
    assert ended.value.code is Code.UNKNOWN
    assert "project my-project could not be read within" in ended.value.message


async def test_reading_ends_when_it_is_cancelled() -> None:
    async with silent() as (url, came), asyncio.TaskGroup() as group:
        reading = group.create_task(read_live(TARGETS, endpoint=url, kubeconfig=Kubeconfig()))
        await came.wait()
        reading.cancel()
    assert reading.cancelled()
