"""containerd's ttrpc over a byte stream: the framing, the side that answers calls and the side that makes them.

Invariants: at most one message a side is in memory, and that has at most 4 MiB (the rest of a larger one is
skipped, and its sender told); calls are answered in the order in which they came, each exactly once; an unknown call
is answered Unimplemented; nothing that a caller sends ends more than its own connection.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from interlace.kube.log import get_logger
from interlace.node.nri.errors import CallError, ProtocolError
from interlace.node.nri.proto import ttrpc_pb2

LARGEST: Final = 4 * 2**20
"""Bytes of a message's body."""
REQUEST: Final = 1
RESPONSE: Final = 2

UNKNOWN: Final = 2
INVALID_ARGUMENT: Final = 3
PERMISSION_DENIED: Final = 7
RESOURCE_EXHAUSTED: Final = 8
FAILED_PRECONDITION: Final = 9
UNIMPLEMENTED: Final = 12
INTERNAL: Final = 13

_HEADER: Final = struct.Struct(">IIBB")
_SHOWN: Final = 64
log = get_logger(__name__)


class Message(NamedTuple):
    """One message; ``skipped`` says how many bytes an oversized one had, whose body is left out."""

    stream: int
    kind: int
    body: bytes
    skipped: int = 0


class Status(Exception):
    """The answer to a call that failed: ``code`` as gRPC numbers them."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


Handler = Callable[[bytes], bytes]
"""Payload of the request to payload of the response; may raise ``Status`` and protobuf's ``DecodeError``."""
Write = Callable[[bytes], None]


def pack(stream: int, kind: int, body: bytes) -> bytes:
    """A message as bytes."""
    return _HEADER.pack(len(body), stream, kind, 0) + body


class Messages:
    """Puts the messages of one byte stream together."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._skip = 0
        self._skipped = Message(0, 0, b"")

    def feed(self, data: bytes) -> Iterator[Message]:
        """Those that are complete now."""
        buffer = self._buffer
        buffer += data
        while True:
            if self._skip:
                gone = min(self._skip, len(buffer))
                del buffer[:gone]
                self._skip -= gone
                if self._skip:
                    return
                yield self._skipped
            if len(buffer) < _HEADER.size:
                return
            length, stream, kind, _ = _HEADER.unpack_from(buffer)
            end = _HEADER.size + length
            if length > LARGEST:
                del buffer[: _HEADER.size]
                self._skip, self._skipped = length, Message(stream, kind, b"", length)
            elif len(buffer) < end:
                return
            else:
                body = bytes(memoryview(buffer)[_HEADER.size : end])
                del buffer[:end]
                yield Message(stream, kind, body)


class Server:
    """Answers calls: ``services`` by name of the service and the method; ``write`` sends bytes on the connection."""

    def __init__(self, services: Mapping[str, Mapping[str, Handler]], *, write: Write) -> None:
        self._services = services
        self._write = write
        self._messages = Messages()
        self._last = -1

    def feed(self, data: bytes) -> None:
        """Answer the calls that are complete now. Raises ``ProtocolError``."""
        for message in self._messages.feed(data):
            if message.kind != REQUEST:
                raise ProtocolError(f"A message of kind {message.kind} came where only requests are allowed.")
            if message.stream % 2 == 0 or message.stream <= self._last:
                raise ProtocolError(
                    f"A request came with stream id {message.stream} after {self._last}; ids are odd and increase."
                )
            self._last = message.stream
            self._write(pack(message.stream, RESPONSE, self._answer(message).SerializeToString()))

    def _answer(self, message: Message) -> ttrpc_pb2.Response:
        try:
            if message.skipped:
                raise Status(RESOURCE_EXHAUSTED, f"The request has {message.skipped} bytes; at most {LARGEST} are read")
            payload = self._call(message.body)
            if len(payload) > LARGEST - 16:
                raise Status(RESOURCE_EXHAUSTED, f"The answer has {len(payload)} bytes; at most {LARGEST} may be sent")
            return ttrpc_pb2.Response(payload=payload)
        except Status as status:
            return ttrpc_pb2.Response(status=ttrpc_pb2.Status(code=status.code, message=status.message))

    def _call(self, body: bytes) -> bytes:
        try:
            request = ttrpc_pb2.Request.FromString(body)
            handler = self._services.get(request.service, {}).get(request.method)
            if handler is None:
                name = f"{request.service[:_SHOWN]}/{request.method[:_SHOWN]}"
                raise Status(UNIMPLEMENTED, f"{name} is not implemented")
            return handler(request.payload)
        except DecodeError as error:
            raise Status(INVALID_ARGUMENT, f"The request cannot be decoded: {error}") from None
        except Status:
            raise
        except Exception as error:
            # A fault of ours fails this call, not the node's other containers.
            log.exception("a call of the runtime failed")
            raise Status(INTERNAL, f"{type(error).__name__}: {error}") from None


class Client:
    """Makes calls; ``write`` sends bytes on the connection."""

    def __init__(self, *, write: Write) -> None:
        self._write = write
        self._messages = Messages()
        self._next = 1
        self._waiting: dict[int, asyncio.Future[Message]] = {}

    def feed(self, data: bytes) -> None:
        """Hand out the answers that are complete now; those to calls that nobody waits for are dropped."""
        for message in self._messages.feed(data):
            if message.kind != RESPONSE:
                raise ProtocolError(f"A message of kind {message.kind} came where only responses are allowed.")
            waiting = self._waiting.get(message.stream)
            if waiting is not None and not waiting.done():
                waiting.set_result(message)

    async def call(self, service: str, method: str, payload: bytes, *, limit: float) -> bytes:
        """Payload of the answer. Raises ``CallError`` if it is an error, or does not come in ``limit`` seconds."""
        request = ttrpc_pb2.Request(service=service, method=method, payload=payload, timeout_nano=int(limit * 1e9))
        stream, self._next = self._next, self._next + 2
        waiting = self._waiting[stream] = asyncio.get_running_loop().create_future()
        try:
            self._write(pack(stream, REQUEST, request.SerializeToString()))
            async with asyncio.timeout(limit):
                message = await waiting
        except TimeoutError:
            raise CallError(f"The runtime did not answer {method} within {limit:g} s.") from None
        finally:
            del self._waiting[stream]
        if message.skipped:
            raise CallError(f"The runtime answered {method} with {message.skipped} bytes; at most {LARGEST} are read.")
        try:
            response = ttrpc_pb2.Response.FromString(message.body)
        except DecodeError as error:
            raise CallError(f"The runtime's answer to {method} cannot be decoded: {error}.") from None
        if response.status.code:
            raise CallError(f"The runtime refused {method} (code {response.status.code}): {response.status.message}.")
        return response.payload
