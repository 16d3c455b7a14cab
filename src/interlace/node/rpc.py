"""Plain async methods, from request to response, as a gRPC service on a unix socket.

The rest of the agent knows nothing of the gRPC library; another one would replace this module alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.const import Cardinality, Handler
from grpclib.exceptions import GRPCError, ProtocolError, StreamTerminatedError
from grpclib.server import Server, Stream

from interlace.node.errors import StateError

SOCKET_PATH_LIMIT = 107
"""Bytes that a unix socket's path may have on Linux."""
_CLOSE_WAIT = 5.0


class Method:
    """One unary method: its handler gets the request message and returns the response message.

    The handler is cancelled when the client cancels the call, goes away, or its deadline passes.
    """

    cardinality = Cardinality.UNARY_UNARY

    def __init__(self, handler: Callable[[Any], Awaitable[Any]], *, request: type[Any], response: type[Any]) -> None:
        self.handler = handler
        self.request = request
        self.response = response

    async def __call__(self, stream: Stream[Any, Any]) -> None:
        request = await stream.recv_message()
        if request is not None:
            await stream.send_message(await self.handler(request))


class Feed:
    """One method that answers a request with messages for as long as the client listens.

    ``handler`` gets the request and yields the messages; it is closed when the client goes away or we stop.
    """

    cardinality = Cardinality.UNARY_STREAM

    def __init__(
        self, handler: Callable[[Any], AsyncGenerator[Any]], *, request: type[Any], response: type[Any]
    ) -> None:
        self.handler = handler
        self.request = request
        self.response = response

    async def __call__(self, stream: Stream[Any, Any]) -> None:
        request = await stream.recv_message()
        if request is not None:
            async with contextlib.aclosing(self.handler(request)) as messages:
                async for message in messages:
                    await stream.send_message(message)


class Service:
    """Methods under a service name such as ``pluginregistration.Registration``."""

    def __init__(self, name: str, methods: Mapping[str, Method | Feed]) -> None:
        self._name = name
        self._methods = methods

    def __mapping__(self) -> dict[str, Handler]:
        """The library's view of a service."""
        return {
            f"/{self._name}/{name}": Handler(method, method.cardinality, method.request, method.response)
            for name, method in self._methods.items()
        }


@asynccontextmanager
async def listen(path: Path, services: Sequence[Service]) -> AsyncGenerator[None]:
    """Serve on a unix socket; on exit calls in progress are cancelled and the socket is removed.

    A socket file that nobody listens on is replaced. Raises ``StateError`` where the path is too long, is
    something else than a socket, or cannot be bound.
    """
    if len(os.fsencode(path)) > SOCKET_PATH_LIMIT:
        raise StateError(
            f"{path} is {len(os.fsencode(path))} bytes long, and a unix socket's path may have {SOCKET_PATH_LIMIT}; "
            "choose a shorter folder."
        )
    server = Server(services)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not stat.S_ISSOCK(path.stat().st_mode):
            raise StateError(f"{path} is there and is no socket; remove it.")
        await server.start(path=str(path))
        inode = path.stat().st_ino
    except OSError as error:
        raise StateError(f"{path} cannot be listened on: {error.strerror}.") from error
    try:
        yield
    finally:
        # Remove the name first, so that nobody new comes in, and only if it is still ours.
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ino == inode:
                path.unlink()
        server.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_WAIT):
                await server.wait_closed()


async def ask(path: Path, method: str, request: Any, *, response: type[Any], timeout: float) -> Any | None:
    """One call to a socket; None where nobody answers it, or not in this protocol."""
    channel = Channel(path=str(path))
    try:
        async with asyncio.timeout(timeout):
            return await UnaryUnaryMethod(channel, method, type(request), response)(request)
    except (OSError, TimeoutError, GRPCError, StreamTerminatedError, ProtocolError):
        return None
    except AttributeError:  # grpclib's word for a connection that closed just before it was used
        return None
    finally:
        channel.close()
