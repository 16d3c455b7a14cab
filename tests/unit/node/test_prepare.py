"""Prepare and Unprepare, in virtual time."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from interlace.imex.order import Order, State
from interlace.kube.errors import Unreachable
from interlace.node.cdi import PreparedClaim, spec_path
from interlace.node.errors import Reason, Refusal
from interlace.node.fabric import Fabric
from interlace.node.outage import OutageWatch
from tests.unit.node.parts import CLIQUE, DOMAIN, OTHER, Bench, a_claim, ref

pytestmark = pytest.mark.looptime


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def idle() -> None:
    """Let everything that can go on do so; in virtual time this costs nothing."""
    await asyncio.sleep(0.01)


async def withdrawn(bench: Bench) -> None:
    """A Prepare that is ended by an Unprepare."""
    with pytest.raises(Refusal, match="team/worker-1: kubelet unprepared it") as caught:
        await bench.preparer.prepare(ref())
    assert caught.value.reason is Reason.WITHDRAWN


async def test_a_ready_imex_answers_with_the_channel_at_once(bench: Bench) -> None:
    bench.api.add(a_claim())
    bench.join(index=4)
    await idle()
    held = await bench.preparer.prepare(ref())
    spec = json.loads(spec_path(bench.settings.cdi_root, "uid-1").read_bytes())
    assert (held.index, held.clique, held.completed) == (4, CLIQUE, True)
    assert spec["kind"] == "k8s.compute-domain.nvidia.com/claim"
    assert spec["devices"][0]["name"] == "uid-1-channel-0"
    assert spec["devices"][0]["containerEdits"]["deviceNodes"] == [
        {
            "path": "/dev/nvidia-caps-imex-channels/channel0",
            "type": "c",
            "major": 235,
            "minor": 0,
            "fileMode": 0o666,
            "permissions": "rw",
        }
    ]


async def test_the_order_goes_out_when_the_row_appears_and_not_only_when_kubelet_calls(bench: Bench) -> None:
    bench.join(index=2)
    [order] = bench.link.wanted
    assert isinstance(order, Order)
    assert (order.domain, order.index, order.addresses[2]) == (DOMAIN, 2, "10.0.0.1")


async def test_a_happy_prepare_costs_one_get_and_one_write(bench: Bench) -> None:
    bench.api.add(a_claim())
    bench.join()
    async with asyncio.TaskGroup() as group:
        writer = group.create_task(bench.reporter.run())
        await bench.preparer.prepare(ref())
        await bench.preparer.prepare(ref())
        await idle()
        writer.cancel()
    assert bench.api.gets == ["worker-1"]
    assert [bench.api.conditions(0)] == [{"Ready": ("True", "Prepared")}]
    assert len(bench.api.applied) == 1
    assert bench.api.applied[0]["status"]["devices"][0]["data"] == {"domain": DOMAIN, "clique": CLIQUE, "index": 0}
    assert set(bench.api.applied[0]) == {"apiVersion", "kind", "metadata", "status"}
    assert bench.events.seen == []


async def test_prepare_waits_until_imex_is_ready_for_its_domain(tmp_path: Path) -> None:
    bench = Bench(tmp_path, prompt=False)
    bench.api.add(a_claim())
    async with asyncio.TaskGroup() as group:
        call = group.create_task(bench.preparer.prepare(ref()))
        await idle()
        assert not call.done()
        bench.join(index=5)
        bench.link.ready(OTHER, index=5)
        await idle()
        assert not call.done()
        bench.link.ready(DOMAIN, index=4)
        await idle()
        assert not call.done(), "ready at another index than its row has"
        bench.link.ready(DOMAIN, index=5)
        await idle()
        assert call.done()


async def test_a_wait_of_five_seconds_is_told_in_the_claim_with_its_reason(tmp_path: Path) -> None:
    bench = Bench(tmp_path, prompt=False)
    bench.api.add(a_claim())
    bench.join()
    async with asyncio.TaskGroup() as group:
        writer = group.create_task(bench.reporter.run())
        call = group.create_task(bench.preparer.prepare(ref()))
        await asyncio.sleep(4.9)
        assert bench.api.applied == []
        await asyncio.sleep(0.2)
        assert bench.api.conditions() == {"Ready": ("False", "ImexStarting")}
        bench.link.obey()
        await call
        await idle()
        assert bench.api.conditions() == {"Ready": ("True", "Prepared")}
        assert len(bench.api.applied) == 2
        assert bench.events.seen == []
        writer.cancel()


async def test_at_the_deadline_the_answer_says_what_was_missing(tmp_path: Path) -> None:
    bench = Bench(tmp_path, prompt=False)
    bench.api.add(a_claim())
    bench.join()
    bench.link.say(State(domain=DOMAIN, index=0, phase="Failed", reason="ImexInUse", message="port 50000 is taken"))
    began = asyncio.get_running_loop().time()
    with pytest.raises(Refusal, match=r"team/worker-1: not prepared within 40 s.*ImexInUse.*port 50000") as caught:
        await bench.preparer.prepare(ref())
    assert asyncio.get_running_loop().time() - began == pytest.approx(40, abs=0.1)
    assert caught.value.reason is Reason.IMEX_FAILED
    assert [(about, reason) for about, reason, _ in bench.events.seen] == [("Pod/team/pod-1", "ImexFailed")]
    assert bench.specs() == []


async def test_what_becomes_ready_after_the_failure_is_told_so_that_kubelet_can_be_called(tmp_path: Path) -> None:
    bench = Bench(tmp_path, prompt=False)
    bench.api.add(a_claim())
    bench.join()
    async with asyncio.TaskGroup() as group:
        writer = group.create_task(bench.reporter.run())
        with pytest.raises(Refusal):
            await bench.preparer.prepare(ref())
        bench.link.obey()
        await idle()
        assert bench.api.conditions() == {"Ready": ("False", "WaitingForKubelet")}
        await bench.preparer.prepare(ref())
        await idle()
        assert bench.api.conditions() == {"Ready": ("True", "Prepared")}
        writer.cancel()


async def test_a_claim_without_the_label_is_refused_with_the_remedy(bench: Bench) -> None:
    bench.api.add(a_claim(labels={}))
    bench.join()
    with pytest.raises(Refusal, match=f"resource.nvidia.com/computeDomain is missing.*set it to {DOMAIN}") as caught:
        await bench.preparer.prepare(ref())
    assert caught.value.permanent
    assert [reason for _, reason, _ in bench.events.seen] == ["NoDomainLabel"]


async def test_an_unknown_field_is_refused_in_the_words_users_search_for(bench: Bench) -> None:
    bench.api.add(a_claim(bogus=1))
    bench.join()
    async with asyncio.TaskGroup() as group:
        writer = group.create_task(bench.reporter.run())
        with pytest.raises(Refusal, match='strict decoding error: unknown field "bogus"'):
            await bench.preparer.prepare(ref())
        await idle()
        assert bench.api.conditions() == {"Ready": ("False", "BadConfig")}
        writer.cancel()


async def test_a_claim_in_another_namespace_than_its_domain_is_refused_at_once(bench: Bench) -> None:
    bench.api.add(a_claim())
    bench.join(namespace="elsewhere", index=None)
    began = asyncio.get_running_loop().time()
    with pytest.raises(Refusal, match=r"ComputeDomain elsewhere/dom .* is in another namespace") as caught:
        await bench.preparer.prepare(ref())
    assert caught.value.permanent
    assert asyncio.get_running_loop().time() == began


async def test_the_next_domain_waits_for_the_last_ones_unprepare(bench: Bench) -> None:
    bench.api.add(a_claim(1), a_claim(2, domain=OTHER))
    bench.join(DOMAIN)
    await bench.preparer.prepare(ref(1))
    bench.leave(DOMAIN)
    bench.join(OTHER)
    async with asyncio.TaskGroup() as group:
        call = group.create_task(bench.preparer.prepare(ref(2)))
        await idle()
        assert not call.done()
        assert [order.domain for order in bench.link.wanted if isinstance(order, Order)] == [DOMAIN]
        await bench.preparer.unprepare(ref(1))
        held = await call
    assert held.domain == OTHER
    assert bench.specs() == ["k8s.compute-domain.nvidia.com-claim_uid-2.json"]


async def test_a_domain_that_never_frees_the_node_is_named(bench: Bench) -> None:
    bench.api.add(a_claim(1), a_claim(2, domain=OTHER))
    bench.join(DOMAIN)
    await bench.preparer.prepare(ref(1))
    with pytest.raises(Refusal, match=rf"still holds a channel of domain {DOMAIN} \(claim team/worker-1"):
        await bench.preparer.prepare(ref(2))


async def test_imex_stays_until_the_last_claim_is_unprepared_also_without_a_row(bench: Bench) -> None:
    bench.api.add(a_claim(1), a_claim(2))
    bench.join()
    await bench.preparer.prepare(ref(1))
    await bench.preparer.prepare(ref(2))
    bench.leave()
    await bench.preparer.unprepare(ref(1))
    assert DOMAIN not in bench.link.wanted
    await bench.preparer.unprepare(ref(2))
    assert bench.link.wanted[-1] == DOMAIN


async def test_imex_stays_while_the_row_is_there(bench: Bench) -> None:
    bench.api.add(a_claim())
    bench.join()
    await bench.preparer.prepare(ref())
    await bench.preparer.unprepare(ref())
    assert DOMAIN not in bench.link.wanted
    bench.leave()
    assert bench.link.wanted[-1] == DOMAIN


async def test_the_same_claim_twice_at_once_is_one_work(tmp_path: Path) -> None:
    bench = Bench(tmp_path, prompt=False)
    bench.api.add(a_claim())
    bench.join()
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(bench.preparer.prepare(ref())) for _ in range(3)]
        await idle()
        assert bench.api.gets == ["worker-1"]
        bench.link.obey()
    assert len({call.result() for call in calls}) == 1
    assert bench.api.gets == ["worker-1"]


async def test_a_cancelled_call_hands_its_turn_to_the_one_behind_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path, prompt=False)
    bench.api.add(a_claim())
    bench.join()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(bench.preparer.prepare(ref()))
        await idle()
        second = group.create_task(bench.preparer.prepare(ref()))
        await idle()
        first.cancel()
        await idle()
        bench.link.obey()
        assert (await second).completed


async def test_a_cancelled_call_leaves_nothing_that_goes_on(tmp_path: Path) -> None:
    bench = Bench(tmp_path, prompt=False)
    bench.api.add(a_claim())
    bench.join()
    async with asyncio.TaskGroup() as group:
        call = group.create_task(bench.preparer.prepare(ref()))
        await idle()
        call.cancel()
    bench.link.obey()
    await idle()
    assert bench.specs() == []
    assert bench.state.waiting == {}
    assert not any(held.completed for held in bench.checkpoint)


async def test_unprepare_ends_a_prepare_that_waits(tmp_path: Path) -> None:
    bench = Bench(tmp_path, prompt=False)
    bench.api.add(a_claim())
    bench.join()
    async with asyncio.TaskGroup() as group:
        call = group.create_task(withdrawn(bench))
        await idle()
        assert not call.done()
        await bench.preparer.unprepare(ref())
    bench.link.obey()
    await idle()
    assert list(bench.checkpoint) == []
    assert bench.specs() == []


async def test_unprepare_ends_a_prepare_that_reads_the_claim(bench: Bench) -> None:
    bench.api.add(a_claim())
    bench.api.hold_get = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        call = group.create_task(withdrawn(bench))
        await idle()
        assert not call.done()
        await bench.preparer.unprepare(ref())


async def test_unprepare_of_an_unknown_claim_is_fine(bench: Bench) -> None:
    await bench.preparer.unprepare(ref(9))
    assert bench.specs() == []


async def test_nothing_is_written_after_unprepare(bench: Bench) -> None:
    bench.api.add(a_claim())
    bench.join()
    await bench.preparer.prepare(ref())
    await bench.preparer.unprepare(ref())
    async with asyncio.TaskGroup() as group:
        writer = group.create_task(bench.reporter.run())
        await idle()
        writer.cancel()
    assert bench.api.applied == []


async def test_a_node_without_a_fabric_starts_the_pod_and_injects_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path, fabric=Fabric())
    bench.api.add(a_claim())
    held = await bench.preparer.prepare(ref())
    assert (held.injected, held.index, held.clique) == (False, -1, "")
    assert bench.specs() == []
    assert bench.link.wanted == []
    await bench.preparer.unprepare(ref())
    assert list(bench.checkpoint) == []


async def test_all_channels_are_as_many_as_the_driver_has(bench: Bench) -> None:
    bench.settings.proc_params.write_text("ImexChannelCount: 5\n")
    bench.api.add(a_claim(allocationMode="All"))
    bench.join()
    await bench.preparer.prepare(ref())
    spec = json.loads(spec_path(bench.settings.cdi_root, "uid-1").read_bytes())
    nodes = spec["devices"][0]["containerEdits"]["deviceNodes"]
    assert [node["minor"] for node in nodes] == [0, 1, 2, 3, 4]


async def test_all_channels_are_2048_where_the_driver_does_not_say(bench: Bench) -> None:
    bench.api.add(a_claim(allocationMode="All"))
    bench.join()
    await bench.preparer.prepare(ref())
    spec = json.loads(spec_path(bench.settings.cdi_root, "uid-1").read_bytes())
    assert spec["devices"][0]["containerEdits"]["deviceNodes"][2047]["path"].endswith("/channel2047")


async def test_an_api_server_that_is_away_for_a_moment_costs_a_moment(bench: Bench) -> None:
    bench.api.add(a_claim())
    bench.api.failures = [Unreachable("connection refused", url="https://api"), TimeoutError()]
    bench.join()
    await bench.preparer.prepare(ref())
    assert len(bench.api.gets) == 3


async def test_an_api_server_that_stays_away_is_named(bench: Bench) -> None:
    bench.api.failures = [Unreachable("https://api: connection refused", url="https://api")] * 99
    with pytest.raises(Refusal, match="cannot be read: https://api: connection refused") as caught:
        await bench.preparer.prepare(ref())
    assert caught.value.reason is Reason.API_UNREACHABLE


async def test_a_claim_that_is_gone_is_refused_at_once(bench: Bench) -> None:
    with pytest.raises(Refusal, match="ResourceClaim team/worker-1 does not exist") as caught:
        await bench.preparer.prepare(ref())
    assert caught.value.permanent


async def test_a_claim_of_the_same_name_with_another_uid_is_refused(bench: Bench) -> None:
    bench.api.add(a_claim())
    other = ref()
    other = type(other)(namespace=other.namespace, name=other.name, uid="uid-old")
    with pytest.raises(Refusal, match="uid-old"):
        await bench.preparer.prepare(other)
    assert bench.events.seen == [], "the Pods of the new claim have nothing to do with it"


async def test_a_uid_that_could_leave_the_folder_is_refused(bench: Bench) -> None:
    bad = type(ref())(namespace="team", name="x", uid="../../etc/x")
    with pytest.raises(Refusal):
        await bench.preparer.prepare(bad)
    with pytest.raises(Refusal):
        await bench.preparer.unprepare(bad)


async def test_a_prepared_claim_is_answered_from_the_checkpoint_after_a_restart(bench: Bench, tmp_path: Path) -> None:
    bench.api.add(a_claim())
    bench.join()
    before = await bench.preparer.prepare(ref())
    again = Bench(tmp_path)
    again.checkpoint.load(cdi_root=again.settings.cdi_root)
    assert await again.preparer.prepare(ref()) == before
    assert again.api.gets == []


async def test_a_spec_that_somebody_removed_is_written_again(bench: Bench) -> None:
    bench.api.add(a_claim())
    bench.join()
    await bench.preparer.prepare(ref())
    spec_path(bench.settings.cdi_root, "uid-1").unlink()
    await bench.preparer.prepare(ref())
    assert bench.specs() == ["k8s.compute-domain.nvidia.com-claim_uid-1.json"]


@pytest.mark.parametrize("content", [b"", b'{"devices":[', b'{"devices":[]}', b"\xff\xfe", b'{"devices":7}'])
async def test_a_spec_that_somebody_damaged_is_written_again(bench: Bench, content: bytes) -> None:
    bench.api.add(a_claim())
    bench.join()
    await bench.preparer.prepare(ref())
    path = spec_path(bench.settings.cdi_root, ref().uid)
    before = path.read_bytes()
    path.write_bytes(content)
    await bench.preparer.prepare(ref())
    after = json.loads(path.read_bytes())
    assert after["devices"] == json.loads(before)["devices"]


async def test_without_channel_devices_the_driver_is_named(bench: Bench) -> None:
    bench.settings.proc_devices.write_text("Character devices:\n236 nvidia-caps\n")
    bench.api.add(a_claim())
    bench.join()
    with pytest.raises(Refusal, match="lists no character device nvidia-caps-imex-channels"):
        await bench.preparer.prepare(ref())


async def test_a_cdi_folder_that_cannot_be_written_is_named(bench: Bench) -> None:
    bench.api.add(a_claim())
    bench.join()
    bench.settings.cdi_root.rmdir()
    bench.settings.cdi_root.write_text("a file")
    with pytest.raises(Refusal, match=r"CDI spec .* cannot be written"):
        await bench.preparer.prepare(ref())


async def test_an_unhealthy_fabric_is_waited_for_and_named(bench: Bench) -> None:
    bench.api.add(a_claim())
    bench.join()
    bench.state.fabric = Fabric(healthy=False, clique=CLIQUE, reason="FabricStatus", message="GPU-7 reports 5.")
    async with asyncio.TaskGroup() as group:
        call = group.create_task(bench.preparer.prepare(ref()))
        await idle()
        assert not call.done()
        bench.state.fabric = Fabric(clique=CLIQUE)
        bench.state.poke()
        await call


async def test_several_pods_are_prepared_at_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path, prompt=False)
    bench.api.add(*(a_claim(number) for number in range(8)))
    bench.join()
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(bench.preparer.prepare(ref(number))) for number in range(8)]
        await idle()
        bench.link.obey()
    assert [call.result().claim.uid for call in calls] == [f"uid-{number}" for number in range(8)]
    assert len(bench.specs()) == 8


async def test_imex_is_not_turned_away_between_its_readiness_and_the_answer(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first Pod was deleted by force while its Prepare waited; the next domain's claim waits on the same node."""
    bench.api.add(a_claim(1), a_claim(2, domain=OTHER))
    bench.link.prompt = False
    bench.join(DOMAIN)
    bench.join(OTHER)
    saving = asyncio.Event()
    put = bench.checkpoint.put

    async def slow_put(prepared: PreparedClaim) -> None:
        if prepared.completed:
            await saving.wait()
        await put(prepared)

    monkeypatch.setattr(bench.checkpoint, "put", slow_put)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(bench.preparer.prepare(ref(1)))
        await idle()
        second = group.create_task(bench.preparer.prepare(ref(2)))
        await idle()
        bench.link.ready(DOMAIN)
        await idle()
        assert [order.domain for order in bench.link.wanted if isinstance(order, Order)] == [DOMAIN]
        saving.set()
        await first
        assert not second.done()
        await bench.preparer.unprepare(ref(1))
        bench.leave(DOMAIN)
        bench.link.ready(OTHER)
        await second


async def test_a_claim_whose_prepare_took_long_is_not_called_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two Pods on a node: the second is still being written down when the first is answered."""
    bench = Bench(tmp_path, prompt=False)
    bench.api.add(a_claim(1), a_claim(2))
    bench.join()
    saving = asyncio.Event()
    put = bench.checkpoint.put

    async def slow_put(prepared: PreparedClaim) -> None:
        await put(prepared)
        if prepared.completed and prepared.claim == ref(2):
            await saving.wait()

    monkeypatch.setattr(bench.checkpoint, "put", slow_put)
    async with asyncio.TaskGroup() as group:
        others = [
            group.create_task(part())
            for part in (bench.reporter.run, OutageWatch(state=bench.state, reporter=bench.reporter).run)
        ]
        calls = [group.create_task(bench.preparer.prepare(ref(number))) for number in (1, 2)]
        await asyncio.sleep(6)
        bench.link.obey()
        await calls[0]
        await idle()
        saving.set()
        await calls[1]
        await idle()
        said = [bench.api.conditions(write)["Ready"] for write in range(len(bench.api.applied))]
        assert sorted(said) == [("False", "ImexStarting")] * 2 + [("True", "Prepared")] * 2
        for task in others:
            task.cancel()
