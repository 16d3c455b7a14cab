"""The whole agent, with the rights and the token that it has in a cluster, on both API servers."""

from __future__ import annotations

import asyncio
import json
import socket
import uuid
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio

from interlace.api.computedomain import DRIVER
from interlace.api.core import Event, Pod
from interlace.api.resource import ResourceClaim, ResourceSlice
from interlace.imex.order import Order, Release, State
from interlace.kube.client import Client
from interlace.node import agent
from interlace.node.errors import RivalDriver
from interlace.node.facts import FabricState, FactsError
from interlace.sim.kubelet.dra import PluginError
from interlace.sim.plane import Plane
from tests.contract.agent_world import TEAM, WITHIN, World, ask, install, run_world
from tests.holding import hold
from tests.waiting import eventually


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def installed(plane: Plane) -> Plane:
    await install(plane)
    return plane


@pytest_asyncio.fixture(loop_scope="module")
async def world(installed: Plane) -> AsyncIterator[World]:
    async with hold(run_world(installed)) as running:
        yield running


def new_domain() -> str:
    return str(uuid.uuid4())


async def test_an_agent_registers_publishes_and_is_ready(world: World, plane: Plane) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with world.agent(http_port=port):
        published = await world.published()
        assert published.spec.pool.name == world.node
        assert published.spec.pool.resource_slice_count == 1
        assert await world.attributes() == {"type": "channel", "id": 0, "clique": world.clique, "domain": ""}

        async def ready() -> bool:
            return (await ask(port, "/readyz"))[0] == 200

        await eventually(ready, within=WITHIN)
        status, text = await ask(port, "/metrics")
        assert status == 200
        for name in (
            "nvidia_dra_requests_total",
            "nvidia_dra_requests_inflight",
            "nvidia_dra_request_duration_seconds",
            "nvidia_dra_prepared_devices",
            "nvidia_dra_node_prepare_errors_total",
            "nvidia_dra_node_unprepare_errors_total",
        ):
            assert name in text
    assert not list(world.settings.registrar_dir.iterdir()), "the sockets are gone"
    assert not (world.settings.home / "dra.sock").exists()


async def test_a_pod_costs_one_get_and_one_write_and_its_end_nothing(world: World, plane: Plane) -> None:
    domain = new_domain()
    world.host.peers = "Unknown"
    async with world.agent():
        await world.published()
        claim = await world.claim(domain)
        before = len(world.requests())
        await world.join(domain, index=3)
        ids = await world.prepare(claim)
        assert ids == [f"k8s.compute-domain.nvidia.com/claim={claim.uid}-channel-0"]

        async def told() -> bool:
            return (await world.conditions(claim)).get("Ready") == ("True", "Prepared")

        await eventually(told, within=WITHIN)
        found = await world.admin.get(ResourceClaim, claim.name, namespace=TEAM)
        assert msgspec.json.decode(found.status.devices[0].data or b"") == {
            "domain": domain,
            "clique": world.clique,
            "index": 3,
        }
        await world.unprepare(claim)
        await world.leave(domain)
        await eventually(lambda: world.host.state.domain == "", within=WITHIN)
        spent = [(r.verb, r.resource, r.subresource, r.code) for r in world.requests()[before:]]
        assert spent == [("get", "resourceclaims", "", 200), ("patch", "resourceclaims", "status", 200)]
        assert world.specs() == []


async def test_a_slice_that_somebody_deletes_or_changes_is_published_again(world: World, plane: Plane) -> None:
    async with world.agent():
        first = await world.published()
        await world.admin.delete(ResourceSlice, first.metadata.name)

        async def back() -> bool:
            found = await world.slice()
            return found is not None and found.metadata.uid != first.metadata.uid

        await eventually(back, within=WITHIN)
        await world.admin.merge_patch(
            ResourceSlice, first.metadata.name, {"spec": {"devices": [{"name": "channel-7"}]}}
        )

        async def restored() -> bool:
            found = await world.slice()
            return found is not None and [device.name for device in found.spec.devices] == ["channel-0"]

        await eventually(restored, within=WITHIN)
        found = await world.slice()
        assert found is not None
        assert found.spec.pool.generation > first.spec.pool.generation


async def test_a_fabric_that_fails_takes_its_device_out_of_every_class_and_comes_back(
    world: World, plane: Plane
) -> None:
    async with world.agent():
        await world.published()
        good = world.gpus.gpus
        world.gpus.gpus = [msgspec.structs.replace(gpu, state=FabricState.IN_PROGRESS) for gpu in good]

        async def unhealthy() -> bool:
            found = await world.attributes()
            return (found.get("type"), found.get("reason")) == ("channel-unhealthy", "FabricInProgress")

        await eventually(unhealthy, within=WITHIN)
        assert (await world.attributes())["clique"] == world.clique
        world.gpus.gpus = good

        async def healthy() -> bool:
            return await world.attributes() == {"type": "channel", "id": 0, "clique": world.clique, "domain": ""}

        await eventually(healthy, within=WITHIN)


async def test_an_agent_whose_gpus_cannot_be_read_starts_and_says_so(world: World, plane: Plane) -> None:
    world.gpus.fault = FactsError("the driver is being replaced.")
    async with world.agent():

        async def unhealthy() -> bool:
            found = await world.attributes()
            return found == {"type": "channel-unhealthy", "id": 0, "domain": "", "reason": "FactsUnreadable"}

        await eventually(unhealthy, within=WITHIN)
        world.gpus.fault = None

        async def healthy() -> bool:
            return (await world.attributes()).get("clique") == world.clique

        await eventually(healthy, within=WITHIN)


async def test_one_failed_reading_of_the_gpus_is_not_believed(world: World, plane: Plane) -> None:
    async with world.agent():
        first = await world.published()
        for fault in (FactsError("busy."), ZeroDivisionError("a fault of the binding")):
            seen = world.gpus.read_once(fault)
            async with asyncio.timeout(WITHIN):
                await seen.wait()
        found = await world.slice()
        assert found is not None
        assert found.metadata.resource_version == first.metadata.resource_version


async def test_a_node_that_moves_to_another_clique_follows_its_domains_there(world: World, plane: Plane) -> None:
    domain, old = new_domain(), world.clique
    async with world.agent():
        await world.published()
        world.gpus.gpus = [msgspec.structs.replace(gpu, clique=gpu.clique + 1000) for gpu in world.gpus.gpus]
        world.clique = f"{world.clique.rpartition('.')[0]}.{world.gpus.gpus[0].clique}"

        async def moved() -> bool:
            return (await world.attributes()).get("clique") == world.clique

        await eventually(moved, within=WITHIN)
        await world.join(domain, index=7)
        await eventually(lambda: world.host.state.domain == domain, within=WITHIN)
        await world.leave(domain)
        await eventually(lambda: world.host.state.domain == "", within=WITHIN)
    assert old != world.clique


async def test_prepare_waits_for_imex_and_says_in_the_claim_what_it_waits_for(world: World, plane: Plane) -> None:
    domain = new_domain()
    world.host.prompt = False
    async with world.agent():
        claim = await world.claim(domain)
        await world.join(domain)
        async with asyncio.TaskGroup() as group:
            call = group.create_task(world.prepare(claim))

            async def waiting() -> bool:
                return (await world.conditions(claim)).get("Ready", ("", ""))[0] == "False"

            await eventually(waiting, within=WITHIN)
            assert not call.done()
            assert world.specs() == []
            world.host.obey()
            assert await call


async def test_a_refusal_is_in_the_answer_in_the_claim_and_on_the_pod(world: World, plane: Plane) -> None:
    domain = new_domain()
    async with world.agent():
        claim = await world.claim(domain, bogus=True)
        with pytest.raises(PluginError, match='strict decoding error: unknown field "bogus"'):
            await world.prepare(claim)

        async def told() -> bool:
            events = await world.admin.list(Event, namespace=TEAM, fields=f"involvedObject.name={claim.name}")
            return "BadConfig" in {event.reason for event in events.items} and (await world.conditions(claim)).get(
                "Ready"
            ) == ("False", "BadConfig")

        await eventually(told, within=WITHIN)


async def test_a_claim_of_another_namespace_than_its_domain_is_refused(world: World, plane: Plane) -> None:
    domain = new_domain()
    async with world.agent():
        claim = await world.claim(domain)
        await world.join(domain, namespace="elsewhere")
        with pytest.raises(PluginError, match="in another namespace"):
            await world.prepare(claim)


async def test_a_restart_keeps_what_is_prepared_and_writes_nothing_again(world: World, plane: Plane) -> None:
    domain = new_domain()
    claim = await world.claim(domain)
    async with world.agent():
        await world.join(domain)
        ids = await world.prepare(claim)

        async def told() -> bool:
            return len(await world.conditions(claim)) == 2

        await eventually(told, within=WITHIN)
        specs = world.specs()
    heard = len(world.host.heard)
    before = len(world.requests())
    await eventually(lambda: not world.kubelet.names(), within=WITHIN)
    async with world.agent():
        assert await world.prepare(claim) == ids
        assert world.specs() == specs

        def looked() -> bool:
            return any(r.verb == "get" and r.name == claim.name for r in world.requests()[before:])

        await eventually(looked, within=WITHIN)
        await eventually(lambda: len(world.host.heard) > heard, within=WITHIN)
        assert all(isinstance(m, Order) and m.domain == domain for m in world.host.heard[heard:])
        await world.unprepare(claim)
    assert not [r for r in world.requests()[before:] if r.verb in {"patch", "update", "create"}]


async def test_an_agent_that_restarts_beside_unreadable_gpus_still_follows_the_domain_of_its_job(
    world: World, plane: Plane
) -> None:
    domain = new_domain()
    claim = await world.claim(domain)
    async with world.agent():
        await world.join(domain)
        await world.prepare(claim)
    await eventually(lambda: not world.kubelet.names(), within=WITHIN)
    world.gpus.fault = FactsError("the driver is being replaced.")
    heard = len(world.host.heard)
    async with world.agent():
        # A peer's change of address reaches IMEX only through the agent.
        await eventually(lambda: world.host.heard[heard:], within=WITHIN, what="an order")
        assert isinstance(world.host.heard[-1], Order)
        assert world.host.heard[-1].domain == domain
        await world.unprepare(claim)
        await world.leave(domain)
        await eventually(lambda: world.host.state.domain == "", within=WITHIN)


async def test_a_prepare_that_a_restart_cut_off_is_asked_for_again(world: World, plane: Plane) -> None:
    domain = new_domain()
    claim = await world.claim(domain)
    world.host.prompt = False

    async def cut_off() -> None:
        with pytest.raises(PluginError):
            await world.prepare(claim)

    async with asyncio.TaskGroup() as group, world.agent():
        await world.join(domain)
        group.create_task(cut_off())
        await eventually(lambda: world.host.heard, within=WITHIN)
        path = world.settings.home / "checkpoint.json"
        await eventually(lambda: path.exists() and claim.uid in path.read_text(), within=WITHIN)
    await eventually(lambda: not world.kubelet.names(), within=WITHIN)
    world.host.prompt = True
    async with world.agent():

        async def asked() -> bool:
            return (await world.conditions(claim)).get("Ready") == ("False", "WaitingForKubelet")

        await eventually(asked, within=WITHIN)
        assert await world.prepare(claim)

        async def told() -> bool:
            return (await world.conditions(claim)).get("Ready") == ("True", "Prepared")

        await eventually(told, within=WITHIN)


async def test_a_claim_that_went_while_the_agent_was_down_is_unprepared(world: World, plane: Plane) -> None:
    domain = new_domain()
    claim = await world.claim(domain)
    async with world.agent():
        await world.join(domain)
        await world.prepare(claim)
    await world.admin.delete(Pod, claim.name, namespace=TEAM, grace_period=0)
    await world.admin.delete(ResourceClaim, claim.name, namespace=TEAM)
    await world.leave(domain)
    await eventually(lambda: not world.kubelet.names(), within=WITHIN)
    async with world.agent():
        await eventually(lambda: world.specs() == [], within=WITHIN)
        await eventually(lambda: world.host.state.domain == "", within=WITHIN)
    assert isinstance(world.host.heard[-1], Release)


async def test_a_damaged_checkpoint_is_kept_aside_and_told(world: World, plane: Plane) -> None:
    domain = new_domain()
    claim = await world.claim(domain)
    async with world.agent():
        await world.join(domain)
        ids = await world.prepare(claim)
    path = world.settings.home / "checkpoint.json"
    path.write_bytes(path.read_bytes()[:-9])
    await eventually(lambda: not world.kubelet.names(), within=WITHIN)
    async with world.agent():
        assert await world.prepare(claim) == ids
        assert len(list(world.settings.home.glob("checkpoint.json.damaged-*"))) == 1

        async def told() -> bool:
            events = await world.admin.list(Event, fields=f"involvedObject.name={world.node}")
            return "CheckpointDamaged" in {event.reason for event in events.items}

        await eventually(told, within=WITHIN)
    assert json.loads(path.read_bytes())["version"] == 1


async def test_a_second_agent_on_the_node_is_refused_and_names_the_first(world: World, plane: Plane) -> None:
    assert world.config is not None
    async with world.agent():
        with pytest.raises(RivalDriver, match=r"agent\.lock is locked by another agent of this node"):
            await agent.serve(world.settings, config=world.config, facts=world.gpus)
        elsewhere = msgspec.structs.replace(world.settings, plugins_dir=world.folder / "q")
        with pytest.raises(RivalDriver, match=rf"answers on .*{DRIVER}-reg\.sock \(its endpoint is .*dra\.sock\)"):
            await agent.serve(elsewhere, config=world.config, facts=world.gpus)


async def test_slices_that_another_driver_keeps_are_named_with_their_keeper(world: World, plane: Plane) -> None:
    assert world.config is not None
    async with Client(world.admin.config, user_agent="compute-domain-kubelet-plugin") as other:
        await other.create(
            ResourceSlice,
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": f"{world.node}-other"},
                "spec": {
                    "driver": DRIVER,
                    "nodeName": world.node,
                    "pool": {"name": world.node, "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": "channel-0"}],
                },
            },
        )
    settings = msgspec.structs.replace(world.settings, rival_timeout=0.2)
    with pytest.raises(RivalDriver, match=rf"ResourceSlice {world.node}-other .*compute-domain-kubelet-plugin"):
        await agent.serve(settings, config=world.config, facts=world.gpus)
    assert not list(world.settings.registrar_dir.iterdir())


async def test_slices_that_were_left_behind_are_waited_for(world: World, plane: Plane) -> None:
    name = f"{world.node}-left"
    await world.admin.create(
        ResourceSlice,
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": name},
            "spec": {
                "driver": DRIVER,
                "nodeName": world.node,
                "pool": {"name": world.node, "generation": 4, "resourceSliceCount": 1},
                "devices": [{"name": "channel-0"}],
            },
        },
    )

    async def seen() -> bool:
        return any(r.verb == "watch" and r.resource == "resourceslices" for r in world.plane.audit())

    assert world.config is not None
    async with asyncio.TaskGroup() as group:
        running = group.create_task(agent.serve(world.settings, config=world.config, facts=world.gpus))
        await eventually(seen, within=WITHIN)
        assert world.kubelet.names() == []
        await world.admin.delete(ResourceSlice, name)
        await eventually(world.kubelet.names, within=WITHIN)

        async def ours() -> bool:
            found = await world.slice()
            return found is not None and found.metadata.name == f"{world.node}-{DRIVER}"

        await eventually(ours, within=WITHIN)
        running.cancel()


async def test_a_peer_that_is_away_is_named_in_the_claim_and_taken_back(world: World, plane: Plane) -> None:
    domain = new_domain()
    async with world.agent(peers_grace=0.1, peers_first_grace=0.1):
        claim = await world.claim(domain)
        await world.join(domain, index=2)
        await world.prepare(claim)
        state = State(domain=domain, index=2, phase="Ready")
        world.host.say(msgspec.structs.replace(state, peers="Disconnected", disconnected=[5]))

        async def away() -> bool:
            return (await world.conditions(claim)).get("PeersConnected") == ("False", "Disconnected")

        await eventually(away, within=WITHIN)
        world.host.say(msgspec.structs.replace(state, peers="Connected"))

        async def back() -> bool:
            return (await world.conditions(claim)).get("PeersConnected") == ("True", "Connected")

        await eventually(back, within=WITHIN)
