"""What users do with ComputeDomains and what must come of it, on both control planes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from interlace.api.computedomain import DRIVER, ComputeDomain
from interlace.api.core import Pod
from interlace.api.resource import ResourceClaim, ResourceClaimTemplate
from interlace.kube.untyped import untyped
from interlace.sim.cluster import Cluster
from tests.cluster.conftest import run
from tests.cluster.workloads import (
    WITHIN,
    condition,
    container,
    deployment,
    domain,
    events,
    nodes_ready,
    pod_spec,
    pods,
    read_domain,
)
from tests.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(server: str) -> AsyncIterator[Cluster]:
    async with run(server, nodes=4) as running:
        yield running


async def _all_ready(cluster: Cluster, job: str, *, namespace: str, count: int) -> list[Pod]:
    def ready() -> bool:
        found = pods(cluster, job, namespace=namespace)
        return len(found) == count and all(pod.ready for pod in found)

    await cluster.signal.until(f"{count} Ready pods of {job}", ready, within=WITHIN)
    return pods(cluster, job, namespace=namespace)


async def _form(cluster: Cluster, name: str, *, namespace: str, replicas: int, **spec: Any) -> list[Pod]:
    await cluster.apply(domain(name, namespace=namespace, **spec))
    await cluster.apply(deployment(name, namespace=namespace, replicas=replicas, template=f"{name}-channel"))
    found = await _all_ready(cluster, name, namespace=namespace, count=replicas)
    await cluster.signal.until(
        f"{replicas} Ready nodes of {name}",
        lambda: len(nodes_ready(cluster, name, namespace=namespace)) == replicas,
        within=WITHIN,
    )
    return found


async def test_each_pod_gets_exactly_the_first_channel(cluster: Cluster, namespace: str) -> None:
    found = await _form(cluster, "single", namespace=namespace, replicas=3)
    assert len({pod.spec.node_name for pod in found}) == 3
    for pod in found:
        assert container(cluster, pod).devices == ("/dev/nvidia-caps-imex-channels/channel0",)
    status = read_domain(cluster, "single", namespace=namespace)
    assert status is not None
    assert status.status is not None
    assert sorted(node.index for node in status.status.nodes) == [0, 1, 2]
    ready = condition(cluster, "single", "Ready", namespace=namespace)
    assert ready is not None
    assert (ready.status, ready.reason) == ("True", "Formed")


async def test_nobody_hears_anything_when_all_goes_well(cluster: Cluster, namespace: str) -> None:
    found = await _form(cluster, "quiet", namespace=namespace, replicas=2)
    for pod in found:
        ours = [
            event
            for event in await events(cluster, namespace, about=pod.metadata.name)
            if event.source.component.startswith("interlace") or event.reporting_component.startswith("interlace")
        ]
        assert ours == []


async def test_the_mode_all_gives_every_channel(cluster: Cluster, namespace: str) -> None:
    (pod,) = await _form(cluster, "every", namespace=namespace, replicas=1, allocationMode="All")
    devices = container(cluster, pod).devices
    assert len(devices) == len(set(devices)) == 2048
    assert {"/dev/nvidia-caps-imex-channels/channel0", "/dev/nvidia-caps-imex-channels/channel2047"} <= set(devices)


def _claim(name: str, *, namespace: str, parameters: dict[str, str], label: str) -> dict[str, object]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace, "labels": {"resource.nvidia.com/computeDomain": label}},
        "spec": {
            "devices": {
                "requests": [
                    {"name": "channel", "exactly": {"deviceClassName": "compute-domain-default-channel.nvidia.com"}}
                ],
                "config": [{"requests": ["channel"], "opaque": {"driver": DRIVER, "parameters": parameters}}],
            }
        },
    }


def _parameters(uid: str, **more: str) -> dict[str, str]:
    plain = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomainChannelConfig",
        "domainID": uid,
    }
    return dict(sorted((plain | more).items()))


async def _pod_with_claim(cluster: Cluster, name: str, *, namespace: str, claim: str) -> None:
    await cluster.client.create(
        untyped(Pod.resource),
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": {"job": name}},
            "spec": pod_spec(claim=claim),
        },
        namespace=namespace,
    )


async def _domain_uid(cluster: Cluster, name: str, *, namespace: str) -> str:
    made = await cluster.client.get(ComputeDomain, name, namespace=namespace)
    return made.metadata.uid


async def _until_event(cluster: Cluster, namespace: str, *, about: str, saying: str) -> str:
    """Wait for an event about an object that contains ``saying``; returns its message."""

    async def told() -> str:
        found = [event.message for event in await events(cluster, namespace, about=about)]
        return next((message for message in found if saying in message), "")

    return await eventually(told, within=WITHIN, every=0.2, what=f"an event about {about} that says {saying!r}")


async def test_an_unknown_field_in_an_opaque_config_is_refused_by_name(cluster: Cluster, namespace: str) -> None:
    await cluster.apply(domain("strict", namespace=namespace))
    uid = await _domain_uid(cluster, "strict", namespace=namespace)
    await cluster.apply(_claim("strict", namespace=namespace, parameters=_parameters(uid, color="red"), label=uid))
    await _pod_with_claim(cluster, "strict", namespace=namespace, claim="strict")
    message = await _until_event(cluster, namespace, about="strict", saying="unknown field")
    assert "color" in message
    claim = await cluster.client.get(ResourceClaim, "strict", namespace=namespace)
    (status,) = claim.status.devices
    assert [(item.type, item.status, item.reason) for item in status.conditions or []] == [
        ("Ready", "False", "BadConfig")
    ]


async def test_a_claim_in_another_namespace_is_refused_and_says_so(cluster: Cluster, namespace: str) -> None:
    await cluster.apply(domain("home", namespace=namespace))
    uid = await _domain_uid(cluster, "home", namespace=namespace)
    other = f"{namespace}-other"
    await cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    await cluster.apply(_claim("away", namespace=other, parameters=_parameters(uid), label=uid))
    await _pod_with_claim(cluster, "away", namespace=other, claim="away")
    message = await _until_event(cluster, other, about="away", saying="namespace")
    assert namespace in message
    assert nodes_ready(cluster, "home", namespace=namespace) == []
    await cluster.client.delete(Pod, "away", namespace=other)
    await cluster.client.delete(ResourceClaim, "away", namespace=other)
    await cluster.signal.until(
        "the end of the stranger",
        lambda: not [item for item in cluster.claims.items() if item.metadata.namespace == other],
        within=WITHIN,
    )


async def test_two_domains_share_a_clique_and_no_node(cluster: Cluster, namespace: str) -> None:
    first = await _form(cluster, "left", namespace=namespace, replicas=2)
    second = await _form(cluster, "right", namespace=namespace, replicas=2)
    assert not {pod.spec.node_name for pod in first} & {pod.spec.node_name for pod in second}
    for name in ("left", "right"):
        status = read_domain(cluster, name, namespace=namespace)
        assert status is not None
        assert status.status is not None
        assert sorted(node.index for node in status.status.nodes) == [0, 1]
    cliques = {pod.spec.node_name: cluster.fleet.nodes[pod.spec.node_name].tray.clique for pod in first + second}
    assert len(set(cliques.values())) == 1


async def test_pods_beyond_the_nodes_wait_with_the_schedulers_reason(cluster: Cluster, namespace: str) -> None:
    await cluster.apply(domain("crowd", namespace=namespace))
    await cluster.apply(deployment("crowd", namespace=namespace, replicas=6, template="crowd-channel"))

    def four_run() -> bool:
        found = pods(cluster, "crowd", namespace=namespace)
        return len(found) == 6 and sum(pod.ready for pod in found) == 4

    await cluster.signal.until("4 of 6 pods Ready", four_run, within=WITHIN)
    waiting = [pod for pod in pods(cluster, "crowd", namespace=namespace) if not pod.ready]
    for pod in waiting:
        message = await _until_event(cluster, namespace, about=pod.metadata.name, saying="nodes are available")
        assert "nvidia.com/gpu" in message
        assert pod.spec.node_name == ""


async def test_a_domain_with_num_nodes_is_not_ready_before_so_many_are_there(cluster: Cluster, namespace: str) -> None:
    await cluster.apply(domain("three", namespace=namespace, numNodes=3))
    await cluster.apply(deployment("three", namespace=namespace, replicas=2, template="three-channel"))
    await _all_ready(cluster, "three", namespace=namespace, count=2)
    await cluster.signal.until(
        "2 Ready nodes", lambda: len(nodes_ready(cluster, "three", namespace=namespace)) == 2, within=WITHIN
    )
    early = read_domain(cluster, "three", namespace=namespace)
    assert early is not None
    assert early.status is not None
    assert early.status.status == "NotReady"
    ready = condition(cluster, "three", "Ready", namespace=namespace)
    assert ready is not None
    assert (ready.status, ready.reason) == ("False", "TooFewNodes")
    await cluster.apply(deployment("three", namespace=namespace, replicas=3, template="three-channel"))

    def whole() -> bool:
        found = read_domain(cluster, "three", namespace=namespace)
        return found is not None and found.status is not None and found.status.status == "Ready"

    await cluster.signal.until("a Ready domain of 3 nodes", whole, within=WITHIN)


async def test_an_empty_domain_is_ready_and_has_a_template(cluster: Cluster, namespace: str) -> None:
    await cluster.apply(domain("empty", namespace=namespace))

    def ready() -> bool:
        found = read_domain(cluster, "empty", namespace=namespace)
        return found is not None and found.status is not None and found.status.status == "Ready"

    await cluster.signal.until("a Ready empty domain", ready, within=WITHIN)
    templates = untyped(ResourceClaimTemplate.resource)
    made = await cluster.client.get(templates, "empty-channel", namespace=namespace)
    (config,) = made["spec"]["spec"]["devices"]["config"]
    assert config["opaque"]["parameters"]["domainID"] == await _domain_uid(cluster, "empty", namespace=namespace)
    state = condition(cluster, "empty", "Ready", namespace=namespace)
    assert state is not None
    assert state.reason == "NoNodes"


async def test_a_template_name_that_is_taken_is_named_with_its_holder(cluster: Cluster, namespace: str) -> None:
    await cluster.apply(domain("owner", namespace=namespace, template="shared-name"))
    await cluster.signal.until(
        "the owner's template",
        lambda: (
            (found := condition(cluster, "owner", "TemplateReady", namespace=namespace)) is not None
            and found.status == "True"
        ),
        within=WITHIN,
    )
    await cluster.apply(domain("late", namespace=namespace, template="shared-name"))

    def told() -> bool:
        found = condition(cluster, "late", "TemplateReady", namespace=namespace)
        return found is not None and found.reason == "TemplateNameTaken"

    await cluster.signal.until("a condition that names the holder", told, within=WITHIN)
    found = condition(cluster, "late", "TemplateReady", namespace=namespace)
    assert found is not None
    assert "shared-name" in found.message
    assert "owner" in found.message
    message = await _until_event(cluster, namespace, about="late", saying="shared-name")
    assert "delete it" in message


async def test_a_stateful_set_that_starts_in_order_is_never_held_up_by_its_peers(
    cluster: Cluster, namespace: str
) -> None:
    await cluster.apply(domain("ordered", namespace=namespace))
    await cluster.apply(
        deployment("ordered", namespace=namespace, replicas=3, template="ordered-channel", kind="StatefulSet")
    )
    found = await _all_ready(cluster, "ordered", namespace=namespace, count=3)
    assert sorted(pod.metadata.name for pod in found) == ["ordered-0", "ordered-1", "ordered-2"]
    await cluster.signal.until(
        "3 Ready nodes", lambda: len(nodes_ready(cluster, "ordered", namespace=namespace)) == 3, within=WITHIN
    )


async def test_a_blocked_pair_is_named_within_ten_seconds_and_taken_back(cluster: Cluster, namespace: str) -> None:
    found = await _form(cluster, "split", namespace=namespace, replicas=3)

    def state() -> tuple[str, str]:
        peers = condition(cluster, "split", "PeersConnected", namespace=namespace)
        return (peers.status, peers.message) if peers else ("", "")

    await cluster.signal.until("connected peers", lambda: state()[0] == "True", within=WITHIN)
    status = read_domain(cluster, "split", namespace=namespace)
    assert status is not None
    assert status.status is not None
    first, second = (node for node in status.status.nodes if node.index in {0, 1})
    faults = [cluster.fleet.nodes[pod.spec.node_name].tray.root / "etc/imex-faults.json" for pod in found]
    for path in faults:
        path.write_text(f'{{"blocked": [[{first.index}, {second.index}]]}}')
    await cluster.signal.until(
        "a condition that names both nodes",
        lambda: state()[0] == "False" and first.name in state()[1] and second.name in state()[1],
        within=10,
    )
    # what the old status fields mean has not changed
    assert len(nodes_ready(cluster, "split", namespace=namespace)) == 3
    for path in faults:
        path.write_text("{}")
    await cluster.signal.until("connected peers again", lambda: state()[0] == "True", within=WITHIN)
