"""One connection to the runtime: answers its calls, and registers the plugin meanwhile.

Either may come first: the runtime may configure a plugin before the answer to its registration is read. Invariant:
whatever ends the connection ends everything that belongs to it, and is told by one error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, Never

from interlace.node.nri.errors import NriError, ProtocolError
from interlace.node.nri.mux import PLUGIN, RUNTIME, Splitter, frames
from interlace.node.nri.plugin import PACKAGE
from interlace.node.nri.proto import nri_pb2 as pb
from interlace.node.nri.ttrpc import Client, Handler, Server, Write

REGISTER_LIMIT: Final = 5.0
"""Seconds; the runtime itself gives up after as many."""
WRITE_LIMIT: Final = 10.0
"""Seconds in which the runtime has to take an answer."""
PIECE: Final = 64 * 1024
"""Bytes read at once."""


async def converse(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    *,
    name: str,
    index: str,
    services: Mapping[str, Mapping[str, Handler]],
) -> Never:
    """Serve until the connection ends, then raise ``NriError`` with the reason."""
    client = Client(write=_write(writer, RUNTIME))
    server = Server(services, write=_write(writer, PLUGIN))
    cause: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_register(client, name=name, index=index))
            # Not a task too: a group whose task fails while it waits for its end keeps the cancellation that it
            # asked for (Python 3.11), and time limits around it then no longer work.
            await _pump(reader, writer, {PLUGIN: server, RUNTIME: client})
    except* (NriError, OSError, TimeoutError) as several:
        cause = several.exceptions[0]
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        # A group that fails at the moment at which it is cancelled tells the failure alone (Python 3.11).
        raise asyncio.CancelledError
    if isinstance(cause, NriError):
        raise cause
    raise ProtocolError(f"The connection to the runtime broke: {str(cause) or type(cause).__name__}.")


async def _register(client: Client, *, name: str, index: str) -> None:
    request = pb.RegisterPluginRequest(plugin_name=name, plugin_idx=index)
    await client.call(f"{PACKAGE}.Runtime", "RegisterPlugin", request.SerializeToString(), limit=REGISTER_LIMIT)


async def _pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sides: Mapping[int, Server | Client]
) -> None:
    splitter = Splitter()
    while data := await reader.read(PIECE):
        for connection, piece in splitter.feed(data):
            side = sides.get(connection)
            if side is not None:
                side.feed(piece)
        # Who does not take answers gets no more calls answered; so nothing piles up here.
        async with asyncio.timeout(WRITE_LIMIT):
            await writer.drain()
    raise ProtocolError("The runtime closed the connection.")


def _write(writer: asyncio.StreamWriter, connection: int) -> Write:
    def write(data: bytes) -> None:
        writer.write(b"".join(frames(connection, data)))

    return write
