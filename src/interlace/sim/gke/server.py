"""The simulated cloud over HTTP: one port for all services, told apart by path.

Invariant: every answer says in the header ``x-interlace-simulated`` that it is simulated; after the context manager has
ended there is no open socket and no waiting request left.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from aiohttp import web

from interlace.gke.request import Request
from interlace.sim.gke import routes
from interlace.sim.gke.answers import Answer
from interlace.sim.gke.cloud import Cloud
from interlace.sim.gke.faults import Fault, Faults, Kind
from interlace.sim.gke.operations import Operation
from interlace.sim.gke.preset import furnish
from interlace.sim.gke.store import Store
from interlace.sim.gke.world import QUICK, Durations, World

SIMULATED: Final = "x-interlace-simulated"
_LONGEST_WAIT: Final = 120.0
_LOG: Final = 20_000
_BODY_LIMIT: Final = 4 * 1024 * 1024

Hook = Callable[["Entry"], Awaitable[None]]


@dataclass(slots=True, kw_only=True)
class Entry:
    """One request that came. ``at``: seconds of the clock; ``answer`` None: not answered yet, or dropped before."""

    at: float
    request: Request
    answer: Answer | None = None
    dropped: bool = False

    @property
    def line(self) -> str:
        """``METHOD /path``."""
        return f"{self.request.method} {self.request.path}"

    @property
    def status(self) -> int:
        """HTTP status that the client saw, 0 if it saw none."""
        return 0 if self.answer is None or self.dropped else self.answer.status

    @property
    def mutates(self) -> bool:
        """Whether it asks for a change: no GET, no wait, no question."""
        tail = self.request.path.rpartition("/")[2]
        return self.request.method != "GET" and tail != "wait" and not tail.endswith(":testIamPermissions")


class Log:
    """The newest requests, in the order in which they came."""

    def __init__(self) -> None:
        self.entries: deque[Entry] = deque(maxlen=_LOG)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def mutations(self) -> list[Entry]:
        """Requests for a change, refused ones too."""
        return [each for each in self.entries if each.mutates]

    def committed(self) -> list[Entry]:
        """Requests that changed something, whether the client learned of it or not."""
        return [each for each in self.mutations() if each.answer is not None and each.answer.status < 400]

    def lines(self) -> list[str]:
        """``METHOD /path`` of each."""
        return [each.line for each in self.entries]


class GkeServer:
    """A running simulation. ``before`` is awaited when a request has come, ``after`` when it is done, unanswered."""

    def __init__(self, cloud: Cloud, *, clock: Callable[[], float]) -> None:
        self.cloud = cloud
        self.url = ""
        self.log = Log()
        self.before: Hook | None = None
        self.after: Hook | None = None
        self._clock = clock
        self._woken = asyncio.Event()

    @property
    def world(self) -> World:
        return self.cloud.world

    @property
    def faults(self) -> Faults:
        return self.world.faults

    @property
    def store(self) -> Store:
        """What exists now: operations that are due have ended."""
        self.world.operations.settle(self._clock())
        return self.world.store

    def finish(self, operation: Operation) -> None:
        """End an operation now, such as one that is stuck."""
        operation.due = self._clock()
        self.world.operations.settle(self._clock())
        self._woken.set()
        self._woken = asyncio.Event()

    def preset(self, collection: str, body: dict[str, Any]) -> None:
        """Let a resource stand that no request has made: ``collection`` is the path to which it would be sent.

        Raises ValueError with the sentence of the refusal.
        """
        before = set(self.world.store.objects)
        answer = self.cloud.answer("POST", collection, {}, json.dumps(body).encode())
        if answer.status >= 400:
            raise ValueError(answer.body["error"]["message"])
        operation = self.world.operations.find(answer.body["name"])
        if operation is not None:
            self.finish(operation)
        self.world.store.foreign.update(set(self.world.store.objects) - before)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        raw = await request.read()
        entry = self._entry(request, raw)
        self.log.entries.append(entry)
        if self.before is not None:
            await self.before(entry)
        line = entry.line
        if self.faults.striking(line, (Kind.DROPPED_BEFORE,)):
            entry.dropped = True
            return _dropped(request)
        if request.path.endswith("/wait"):
            await self._wait(request.path)
        answer = self.cloud.answer(request.method, request.path, request.query, raw)
        entry.answer = answer
        if self.after is not None:
            await self.after(entry)
        if answer.status < 400 and self.faults.striking(line, (Kind.DROPPED_AFTER,)):
            entry.dropped = True
            return _dropped(request)
        return _response(answer)

    def _entry(self, request: web.Request, raw: bytes) -> Entry:
        found = routes.find(request.method, request.path)
        service = found[0].service if found else routes.service_of(request.path)
        try:
            body: Any = json.loads(raw) if raw else None
        except ValueError:
            body = None
        sent = Request(
            service=service,
            method=request.method,
            path=request.path,
            query=dict(request.query),
            body=body if isinstance(body, dict) else None,
        )
        return Entry(at=self._clock(), request=sent)

    async def _wait(self, path: str) -> None:
        """Until the operation has ended, two minutes at most, as operations.wait does."""
        operation = self.world.operations.find(path.split("/")[-2])
        limit = self._clock() + _LONGEST_WAIT
        while operation is not None and not operation.done:
            now = self._clock()
            left = min(operation.due, limit) - now
            if left <= 0:
                break
            try:
                async with asyncio.timeout(left):
                    await self._woken.wait()
            except TimeoutError:
                pass
        self.world.operations.settle(self._clock())


async def _mark(request: web.Request, response: web.StreamResponse) -> None:  # noqa: ARG001  aiohttp's signature
    response.headers[SIMULATED] = "true"


def _dropped(request: web.Request) -> web.StreamResponse:
    """End the connection without a byte."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=499)


def _response(answer: Answer) -> web.Response:
    headers = answer.headers
    if answer.text is not None:
        return web.Response(status=answer.status, text=answer.text, content_type="text/html", headers=headers)
    body = msgspec.json.encode(answer.body)
    return web.Response(status=answer.status, body=body, content_type="application/json", headers=headers)


@asynccontextmanager
async def serve_gke(
    *,
    project: str = "example-project",
    more_projects: Iterable[str] = (),
    latency: float | Durations = QUICK,
    clock: Callable[[], float] | None = None,
    faults: Iterable[Fault] = (),
    default_network: bool = True,
    host: str = "127.0.0.1",
    port: int = 0,
) -> AsyncIterator[GkeServer]:
    """A simulation at ``.url`` until the block ends.

    ``latency``: seconds that operations take. ``clock``: seconds, the loop's unless given. ``more_projects``: such as
    the host of a shared VPC. ``default_network``: whether the projects have the network named default. Raises OSError
    where the port is not to be had.
    """
    loop = asyncio.get_running_loop()
    started = loop.time() if clock is None else 0.0
    tick = clock if clock is not None else lambda: loop.time() - started
    durations = latency if isinstance(latency, Durations) else Durations.every(latency)
    world = World(projects=(project, *more_projects), clock=tick, durations=durations)
    world.operations.epoch = datetime.now(UTC) - timedelta(seconds=tick())
    world.faults.active.extend(faults)
    furnish(world, default_network=default_network)
    server = GkeServer(Cloud(world), clock=tick)
    app = web.Application(client_max_size=_BODY_LIMIT)
    app.on_response_prepare.append(_mark)
    app.router.add_route("*", "/{tail:.*}", server.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port, reuse_address=True)
        await site.start()
        address = runner.addresses[0]
        server.url = f"http://{address[0]}:{address[1]}"
        yield server
    finally:
        await runner.cleanup()
