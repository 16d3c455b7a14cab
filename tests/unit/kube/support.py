"""What the tests of the runtime share: a misbehaving server with a client, background work, log capture."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import looptime

from interlace.kube.client import Client
from tests.unit.kube.server import Server

PODS = "api/v1/pods"
LEASES = "apis/coordination.k8s.io/v1/leases"
EVENTS = "api/v1/events"


@asynccontextmanager
async def cluster(*, qps: float = 0, burst: int = 100, **server: Any) -> AsyncIterator[tuple[Server, Client]]:
    """A server and a client of it."""
    async with Server(**server) as there, Client(there.config, user_agent="test", qps=qps, burst=burst) as client:
        yield there, client


@asynccontextmanager
async def running(*work: Coroutine[Any, Any, None]) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Run coroutines beside the body and cancel them at its end; their errors are raised."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each) for each in work]
        yield tasks
        for task in tasks:
            task.cancel()


async def wait_for(task: asyncio.Task[None], *, within: float = 10.0) -> None:
    """Wait until a task has ended in whatever way; ``AssertionError`` if it does not."""
    done, _ = await asyncio.wait([task], timeout=within)
    assert done, f"{task} still runs after {within} s"


def now() -> float:
    """The loop's time."""
    return asyncio.get_running_loop().time()


class VirtualLoop(looptime.LoopTimeEventLoop, asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer as soon as nothing else happens."""


def run_virtual(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario in virtual time, for tests that are not coroutines themselves."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(scenario())
