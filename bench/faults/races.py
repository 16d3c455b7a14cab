"""Domains that want the same node, and schedulers that do not know what others did."""

from __future__ import annotations

import contextlib
from typing import Any, Final

from bench.faults.row import Row
from bench.faults.stage import Stage, eventually
from interlace.api.computedomain import DRIVER
from interlace.api.core import Pod
from interlace.api.meta import Resource
from interlace.api.resource import ResourceClaim
from interlace.kube.errors import ApiError, NotFound
from interlace.kube.untyped import untyped

POLICIES: Final = untyped(
    Resource("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", False)
)
BINDINGS: Final = untyped(
    Resource(
        "admissionregistration.k8s.io",
        "v1",
        "validatingadmissionpolicybindings",
        "ValidatingAdmissionPolicyBinding",
        False,
    )
)
OTHER: Final = "other-scheduler"


async def two_for_one_node(stage: Stage) -> None:
    """One of them gets the node; the other one gets it when the first is gone."""
    node = stage.cluster.gpu_nodes[0]
    stage.strike()
    for name in ("left", "right"):
        await stage.start(name, count=1, nodes=[node], gpus=0)
    first = await _first_ready(stage, "left", "right")
    second = "right" if first == "left" else "left"
    assert not stage.ready_nodes(second), "both domains have the node"
    await stage.remove(first)
    stage.mend()
    await stage.formed(second, count=1)


async def _first_ready(stage: Stage, *names: str) -> str:
    def ready() -> list[str]:
        return [name for name in names if stage.ready_nodes(name) and any(pod.ready for pod in stage.pods(name))]

    await stage.until("one of the domains", lambda: bool(ready()))
    return ready()[0]


async def forced_deletion(stage: Stage) -> None:
    """A Pod is deleted by force while another domain waits for its node."""
    node = stage.cluster.gpu_nodes[0]
    await stage.start("first", count=1, nodes=[node], gpus=0)
    (pod,) = await stage.formed("first", count=1)
    await stage.start("next", count=1, nodes=[node], gpus=0)
    await stage.until("a Pod that waits", lambda: len(stage.pods("next")) == 1)
    stage.strike()
    await stage.scale("first", count=0, nodes=[node], gpus=0)
    with contextlib.suppress(NotFound):
        await stage.cluster.client.delete(Pod, pod.metadata.name, namespace=stage.namespace, grace_period=0)
    await stage.formed("next", count=1)


async def bind(stage: Stage, pod: Pod, node: str) -> None:
    """What a second scheduler does: allocate the device without looking who has it, reserve it, bind the Pod."""
    client = stage.cluster.client

    def claims() -> list[ResourceClaim]:
        return [
            claim
            for claim in stage.cluster.claims.items()
            if any(owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references)
        ]

    await stage.until("the claim of the Pod", lambda: len(claims()) == 1)
    (claim,) = claims()
    raw: dict[str, Any] = await client.get(
        untyped(ResourceClaim.resource), claim.metadata.name, namespace=stage.namespace
    )
    devices = raw["spec"]["devices"]
    (request,) = devices["requests"]
    result = {"request": request["name"], "driver": DRIVER, "pool": node, "device": "channel-0"}
    config = [{"source": "FromClaim"} | entry for entry in devices.get("config", [])]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    status = {
        "allocation": {
            "devices": {"results": [result], "config": config},
            "nodeSelector": {"nodeSelectorTerms": [term]},
        },
        "reservedFor": [{"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}],
    }
    protection = {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}}
    await client.merge_patch(ResourceClaim, claim.metadata.name, protection, namespace=stage.namespace)
    await client.merge_patch(
        ResourceClaim, claim.metadata.name, {"status": status}, namespace=stage.namespace, subresource="status"
    )
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod.metadata.name, "namespace": stage.namespace},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    await client.create(
        untyped(Pod.resource), binding, namespace=stage.namespace, name=pod.metadata.name, subresource="binding"
    )


async def stale_scheduler(stage: Stage) -> None:
    """A second scheduler puts a Pod on a node of another domain; the Pod is moved, and its next place is a free one."""
    taken, free = stage.cluster.gpu_nodes[:2]
    await stage.start("first", count=1, nodes=[taken], gpus=0)
    await stage.formed("first", count=1)
    before = stage.uids("first")
    await stage.start("next", count=1, gpus=0, schedulerName=OTHER)
    await stage.until("its Pod", lambda: len(stage.pods("next")) == 1)
    (pod,) = stage.pods("next")
    stage.strike()
    await bind(stage, pod, taken)
    await stage.until(
        "another Pod in its place",
        lambda: len(stage.pods("next")) == 1 and pod.metadata.uid not in stage.uids("next"),
        instead=lambda: str(stage.condition("next")),
    )
    (pod,) = stage.pods("next")
    await bind(stage, pod, free)
    await stage.formed("next", count=1)
    stage.end()
    assert stage.uids("first") == before, "the Pod that had the node was replaced"
    assert stage.ready_nodes("first") == [taken]


async def binding_refused(stage: Stage) -> None:
    """Admission refuses each binding: claims are allocated and reserved for Pods that are on no node."""
    client = stage.cluster.client
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": f"{stage.namespace}-no-bindings"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": stage.namespace}},
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods/binding", "bindings"],
                    }
                ],
            },
            "validations": [{"expression": "false", "message": "no bindings today"}],
        },
    }
    use = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": f"{stage.namespace}-no-bindings"},
        "spec": {"policyName": f"{stage.namespace}-no-bindings", "validationActions": ["Deny"]},
    }
    await stage.cluster.apply(policy)
    await stage.cluster.apply(use)
    try:
        await _until_refused(stage)
        stage.strike()
        await stage.start("job", count=3)

        async def silent() -> list[str]:
            told = [event.message for event in await stage.events(ours=False) if "no bindings today" in event.message]
            return [] if told else ["no event about a refused binding"]

        await eventually(silent, within=stage.limit)
        assert not any(pod.spec.node_name for pod in stage.pods("job"))
    finally:
        await client.delete(BINDINGS, f"{stage.namespace}-no-bindings")
        await client.delete(POLICIES, f"{stage.namespace}-no-bindings")
    stage.mend()
    await stage.formed("job", count=3)


async def _until_refused(stage: Stage) -> None:
    """Admission learns of a policy a moment later; ask with a binding of a Pod that no scheduler looks at."""
    client = stage.cluster.client
    spec = {"schedulerName": "nobody", "containers": [{"name": "c", "image": "localhost/pause:1"}]}
    await client.create(untyped(Pod.resource), {"metadata": {"name": "probe"}, "spec": spec}, namespace=stage.namespace)
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "probe", "namespace": stage.namespace, "uid": "00000000-0000-4000-8000-000000000000"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": stage.cluster.gpu_nodes[0]},
    }

    async def allowed() -> list[str]:
        try:
            await client.create(
                untyped(Pod.resource), binding, namespace=stage.namespace, name="probe", subresource="binding"
            )
        except ApiError as error:
            return [] if "no bindings today" in str(error) else [str(error)]
        return ["the binding was taken"]

    await eventually(allowed, within=stage.limit)
    await client.delete(Pod, "probe", namespace=stage.namespace, grace_period=0)


ROWS: Final = (
    Row(
        name="two-domains-for-one-node",
        fault="two domains want one node",
        when="at the start of both",
        made="a Pod of each may run on that node alone",
        holds="One has the node; the other one gets it, and is Ready, as soon as the first is deleted.",
        act=two_for_one_node,
        cheap=True,
    ),
    Row(
        name="forced-deletion",
        fault="a Pod is deleted by force",
        when="while another domain waits for its node",
        made="deletion with a grace period of 0",
        holds="The next domain is Ready on the node.",
        act=forced_deletion,
        cheap=True,
    ),
    Row(
        name="stale-scheduler",
        fault="a second scheduler allocates from stale slices",
        when="while another domain has the node",
        made="a claim is allocated and its Pod bound without looking",
        holds="The Pod is evicted; the next one, put on a free node, is Ready; the first domain is untouched.",
        act=stale_scheduler,
        cheap=True,
    ),
    Row(
        name="binding-refused",
        fault="admission refuses every binding",
        when="while a domain of 3 nodes forms",
        made="a ValidatingAdmissionPolicy, deleted once an event shows a refusal",
        holds="All 3 nodes and Pods are Ready.",
        act=binding_refused,
        limit=180,
    ),
)
