"""What kubelet is told about the channels in use."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import msgspec
import pytest
from grpclib.client import Channel, UnaryStreamMethod

from interlace.imex.order import State
from interlace.node.cdi import PreparedClaim
from interlace.node.demand import DeviceRef
from interlace.node.fabric import Fabric
from interlace.node.health import BELIEVED, REFRESH, Health, health_service, report, reports
from interlace.node.outage import HOST_GRACE
from interlace.node.proto import dra_health_pb2 as pb
from interlace.node.rpc import listen
from tests.unit.node.parts import CLIQUE, DOMAIN, NODE, Bench, ref

GOOD = Fabric(clique=CLIQUE)
DEVICE = DeviceRef(request="channel", pool=NODE, device="channel-0")
HELD = PreparedClaim(
    claim=ref(), devices=(DEVICE,), domain=DOMAIN, clique=CLIQUE, index=2, injected=True, completed=True
)
READY = State(domain=DOMAIN, index=2, phase="Ready", pid=7)


def judged(held: PreparedClaim = HELD, *, host: State | None = READY, fabric: Fabric = GOOD) -> tuple[bool | None, str]:
    (health,) = report([held], host=host, fabric=fabric)
    assert (health.pool, health.device) == (NODE, "channel-0")
    return health.good, health.message


def test_a_channel_is_healthy_while_its_imex_is_ready() -> None:
    assert judged() == (True, "")


def test_an_imex_that_does_not_serve_is_named_with_its_cause() -> None:
    failed = State(domain=DOMAIN, index=2, phase="Failed", reason="ImexExited", message="ended with signal 9")
    assert judged(host=failed) == (False, "nvidia-imex of this node is failed (ImexExited): ended with signal 9.")
    assert judged(host=msgspec.structs.replace(READY, domain="another"))[0] is False


def test_a_fabric_that_broke_is_told_in_its_own_words() -> None:
    broken = Fabric(clique=CLIQUE, healthy=False, reason="Degraded", message="GPU 3 lost its links.")
    assert judged(fabric=broken) == (False, "GPU 3 lost its links.")


def test_what_nobody_can_know_is_unknown() -> None:
    good, message = judged(host=None)
    assert good is None
    assert "imex-host" in message
    assert judged(msgspec.structs.replace(HELD, inherited=True))[0] is None


def test_a_node_without_a_fabric_has_nothing_to_break() -> None:
    assert judged(msgspec.structs.replace(HELD, injected=False), host=None) == (True, "")


def test_one_device_of_several_claims_is_one_line() -> None:
    other = msgspec.structs.replace(HELD, claim=msgspec.structs.replace(ref(), uid="other"))
    assert len(report([HELD, other], host=READY, fabric=GOOD)) == 1


@pytest.mark.looptime
async def test_a_report_is_sent_at_a_change_and_before_the_last_one_is_too_old(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.checkpoint.put(HELD)
    bench.link.state = READY
    loop = asyncio.get_running_loop()
    async with contextlib.aclosing(reports(bench.state)) as found:
        assert [health.good for health in await anext(found)] == [True]
        started = loop.time()
        await anext(found)
        assert loop.time() - started == pytest.approx(REFRESH)
        assert REFRESH * 2 < BELIEVED

        loop.call_later(1, bench.link.say, msgspec.structs.replace(READY, phase="Starting"))
        assert [health.good for health in await anext(found)] == [False]
        assert loop.time() - started == pytest.approx(REFRESH + 1)


@pytest.mark.looptime
async def test_an_imex_host_that_is_away_for_a_moment_changes_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.checkpoint.put(HELD)
    bench.link.state = READY
    loop = asyncio.get_running_loop()
    async with contextlib.aclosing(reports(bench.state)) as found:
        await anext(found)
        bench.link.say(None)
        loop.call_later(HOST_GRACE / 2, bench.link.say, READY)
        started = loop.time()
        assert [health.good for health in await anext(found)] == [True]
        assert loop.time() - started == pytest.approx(REFRESH)

        bench.link.say(None)
        started = loop.time()
        assert [health.good for health in await anext(found)] == [None]
        assert loop.time() - started == pytest.approx(HOST_GRACE)


@pytest.mark.looptime
async def test_an_agent_that_just_started_waits_for_its_imex_host_before_it_says_anything(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.checkpoint.put(HELD)
    bench.link.state = None
    loop = asyncio.get_running_loop()
    loop.call_later(1, bench.link.say, READY)
    async with contextlib.aclosing(reports(bench.state)) as found:
        assert await anext(found) == (Health(pool=NODE, device="channel-0", good=True),)
        assert loop.time() == pytest.approx(1)


async def test_kubelet_gets_the_reports_as_a_stream_until_we_stop(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.checkpoint.put(HELD)
    bench.link.state = READY
    begun = asyncio.Event()
    begun.set()
    path = tmp_path / "dra.sock"
    channel = Channel(path=str(path))
    watch = UnaryStreamMethod(
        channel,
        "/v1alpha1.DRAResourceHealth/NodeWatchResources",
        pb.NodeWatchResourcesRequest,
        pb.NodeWatchResourcesResponse,
    )
    try:
        async with asyncio.timeout(10):
            async with listen(path, [health_service(bench.state, after=begun)]), watch.open() as stream:
                await stream.send_message(pb.NodeWatchResourcesRequest(), end=True)
                first = await stream.recv_message()
                assert first is not None
                assert [device.health for device in first.devices] == [pb.HealthStatus.HEALTHY]
                assert first.devices[0].health_check_timeout_seconds == BELIEVED
                bench.link.say(msgspec.structs.replace(READY, phase="Failed", message="it ended"))
                second = await stream.recv_message()
                assert second is not None
                assert [device.health for device in second.devices] == [pb.HealthStatus.UNHEALTHY]
                assert "it ended" in second.devices[0].message
                await stream.cancel()
    finally:
        channel.close()
    assert not path.exists()
