"""Calls and answers: bytes as the runtime expects them, and nothing that a caller sends breaks more than its call."""

from __future__ import annotations

import asyncio
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlace.node.nri import ttrpc
from interlace.node.nri.errors import CallError, ProtocolError
from interlace.node.nri.mux import PLUGIN, RUNTIME, frames
from interlace.node.nri.proto import nri_pb2 as pb
from interlace.node.nri.proto import ttrpc_pb2
from interlace.node.nri.ttrpc import (
    LARGEST,
    REQUEST,
    RESPONSE,
    Client,
    Handler,
    Message,
    Messages,
    Server,
    Status,
    pack,
)

# Computed apart from this code, from the published messages of NRI and ttrpc.
REGISTER = bytes.fromhex(
    "00000002000000590000004f0000000101000a1c6e72692e706b672e6170692e7631616c706861312e52756e74696d65120e5265676973"
    "746572506c7567696e1a190a136465766963655f696e6a6563746f725f6e7269120231302080e497d012"
)
CONFIGURED = bytes.fromhex("000000010000000e0000000400000001020012021008")
CREATED = bytes.fromhex("00000001000000260000001c000000050200121a0a1832160a140a0c2f6465762f6e76696469613012016318c301")


def request(method: str, payload: bytes = b"", *, service: str = "s", stream: int = 1) -> bytes:
    body = ttrpc_pb2.Request(service=service, method=method, payload=payload)
    return pack(stream, REQUEST, body.SerializeToString())


class Wire:
    """What was written."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._parser = Messages()

    def write(self, data: bytes) -> None:
        self.messages += self._parser.feed(data)

    def answers(self) -> list[tuple[int, int, bytes]]:
        """Stream, code and payload of each."""
        found = []
        for message in self.messages:
            response = ttrpc_pb2.Response.FromString(message.body)
            found.append((message.stream, response.status.code, response.payload))
        return found


def server(wire: Wire, **handlers: Handler) -> Server:
    return Server({"s": handlers}, write=wire.write)


def fail(_: bytes) -> bytes:
    raise Status(7, "no")


def test_the_bytes_of_a_registration_are_those_that_the_runtime_expects() -> None:
    async def register() -> bytes:
        written = bytearray()
        client = Client(write=lambda data: written.extend(b"".join(frames(RUNTIME, data))))
        payload = pb.RegisterPluginRequest(plugin_name="device_injector_nri", plugin_idx="10").SerializeToString()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(client.call("nri.pkg.api.v1alpha1.Runtime", "RegisterPlugin", payload, limit=5))
            await asyncio.sleep(0)
            task.cancel()
        assert task.cancelled()
        return bytes(written)

    assert asyncio.run(register()) == REGISTER


def test_the_bytes_of_answers_are_those_that_the_runtime_expects() -> None:
    written = bytearray()
    created = pb.CreateContainerResponse()
    created.adjust.linux.devices.add(path="/dev/nvidia0", type="c", major=195, minor=0)
    side = Server(
        {
            "s": {
                "Configure": lambda _: pb.ConfigureResponse(events=8).SerializeToString(),
                "CreateContainer": lambda _: created.SerializeToString(),
            }
        },
        write=lambda data: written.extend(b"".join(frames(PLUGIN, data))),
    )
    side.feed(request("Configure"))
    side.feed(request("CreateContainer", stream=5))
    assert bytes(written) == CONFIGURED + CREATED


@given(st.lists(st.binary(max_size=40), max_size=6), st.lists(st.integers(0, 10_000), max_size=10))
@settings(max_examples=100, deadline=None)
def test_messages_are_put_together_however_they_are_cut(bodies: list[bytes], cuts: list[int]) -> None:
    data = b"".join(pack(2 * number + 1, REQUEST, body) for number, body in enumerate(bodies))
    ends = sorted({cut % (len(data) + 1) for cut in cuts} | {len(data)})
    parser, got = Messages(), []
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        got += [message.body for message in parser.feed(data[start:end])]
    assert got == bodies


def test_calls_are_answered_in_order_and_unknown_ones_as_unimplemented() -> None:
    wire = Wire()
    side = server(wire, echo=lambda payload: payload, fail=fail)
    side.feed(request("echo", b"a") + request("nothing", stream=3) + request("echo", b"b", service="x", stream=5))
    side.feed(request("fail", stream=9) + request("echo", b"c", stream=11))
    assert wire.answers() == [(1, 0, b"a"), (3, 12, b""), (5, 12, b""), (9, 7, b""), (11, 0, b"c")]


def test_a_request_that_is_too_large_is_skipped_and_its_sender_told() -> None:
    wire = Wire()
    side = server(wire, echo=lambda payload: payload)
    side.feed(struct.pack(">IIBB", LARGEST + 3, 1, REQUEST, 0))
    for _ in range(LARGEST // 2**20):
        side.feed(bytes(2**20))
    assert wire.messages == []
    side.feed(bytes(3) + request("echo", b"x", stream=3))
    assert wire.answers() == [(1, ttrpc.RESOURCE_EXHAUSTED, b""), (3, 0, b"x")]


def test_an_answer_that_is_too_large_becomes_an_error() -> None:
    wire = Wire()
    server(wire, big=lambda _: bytes(LARGEST)).feed(request("big"))
    assert wire.answers() == [(1, ttrpc.RESOURCE_EXHAUSTED, b"")]


def test_nonsense_and_faults_fail_one_call_and_no_other() -> None:
    def broken(_: bytes) -> bytes:
        raise ZeroDivisionError("a fault")

    wire = Wire()
    side = server(
        wire, broken=broken, sync=lambda payload: pb.SynchronizeRequest.FromString(payload).SerializeToString()
    )
    side.feed(pack(1, REQUEST, b"\xff\xff") + request("broken", stream=3) + request("sync", b"\xff", stream=5))
    side.feed(request("sync", stream=7))
    assert [code for _, code, _ in wire.answers()] == [
        ttrpc.INVALID_ARGUMENT,
        ttrpc.INTERNAL,
        ttrpc.INVALID_ARGUMENT,
        0,
    ]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (pack(1, RESPONSE, b""), "kind 2 came where only requests"),
        (request("echo", stream=2), "stream id 2 after -1; ids are odd"),
        (request("echo", stream=3) + request("echo", stream=3), "stream id 3 after 3"),
    ],
)
def test_a_broken_protocol_ends_the_connection(data: bytes, said: str) -> None:
    with pytest.raises(ProtocolError, match=said):
        server(Wire(), echo=lambda payload: payload).feed(data)


async def asked(answer: bytes, *, limit: float = 60) -> bytes:
    """What a client makes of an answer."""
    client = Client(write=lambda _: None)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(client.call("s", "Ask", b"", limit=limit))
        await asyncio.sleep(0)
        client.feed(answer)
    return task.result()


def response(code: int = 0, payload: bytes = b"") -> bytes:
    return ttrpc_pb2.Response(
        status=ttrpc_pb2.Status(code=code, message="because"), payload=payload
    ).SerializeToString()


async def test_an_answer_reaches_its_caller_and_one_to_nobody_is_dropped() -> None:
    absent = ttrpc_pb2.Response(payload=b"yes").SerializeToString()
    assert await asked(pack(99, RESPONSE, b"") + pack(1, RESPONSE, absent) + pack(1, RESPONSE, absent)) == b"yes"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (pack(1, RESPONSE, response(12)), r"refused Ask \(code 12\): because"),
        (pack(1, RESPONSE, b"\xff"), "answer to Ask cannot be decoded"),
        (struct.pack(">IIBB", LARGEST + 1, 1, RESPONSE, 0) + bytes(LARGEST + 1), "answered Ask with 4194305 bytes"),
        (pack(1, REQUEST, b""), "kind 1 came where only responses"),
    ],
)
async def test_a_bad_answer_is_an_error_that_names_the_call(answer: bytes, said: str) -> None:
    with pytest.RaisesGroup(pytest.RaisesExc((CallError, ProtocolError), match=said)):
        await asked(answer, limit=1) if answer[8] == REQUEST else await asked(answer)


@pytest.mark.looptime
async def test_a_call_that_is_not_answered_ends_at_its_limit() -> None:
    with pytest.RaisesGroup(pytest.RaisesExc(CallError, match="did not answer Ask within 5 s")):
        await asked(b"", limit=5)
