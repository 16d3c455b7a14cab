"""An injector beside a runtime on a socket (simulated): registered, dropped, back again."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from pathlib import Path
from typing import Any, cast

import pytest

from interlace.node.nri.connection import converse
from interlace.node.nri.errors import CallError, NriError
from interlace.node.nri.mux import RUNTIME, frames
from interlace.node.nri.plugin import CREATE, PACKAGE, VALIDATE
from interlace.node.nri.proto import nri_pb2 as pb
from interlace.node.nri.proto import ttrpc_pb2
from interlace.node.nri.ttrpc import REQUEST, RESPONSE, pack
from interlace.sim.nri import BEFORE_VALIDATION, RuntimeSettings
from tests.unit.node.nri.parts import NODE, NULL, WITHIN, World, container, listed, pod, real, running
from tests.waiting import eventually

ASKS = pod(daemon=listed(NULL))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def runtime(**settings: Any) -> RuntimeSettings:
    return RuntimeSettings(limit=WITHIN, **settings)


@pytest.mark.parametrize("configure_first", [False, True])
@pytest.mark.parametrize("frame", [1, 7, 4096])
async def test_it_registers_in_either_order_over_frames_of_any_size(
    world: World, *, configure_first: bool, frame: int
) -> None:
    async with running(world, runtime(configure_first=configure_first, frame=frame)) as served:
        session = await served.next(within=WITHIN)
        assert (session.name, session.index) == ("interlace", "50")
        assert session.events == CREATE | VALIDATE
        assert await session.create(ASKS, container()) == [real(NULL)]
        assert world.injector.problem is None
        assert world.registry.value("interlace_nri_registered") == 1


async def test_a_long_answer_goes_in_frames_that_the_runtime_can_read(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with running(world) as served:
        session = await served.next(within=WITHIN)
        with pytest.raises(CallError, match="may not be injected"):
            await session.create(pod(daemon=listed(f"/dev/{'x' * 8000}")), container())
        assert 4000 < session.largest <= 4096


async def test_a_large_state_comes_in_parts(world: World) -> None:
    pods = [pb.PodSandbox(id=f"p{number}", annotations={"note": "x" * 1000}) for number in range(500)]
    parts = [pb.SynchronizeRequest(pods=pods, more=number < 3) for number in range(4)]
    async with running(world, runtime(state=parts)) as served:
        session = await served.next(within=WITHIN)
        assert await session.create(ASKS, container()) == [real(NULL)]


async def test_a_refusal_reaches_the_runtime_and_stands_in_an_event_and_a_metric(world: World) -> None:
    async with running(world) as served:
        session = await served.next(within=WITHIN)
        with pytest.raises(CallError, match="/dev/sda may not be injected on this node"):
            await session.create(pod(daemon=listed("/dev/sda")), container())
    ((about, reason, message, warning),) = world.said.events
    assert (about, reason, warning) == ("Pod/train-0", "DeviceNotAllowed", True)
    assert "container daemon: metadata.annotations[devices.gke.io/container.daemon]: /dev/sda" in message
    assert world.registry.value("interlace_nri_refusals_total", reason="DeviceNotAllowed") == 1


async def test_after_the_runtime_hung_up_or_was_away_it_is_registered_again(world: World) -> None:
    async with running(world) as served:
        await served.next(within=WITHIN)
        served.hang_up()
        session = await served.next(within=WITHIN)
        assert await session.create(ASKS, container()) == [real(NULL)]
    async with running(world) as served:
        session = await served.next(within=WITHIN)
        assert await session.create(ASKS, container()) == [real(NULL)]
    assert world.injector.registrations == 3


async def test_while_it_is_away_it_says_why(world: World) -> None:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(world.injector.run())
        await eventually(lambda: "does not exist: NRI is off" in str(world.injector.problem), within=WITHIN)
        world.socket.write_text("")
        await eventually(lambda: "cannot be reached" in str(world.injector.problem), within=WITHIN)
        task.cancel()
    assert world.registry.value("interlace_nri_registered") == 0


async def test_a_runtime_that_hangs_up_on_an_event_is_asked_for_fewer(world: World) -> None:
    async with running(world, runtime(events=BEFORE_VALIDATION)) as served:
        session = await served.next(within=WITHIN)
        assert session.events == CREATE
        assert served.calls == 2
        assert await session.create(ASKS, container()) == [real(NULL)]
        # It may be another runtime after the next restart.
        served.settings = runtime()
        session.close()
        assert (await served.next(within=WITHIN)).events == CREATE | VALIDATE


async def test_a_bad_index_is_refused_by_the_runtime_and_said(tmp_path: Path) -> None:
    world = World(tmp_path, index="5")
    async with running(world):
        await eventually(lambda: "invalid plugin index '5'" in str(world.injector.problem), within=WITHIN)


async def test_a_container_that_started_meanwhile_without_its_devices_is_told_of(world: World) -> None:
    state = pb.SynchronizeRequest(pods=[ASKS], containers=[container()])
    async with running(world, runtime(state=[state])) as served:
        await served.next(within=WITHIN)
    ((about, reason, message, _),) = world.said.events
    assert (about, reason) == ("Pod/train-0", "DevicesMissing")
    assert message.startswith("container daemon runs without /dev/null: it was made while no device injector")


async def test_another_injector_is_told_of_once_about_the_node(world: World) -> None:
    request = pb.ValidateContainerAdjustmentRequest(plugins=[pb.PluginInstance(name="device_injector_nri", index="10")])
    async with running(world) as served:
        session = await served.next(within=WITHIN)
        for _ in range(2):
            await session.call("ValidateContainerAdjustment", request, pb.ValidateContainerAdjustmentResponse)
    ((about, reason, message, _),) = world.said.events
    assert (about, reason) == (f"Node/{NODE}", "OtherDeviceInjector")
    assert "device_injector_nri with index 10, serves this node" in message


async def test_calls_that_it_does_not_know_are_unimplemented_and_the_next_one_is_served(world: World) -> None:
    async with running(world) as served:
        session = await served.next(within=WITHIN)
        for method in ("RunPodSandbox", "PostCreateContainer", "SomethingNew"):
            with pytest.raises(CallError, match=r"\(code 12\)"):
                await session.call(method, pb.Empty(), pb.Empty)
        await session.call("StateChange", pb.Empty(), pb.Empty)
        assert await session.create(ASKS, container()) == [real(NULL)]


async def test_a_connection_cut_in_the_middle_of_a_frame_is_made_again(world: World) -> None:
    async with running(world) as served:
        session = await served.next(within=WITHIN)
        session.send(b"\0\0\0\1\0\0\1\0" + pack(1, REQUEST, PACKAGE.encode())[:9])
        session.close()
        again = await served.next(within=WITHIN)
        assert await again.create(ASKS, container()) == [real(NULL)]


async def test_it_ends_when_it_is_cancelled_at_the_moment_at_which_the_runtime_refuses_it() -> None:
    """Again and again, a step of the loop later each time: one of them meets the failure."""
    refusal = ttrpc_pb2.Response(status=ttrpc_pb2.Status(code=2, message="no")).SerializeToString()
    for steps in range(12):
        reader = asyncio.StreamReader()
        writer = Silent()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(attempt(reader, cast("asyncio.StreamWriter", writer)))
            await writer.written.wait()
            reader.feed_data(b"".join(frames(RUNTIME, pack(1, RESPONSE, refusal))))
            for _ in range(steps):
                await asyncio.sleep(0)
            ended = task.done()
            task.cancel()
        assert task.cancelled() or ended, f"after {steps} steps"


async def attempt(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection, until the runtime ends it."""
    with contextlib.suppress(NriError):
        await converse(reader, writer, name="interlace", index="50", services={})


class Silent:
    """A connection on which nothing is ever said."""

    def __init__(self) -> None:
        self.closed = False
        self.written = asyncio.Event()

    def write(self, data: bytes) -> None:
        assert data
        self.written.set()

    async def drain(self) -> None: ...

    def close(self) -> None:
        self.closed = True

    async def wait_closed(self) -> None: ...


@pytest.mark.looptime
async def test_a_runtime_that_never_answers_is_given_up_after_five_seconds_and_tried_again(tmp_path: Path) -> None:
    writers: list[Silent] = []

    async def dial() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        writers.append(Silent())
        return asyncio.StreamReader(), cast("asyncio.StreamWriter", writers[-1])

    world = World(tmp_path, dial=dial)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(11):
            await world.injector.run()
    assert "did not answer RegisterPlugin within 5 s" in str(world.injector.problem)
    assert [writer.closed for writer in writers] == [True, True, True]


@pytest.mark.looptime
async def test_pauses_grow_to_a_second_and_no_further(tmp_path: Path) -> None:
    calls: list[float] = []

    async def dial() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        calls.append(asyncio.get_running_loop().time())
        raise ConnectionRefusedError

    world = World(tmp_path, pause=0.05, longest=1.0, dial=dial)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(30):
            await world.injector.run()
    pauses = [after - before for before, after in itertools.pairwise(calls)]
    assert 0.02 < pauses[0] < 0.06
    assert all(0.4 < pause < 1.05 for pause in pauses[6:])
