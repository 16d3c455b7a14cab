"""Claims that come to an end in unusual order: their domain is gone, their Pod is, or they were never prepared."""

from __future__ import annotations

from typing import Any

import pytest
from grpclib.client import Channel, UnaryUnaryMethod

from interlace.api.computedomain import ComputeDomain
from interlace.api.meta import Resource
from interlace.kube.untyped import untyped
from interlace.node.proto import dra_v1_pb2 as pb
from testbed.node import Node
from tests.node import gpus, jobs
from tests.node.machine import container_id, find_process, read_checkpoint
from tests.node.world import DEPLOYMENT, EVENT, NAMESPACE, POD, WITHIN, WORKLOAD_IMAGE, World, until_clean
from tests.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]

TEMPLATE = untyped(Resource("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", True))
PLUGIN = "/var/lib/kubelet/plugins/compute-domain.nvidia.com"


async def until_said(world: World, namespace: str, part: str) -> None:
    """Wait for an event in the namespace."""

    async def said() -> bool:
        found = [event.get("message", "") for event in (await world.client.list(EVENT, namespace=namespace)).items]
        assert any(part in message for message in found), found
        return True

    await eventually(said, within=WITHIN, every=0.2, what=f"an event: {part}")


async def delete_domain(world: World, namespace: str) -> None:
    """Delete it and wait until it is gone."""
    await world.client.delete(ComputeDomain, jobs.DOMAIN_NAME, namespace=namespace)

    async def gone() -> bool:
        return not (await world.client.list(ComputeDomain, namespace=namespace)).items

    await eventually(gone, within=WITHIN, every=0.1, what="the end of the domain")


async def test_a_pod_that_outlives_its_domain_keeps_its_channel_is_told_and_leaves_nothing(
    node: World, namespace: str
) -> None:
    (machine,) = node.nodes.values()
    await node.apply(jobs.domain(namespace))
    await node.apply(jobs.workload(namespace, replicas=1))
    (before,) = await node.until_ready(namespace, labels=jobs.JOB, count=1)
    await delete_domain(node, namespace)
    await until_said(node, namespace, "was deleted while this Pod runs: the Pod keeps its channel")
    (pod,) = await node.until_ready(namespace, labels=jobs.JOB, count=1)
    assert container_id(pod) == container_id(before)
    assert await node.execute(pod, "helper", "open", f"{gpus.CHANNELS}/channel0") == "ENXIO\n"
    await node.client.delete(DEPLOYMENT, jobs.DEPLOYMENT_NAME, namespace=namespace, propagation="Background")
    await node.until_ready(namespace, labels=jobs.JOB, count=0)
    await until_clean(machine)


async def test_a_pod_for_a_domain_that_is_gone_is_told_so_and_leaves_nothing_when_it_is_deleted_meanwhile(
    node: World, namespace: str
) -> None:
    (machine,) = node.nodes.values()
    agent = find_process(machine, "-m interlace.node")
    await node.apply(jobs.domain(namespace))
    await node.apply(await copied_template(node, namespace))
    await delete_domain(node, namespace)
    await node.apply(claiming("late", namespace))
    # Written ahead: the claim stands there as soon as Prepare has begun. It ends without having prepared anything.
    await eventually(lambda: read_checkpoint(machine)["claims"], within=WITHIN, what="a Prepare that waits")
    await node.client.delete(POD, "late", namespace=namespace)
    await until_said(node, namespace, "check that a ComputeDomain with this uid exists in namespace")
    await node.until_ready(namespace, labels="job=late", count=0)
    await until_clean(machine)
    assert find_process(machine, "-m interlace.node") == agent


async def copied_template(world: World, namespace: str) -> dict[str, Any]:
    """A template of our own with the content of the domain's."""
    found: list[Any] = []

    async def made() -> bool:
        found[:] = (await world.client.list(TEMPLATE, namespace=namespace)).items
        return bool(found)

    await eventually(made, within=WITHIN, every=0.1, what="the domain's template")
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "kept", "namespace": namespace},
        "spec": found[0]["spec"],
    }


def claiming(name: str, namespace: str) -> dict[str, Any]:
    """A Pod with a claim from the template ``kept``."""
    container = {"name": "ctr", "image": WORKLOAD_IMAGE, "command": ["mnnvl-workload"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"job": name}},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [container | {"resources": {"claims": [{"name": "channel"}]}}],
            "resourceClaims": [{"name": "channel", "resourceClaimTemplateName": "kept"}],
        },
    }


async def test_a_claim_that_was_never_prepared_is_unprepared_without_a_word(node: World) -> None:
    (machine,) = node.nodes.values()
    claim = pb.Claim(namespace="team", name="unknown", uid="6b1c0f9e-0000-4000-8000-000000000001")
    answer = await call(machine, "NodeUnprepareResources", pb.NodeUnprepareResourcesRequest(claims=[claim]))
    assert {uid: answer.claims[uid].error for uid in answer.claims} == {claim.uid: ""}
    await node.until_ready(NAMESPACE, labels="app.kubernetes.io/component=agent", count=1)


async def call(machine: Node, method: str, request: Any) -> Any:
    """Ask the agent what kubelet would."""
    (endpoint,) = machine.box.path(PLUGIN).glob("dra*.sock")
    channel = Channel(path=str(endpoint))
    try:
        name = f"/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/{method}"
        response = getattr(pb, f"{method}Response")
        return await UnaryUnaryMethod(channel, name, type(request), response)(request, timeout=WITHIN)
    finally:
        channel.close()
