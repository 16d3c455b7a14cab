"""Domains that are kept apart by channels: several on one node, one IMEX domain under them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from interlace.api.computedomain import (
    CHANNEL_CLASS,
    DOMAIN_LABEL,
    DRIVER,
    SHARED,
    ComputeDomain,
    ComputeDomainClique,
)
from interlace.api.core import Pod
from interlace.api.resource import ResourceClaim
from interlace.kube.errors import Invalid
from interlace.kube.untyped import untyped
from interlace.sim.cluster import NAMESPACE, Cluster
from tests.cluster.conftest import run
from tests.cluster.workloads import (
    WITHIN,
    condition,
    container,
    deployment,
    domain,
    events,
    nodes_ready,
    offers,
    pod_spec,
    pods,
)
from tests.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(server: str) -> AsyncIterator[Cluster]:
    async with run(server, nodes=2, node_grace=30.0) as running:
        yield running


def _pinned(manifest: dict[str, Any], node: str) -> dict[str, Any]:
    """The same Deployment on one node alone."""
    manifest["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    return manifest


async def _form(
    cluster: Cluster,
    name: str,
    *,
    namespace: str,
    replicas: int = 1,
    node: str = "",
    isolation: str = "Channel",
    of: str = "",
) -> list[Pod]:
    """A Deployment of ready Pods, with a domain of the same name unless they are ``of`` another."""
    if not of:
        await cluster.apply(domain(name, namespace=namespace, isolation=isolation))
    job = deployment(name, namespace=namespace, replicas=replicas, template=f"{of or name}-channel", gpus=1)
    await cluster.apply(_pinned(job, node) if node else job)

    def missing() -> str:
        found = pods(cluster, name, namespace=namespace)
        ready = nodes_ready(cluster, of or name, namespace=namespace)
        whole = len(found) == replicas and all(pod.ready and pod.spec.node_name in ready for pod in found)
        return "" if whole else f"{[(pod.spec.node_name, pod.ready) for pod in found]}, nodes {ready}"

    await cluster.signal.until(f"{name} Ready", lambda: not missing(), within=WITHIN, instead=missing)
    return pods(cluster, name, namespace=namespace)


async def _maps(cluster: Cluster) -> list[ComputeDomainClique]:
    return (await cluster.client.list(ComputeDomainClique, namespace=NAMESPACE)).items


def _channel(cluster: Cluster, pod: Pod) -> str:
    (device,) = container(cluster, pod).devices
    return device


def _claims(cluster: Cluster, name: str, *, namespace: str) -> dict[str, ResourceClaim]:
    found = cluster.domains.get(name, namespace)
    assert found is not None
    return {
        claim.metadata.uid: claim
        for claim in cluster.claims.items()
        if claim.metadata.labels.get(DOMAIN_LABEL) == found.metadata.uid
    }


async def test_two_domains_on_one_node_have_a_channel_each_and_one_ends_without_the_other(
    cluster: Cluster, namespace: str
) -> None:
    near, far = cluster.gpu_nodes
    first = await _form(cluster, "left", namespace=namespace, node=near)
    first += await _form(cluster, "left-too", namespace=namespace, node=far, of="left")
    second = await _form(cluster, "right", namespace=namespace, node=near)
    (left,) = {_channel(cluster, pod) for pod in first}
    (right,) = {_channel(cluster, pod) for pod in second}
    assert (left, right) == ("/dev/nvidia-caps-imex-channels/channel1", "/dev/nvidia-caps-imex-channels/channel2")
    (shared,) = await _maps(cluster)
    assert shared.metadata.name.startswith(f"{SHARED}.")
    assert sorted(row.node_name for row in shared.daemons) == cluster.gpu_nodes
    assert [(entry.name, entry.channel) for entry in shared.channels] == [("left", 1), ("right", 2)]

    def connected() -> bool:
        found = condition(cluster, "right", "PeersConnected", namespace=namespace)
        return found is not None and found.status == "True"

    await cluster.signal.until("connected peers", connected, within=WITHIN)
    states, claims = cluster.domains.get("right", namespace), _claims(cluster, "right", namespace=namespace)
    records = {pod.metadata.uid: container(cluster, pod) for pod in second}
    await cluster.client.delete(ComputeDomain, "left", namespace=namespace)
    for name in ("left", "left-too"):
        await cluster.apply(deployment(name, namespace=namespace, replicas=0, template="left-channel"))

    async def alone() -> bool:
        (found,) = await _maps(cluster)
        return [entry.name for entry in found.channels] == ["right"]

    await eventually(alone, within=WITHIN, every=0.1, what="a map of the other domain alone")
    # the end of the last Unprepare of the other domain is seen by all agents
    third = await _form(cluster, "third", namespace=namespace, node=near)
    assert _channel(cluster, third[0]) == "/dev/nvidia-caps-imex-channels/channel3"
    assert {pod.metadata.uid: container(cluster, pod) for pod in second} == records
    assert cluster.domains.get("right", namespace) == states
    assert _claims(cluster, "right", namespace=namespace) == claims
    for pod in second:
        told = await events(cluster, namespace, about=pod.metadata.name)
        assert [event for event in told if event.reason in {"ImexRestarted", "NodeOfOtherDomain"}] == []


async def test_a_node_of_one_kind_is_never_given_to_the_other(cluster: Cluster, namespace: str) -> None:
    (alone,) = await _form(cluster, "alone", namespace=namespace, isolation="Domain")
    among = await _form(cluster, "among", namespace=namespace, replicas=3)
    assert alone.spec.node_name not in {pod.spec.node_name for pod in among}
    assert _channel(cluster, alone) == "/dev/nvidia-caps-imex-channels/channel0"
    more = await _form(cluster, "alone", namespace=namespace, replicas=3, isolation="Domain")
    assert {pod.spec.node_name for pod in more} == {alone.spec.node_name}


async def test_all_channels_are_refused_by_the_server_and_by_prepare(cluster: Cluster, namespace: str) -> None:
    with pytest.raises(Invalid, match="channels of other domains"):
        await cluster.apply(domain("greedy", namespace=namespace, isolation="Channel", allocationMode="All"))
    await cluster.apply(domain("modest", namespace=namespace, isolation="Channel"))
    made = await cluster.client.get(ComputeDomain, "modest", namespace=namespace)
    parameters = {
        "allocationMode": "All",
        "apiVersion": "resource.nvidia.com/v1beta1",
        "domainID": made.metadata.uid,
        "kind": "ComputeDomainChannelConfig",
    }
    request = {"name": "channel", "exactly": {"deviceClassName": CHANNEL_CLASS}}
    config = {"requests": ["channel"], "opaque": {"driver": DRIVER, "parameters": parameters}}
    await cluster.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "sly", "namespace": namespace, "labels": {DOMAIN_LABEL: made.metadata.uid}},
            "spec": {"devices": {"requests": [request], "config": [config]}},
        }
    )
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "sly", "namespace": namespace},
        "spec": pod_spec(claim="sly"),
    }
    await cluster.client.create(untyped(Pod.resource), pod, namespace=namespace)

    async def told() -> str:
        found = [event.message for event in await events(cluster, namespace, about="sly")]
        return next((message for message in found if "isolation Channel" in message), "")

    message = await eventually(told, within=WITHIN, every=0.2, what="an event that says why")
    assert "use Single" in message


async def test_an_agent_that_restarts_goes_on_offering_what_it_offered(cluster: Cluster, namespace: str) -> None:
    near, far = cluster.gpu_nodes
    await _form(cluster, "steady-far", namespace=namespace, node=far, isolation="Domain")
    await _form(cluster, "steady", namespace=namespace, replicas=3, node=near, of="steady-far")
    made = await cluster.client.get(ComputeDomain, "steady-far", namespace=namespace)
    opened = dict.fromkeys(cluster.gpu_nodes, (made.metadata.uid, 8))
    await cluster.signal.until(
        "opened nodes", lambda: offers(cluster) == opened, within=WITHIN, instead=lambda: str(offers(cluster))
    )
    versions = {slice_.metadata.name: slice_.metadata.resource_version for slice_ in cluster.slices.items()}
    agents = {pod.metadata.uid: pod for pod in cluster.our_pods("agent")}
    for uid, pod in agents.items():
        cluster.fleet.nodes[pod.spec.node_name].workers[uid].kill("agent")
    await cluster.signal.until(
        "agents that are not Ready", lambda: not any(pod.ready for pod in cluster.our_pods("agent")), within=WITHIN
    )
    await cluster.until_installed()
    assert {slice_.metadata.name: slice_.metadata.resource_version for slice_ in cluster.slices.items()} == versions
    for name in ("steady", "steady-far"):
        await cluster.apply(deployment(name, namespace=namespace, replicas=0, template="steady-far-channel"))
    free = dict.fromkeys(cluster.gpu_nodes, ("", 1))
    await cluster.signal.until(
        "free nodes", lambda: offers(cluster) == free, within=WITHIN, instead=lambda: str(offers(cluster))
    )


async def test_a_pod_that_meets_another_domain_is_evicted_and_runs_when_there_is_room(
    cluster: Cluster, namespace: str
) -> None:
    node, far = cluster.gpu_nodes
    owner = await _form(cluster, "owner", namespace=namespace, node=far, isolation="Domain")
    await _form(cluster, "owner-too", namespace=namespace, replicas=2, node=node, of="owner")
    await cluster.apply(domain("guest", namespace=namespace))
    made = await cluster.client.get(ComputeDomain, "guest", namespace=namespace)
    await cluster.apply(_loose_template("loose", namespace=namespace, uid=made.metadata.uid))
    guest = deployment("guest", namespace=namespace, replicas=1, template="loose", gpus=0)
    await cluster.apply(_pinned(guest, node))
    seen: set[str] = set()

    def again() -> bool:
        seen.update(pod.metadata.name for pod in pods(cluster, "guest", namespace=namespace) if pod.spec.node_name)
        return len(seen) > 1

    await cluster.signal.until("a second pod of the guest", again, within=WITHIN)

    async def told() -> str:
        found = [event for name in seen for event in await events(cluster, namespace, about=name)]
        return next((event.message for event in found if event.reason == "NodeOfOtherDomain"), "")

    message = await eventually(told, within=WITHIN, every=0.2, what="an event that says why")
    assert f"ComputeDomain {namespace}/owner" in message
    assert "evicted" in message
    assert {pod.metadata.uid for pod in pods(cluster, "owner", namespace=namespace)} == {
        pod.metadata.uid for pod in owner
    }
    await cluster.apply(deployment("owner-too", namespace=namespace, replicas=0, template="owner-channel"))
    await cluster.signal.until(
        "a Ready pod of the guest",
        lambda: any(pod.ready for pod in pods(cluster, "guest", namespace=namespace)),
        within=WITHIN,
    )


def _loose_template(name: str, *, namespace: str, uid: str) -> dict[str, object]:
    """A claim template whose selector takes a device of anybody."""
    selector = {"cel": {"expression": f'device.attributes["{DRIVER}"].domain != "nobody"'}}
    request = {"name": "channel", "exactly": {"deviceClassName": CHANNEL_CLASS, "selectors": [selector]}}
    parameters = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "domainID": uid,
        "kind": "ComputeDomainChannelConfig",
    }
    config = {"requests": ["channel"], "opaque": {"driver": DRIVER, "parameters": parameters}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "metadata": {"labels": {DOMAIN_LABEL: uid}},
            "spec": {"devices": {"requests": [request], "config": [config]}},
        },
    }
