"""The NRI side of a container runtime (simulated): takes plugins in, and asks them about containers.

It does what containerd does in the same order, with the same checks: a plugin that answers late, breaks the protocol
or asks for an event that is not known is dropped, and is no longer asked. Invariant: each session ends with its
connection, and says so.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Protocol, Self, TypeVar

import msgspec

from interlace.node.nri.errors import NriError
from interlace.node.nri.mux import PLUGIN, RUNTIME, Splitter, frames
from interlace.node.nri.plugin import PACKAGE, SERVICE
from interlace.node.nri.proto import nri_pb2 as pb
from interlace.node.nri.ttrpc import Client, Server, Status

ALL_EVENTS: Final = (1 << 14) - 1
BEFORE_VALIDATION: Final = (1 << 11) - 1
"""What NRI 0.6 to 0.8 knows."""
_UNKNOWN: Final = 2


class _Message(Protocol):
    def SerializeToString(self) -> bytes: ...  # noqa: N802  protobuf's name

    @classmethod
    def FromString(cls, data: bytes) -> Self: ...  # noqa: N802


_M = TypeVar("_M", bound=_Message)


class RuntimeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One runtime; times in seconds."""

    events: int = ALL_EVENTS
    """The mask of those that it knows."""
    configure_first: bool = False
    """Whether Configure comes before the answer to RegisterPlugin."""
    frame: int = 4096
    """Bytes of payload in one frame."""
    state: Sequence[pb.SynchronizeRequest] = ()
    """What it tells in Synchronize, one message a part; empty: nothing, in one."""
    limit: float = 2.0
    """In which a plugin has to answer."""


class Session:
    """One plugin's connection."""

    def __init__(self, settings: RuntimeSettings, writer: asyncio.StreamWriter) -> None:
        self._settings = settings
        self._writer = writer
        self._client = Client(write=self._send_to_plugin)
        self._server = Server({f"{PACKAGE}.Runtime": {"RegisterPlugin": self._register}}, write=self._answer)
        self._held: list[bytes] | None = [] if settings.configure_first else None
        self._registered = asyncio.Event()
        self.ended = asyncio.Event()
        self.name = ""
        self.index = ""
        self.events = 0
        self.largest = 0
        """Bytes of the largest frame that the plugin sent."""

    async def call(self, method: str, request: _Message, response: type[_M]) -> _M:
        """Ask the plugin. Raises ``CallError``."""
        payload = await self._client.call(SERVICE, method, request.SerializeToString(), limit=self._settings.limit)
        return response.FromString(payload)

    async def create(self, pod: pb.PodSandbox, container: pb.Container) -> list[pb.LinuxDevice]:
        """The devices that the plugin adds to a container. Raises ``CallError`` where it fails the container."""
        request = pb.CreateContainerRequest(pod=pod, container=container)
        found = await self.call("CreateContainer", request, pb.CreateContainerResponse)
        return list(found.adjust.linux.devices)

    def send(self, data: bytes) -> None:
        """Bytes as they are."""
        if not self.ended.is_set():
            self._writer.write(data)

    def close(self) -> None:
        """Hang up."""
        self._writer.close()

    async def take_in(self, reader: asyncio.StreamReader) -> AsyncIterator[None]:
        """Read on until the connection ends."""
        splitter = Splitter()
        sides: dict[int, Client | Server] = {PLUGIN: self._client, RUNTIME: self._server}
        while data := await reader.read(65536):
            for connection, piece in splitter.feed(data):
                self.largest = max(self.largest, len(piece))
                side = sides.get(connection)
                if side is not None:
                    side.feed(piece)
            yield

    async def introduce(self) -> bool:
        """Configure and synchronize the plugin; whether it is one of ours now."""
        async with asyncio.timeout(self._settings.limit):
            await self._registered.wait()
        request = pb.ConfigureRequest(runtime_name="simulated", runtime_version="v2.2.9", request_timeout=2000)
        self.events = (await self.call("Configure", request, pb.ConfigureResponse)).events
        held, self._held = self._held, None
        for data in held or ():
            self._answer(data)
        if self.events & ~self._settings.events:
            return False
        for part in self._settings.state or (pb.SynchronizeRequest(),):
            answer = await self.call("Synchronize", part, pb.SynchronizeResponse)
            if answer.more != part.more:
                return False
        return True

    def _register(self, payload: bytes) -> bytes:
        request = pb.RegisterPluginRequest.FromString(payload)
        if len(request.plugin_idx) != 2 or not request.plugin_idx.isdigit():
            raise Status(_UNKNOWN, f"invalid plugin index {request.plugin_idx!r}")
        self.name, self.index = request.plugin_name, request.plugin_idx
        self._registered.set()
        return b""

    def _answer(self, data: bytes) -> None:
        if self._held is not None:
            self._held.append(data)
        else:
            self.send(b"".join(frames(RUNTIME, data)))

    def _send_to_plugin(self, data: bytes) -> None:
        for part in _cut(data, self._settings.frame):
            self.send(b"".join(frames(PLUGIN, part)))


def _cut(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


class Runtime:
    """A runtime that listens; the plugins that it took in come from ``next``."""

    def __init__(self, settings: RuntimeSettings) -> None:
        self.settings = settings
        self.calls = 0
        """Plugins that called, taken in or not."""
        self._sessions: asyncio.Queue[Session] = asyncio.Queue()
        self._open: set[Session] = set()

    async def next(self, *, within: float) -> Session:
        """The next plugin that was taken in. Raises ``TimeoutError``."""
        async with asyncio.timeout(within):
            return await self._sessions.get()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.calls += 1
        session = Session(self.settings, writer)
        self._open.add(session)
        try:
            async with asyncio.TaskGroup() as group:
                introduction = group.create_task(self._introduce(session))
                async for _ in session.take_in(reader):
                    pass
                introduction.cancel()
        except* (NriError, OSError, TimeoutError):
            pass  # it is dropped, as a runtime does with a line in its log
        finally:
            session.ended.set()
            self._open.discard(session)
            writer.close()

    def hang_up(self) -> None:
        """Drop all plugins."""
        for session in tuple(self._open):
            session.close()

    async def _introduce(self, session: Session) -> None:
        if await session.introduce():
            self._sessions.put_nowait(session)
        else:
            session.close()


@asynccontextmanager
async def run_runtime(path: Path, settings: RuntimeSettings) -> AsyncIterator[Runtime]:
    """Listen at ``path``."""
    runtime = Runtime(settings)
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    server = await asyncio.start_unix_server(runtime.serve, path=str(path))
    try:
        yield runtime
    finally:
        server.close()
        runtime.hang_up()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(settings.limit):
                await server.wait_closed()
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
