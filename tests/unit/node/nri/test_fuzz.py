"""Whatever comes over the socket, the injector lives, comes back and serves the next container."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import secrets
import struct
import sys
from pathlib import Path

import pytest

from interlace.node.nri.errors import ProtocolError
from interlace.node.nri.mux import PLUGIN, RUNTIME, Splitter, frames
from interlace.node.nri.plugin import PACKAGE, SERVICE, Plugin
from interlace.node.nri.proto import nri_pb2 as pb
from interlace.node.nri.proto import ttrpc_pb2
from interlace.node.nri.ttrpc import REQUEST, RESPONSE, Client, Server, pack
from tests.unit.node.nri.parts import NULL, REAL, WITHIN, Told, World, container, listed, pod, real, running

INPUTS = 10_000
GROWTH = 5e6
"""Bytes."""
METHODS = (
    "Configure",
    "Synchronize",
    "CreateContainer",
    "ValidateContainerAdjustment",
    "StateChange",
    "Shutdown",
    "No",
)


def noise(dice: random.Random, most: int = 200) -> bytes:
    return dice.randbytes(dice.randrange(most))


def message(dice: random.Random) -> bytes:
    """A ttrpc message that is wrong in one way or another, or right but for its content."""
    kind = dice.choice((REQUEST, REQUEST, RESPONSE, 3, dice.randrange(256)))
    stream = dice.choice((1, 3, 2, 0, 2**31 + 1, dice.randrange(2**32)))
    service = dice.choice((SERVICE, SERVICE, f"{PACKAGE}.Runtime", "none"))
    body = ttrpc_pb2.Request(service=service, method=dice.choice(METHODS), payload=noise(dice)).SerializeToString()
    match dice.randrange(4):
        case 0:
            return pack(stream, kind, noise(dice))
        case 1:
            return struct.pack(">IIBB", dice.randrange(2**32), stream, kind, 0) + body
        case 2:
            return pack(stream, kind, body)[: dice.randrange(len(body) + 10)]
        case _:
            return pack(stream, kind, body)


def hostile(dice: random.Random) -> bytes:
    """What a runtime would never send, on either connection."""
    connection = dice.choice((PLUGIN, PLUGIN, RUNTIME, RUNTIME, 0, 3, dice.randrange(2**32)))
    match dice.randrange(4):
        case 0:
            return noise(dice)
        case 1:
            return struct.pack(">II", connection, dice.randrange(2**32)) + noise(dice)
        case 2:
            whole = b"".join(frames(connection, message(dice)))
            return whole[: dice.randrange(len(whole) + 1)]
        case _:
            return b"".join(frames(connection, message(dice) + message(dice)))


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def new_dice() -> tuple[int, random.Random]:
    """A seed that is printed, and what it makes."""
    seed = secrets.randbits(32)
    sys.stdout.write(f"seed {seed}\n")
    return seed, random.Random(seed)


def test_each_of_ten_thousand_first_inputs_is_answered_dropped_or_a_protocol_error() -> None:
    seed, dice = new_dice()
    for number in range(INPUTS):
        written: list[bytes] = []
        plugin = Plugin(events=8, name="interlace", index="50", rules=REAL, witness=Told())
        sides: dict[int, Client | Server] = {
            PLUGIN: Server(plugin.services(), write=written.append),
            RUNTIME: Client(write=written.append),
        }
        splitter = Splitter()
        # A wrong length may take the rest for its own; the parts of a connection still end here.
        with contextlib.suppress(ProtocolError):
            for connection, piece in splitter.feed(hostile(dice)):
                if connection in sides:
                    sides[connection].feed(piece)
        assert all(message[8] == RESPONSE for message in written), f"seed {seed}, input {number}"


@pytest.mark.timeout(300)
async def test_ten_thousand_hostile_inputs_neither_end_nor_grow_it(tmp_path: Path) -> None:
    seed, dice = new_dice()
    world = World(tmp_path, pause=0.0001, longest=0.0002)
    asks = pod(daemon=listed(NULL))
    async with running(world) as runtime:
        session = await runtime.next(within=WITHIN)
        before = 0
        for number in range(INPUTS):
            session.send(hostile(dice))
            if number % 5 == 4:
                await asyncio.sleep(0)
            if number % 20 == 19 or session.ended.is_set():
                session.close()
                session = await runtime.next(within=WITHIN)
                assert await session.create(asks, container()) == [real(NULL)], f"seed {seed}, input {number}"
            if number == INPUTS // 5:
                gc.collect()
                before = resident()
        gc.collect()
        grown = resident() - before
        assert grown < GROWTH, f"seed {seed}: grew by {grown} bytes"
        assert world.injector.problem is None
    assert world.injector.registrations >= INPUTS // 20


async def test_after_a_hostile_input_the_pauses_of_a_node_are_short_enough_to_be_back_at_once(tmp_path: Path) -> None:
    world = World(tmp_path, pause=0.05, longest=1.0)
    async with running(world) as runtime:
        session = await runtime.next(within=WITHIN)
        for _ in range(3):
            session.send(struct.pack(">II", PLUGIN, 2**32 - 1))
            session = await runtime.next(within=WITHIN)
            assert await session.call("StateChange", pb.Empty(), pb.Empty) == pb.Empty()
    # Each return is one pause and one handshake; `test_injector` bounds the pauses.
    assert world.injector.registrations == 4
