"""Scheduler and controllers: the stand-ins beside the embedded server do what the real ones do beside the real one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import msgspec
import pytest_asyncio

from interlace.sim.plane import AuditRecord, Plane
from interlace.sim.platform.devicekinds import ResourceClaim, ResourceClaimTemplate
from interlace.sim.platform.kinds import Namespace, Pod, ServiceAccount
from interlace.sim.platform.workloadkinds import DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from tests.holding import hold
from tests.unit.sim.platform.objects import CLASS, DRIVER
from tests.unit.sim.platform.world import CLIQUE, PARAMETERS, World, inhabit, pod_spec, stand_ins, workload
from tests.waiting import eventually

NODES = 3


@asynccontextmanager
async def _run(plane: Plane) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        if plane.kind == "embedded":
            await stack.enter_async_context(stand_ins(plane))
        yield await stack.enter_async_context(inhabit(plane, nodes=NODES))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(plane: Plane) -> AsyncIterator[World]:
    """Three nodes with a channel and 4 GPUs each."""
    async with hold(_run(plane)) as made:
        yield made


@asynccontextmanager
async def team(cluster: World, name: str) -> AsyncIterator[World]:
    """The cluster seen from a namespace of a test's own, which is empty afterwards."""
    client = cluster.client
    await client.create(Namespace, {"metadata": {"name": name}})
    own = World(cluster.server, client, cluster.kubelets)
    own.namespace = name

    async def account() -> bool:
        return any(
            found.metadata.name == "default" for found in (await client.list(ServiceAccount, namespace=name)).items
        )

    await eventually(account, within=20, what="the account default")
    try:
        yield own
    finally:
        for kind in (Deployment, StatefulSet, DaemonSet, Job, Pod, ResourceClaim):
            options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
            await client.request("DELETE", kind.resource.path(name), body=msgspec.json.encode(options))

        async def empty() -> bool:
            return not await own.pods("") and not await own.claims()

        # Devices of one test must be free before the next begins.
        await eventually(empty, within=30, what=f"an empty namespace {name}")


async def _refusal(own: World) -> tuple[str, str]:
    """Reason and message of a pod that was not placed; AssertionError while there is none."""
    for pod in await own.pods():
        for condition in pod.status.conditions:
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                return (condition.get("reason", ""), condition.get("message", ""))
    raise AssertionError("no pod was refused")


async def test_an_allocation_has_one_form_on_both(cluster: World) -> None:
    async with team(cluster, "form") as own:
        await own.add_template()
        await own.client.create(Deployment, workload("w", spec=pod_spec(), replicas=1), namespace="form")
        pod = (await own.running(1))[0]
        claim = (await own.claims())[0]
        given = msgspec.json.decode(claim.status.allocation)
        given.pop("allocationTimestamp", None)
        assert given == {
            "devices": {
                "results": [
                    {"request": "channel", "driver": DRIVER, "pool": pod.spec.node_name, "device": "channel-0"}
                ],
                "config": [
                    {
                        "source": "FromClaim",
                        "requests": ["channel"],
                        "opaque": {"driver": DRIVER, "parameters": PARAMETERS},
                    }
                ],
            },
            "nodeSelector": {
                "nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [pod.spec.node_name]}]}
                ]
            },
        }
        assert msgspec.json.encode(PARAMETERS) in bytes(claim.status.allocation)
        consumers = [(user.resource, user.name, user.uid) for user in claim.status.reserved_for]
        assert consumers == [("pods", pod.metadata.name, pod.metadata.uid)]
        assert claim.metadata.finalizers == ["resource.kubernetes.io/delete-protection"]


async def test_a_claim_is_made_from_its_template_in_the_same_way(cluster: World) -> None:
    async with team(cluster, "made") as own:
        await own.add_template()
        body = {"metadata": {"name": "p", "labels": {"job": "x"}}, "spec": pod_spec()}
        pod = await own.client.create(Pod, body, namespace="made")
        await own.running(1)
        claim = (await own.claims())[0]
        assert claim.metadata.generate_name == "p-cd-0-"
        assert claim.metadata.labels == {"domain": "abc"}
        assert claim.metadata.annotations == {"resource.kubernetes.io/pod-claim-name": "cd-0"}
        assert msgspec.to_builtins(claim.metadata.owner_references) == [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": "p",
                "uid": pod.metadata.uid,
                "controller": True,
            }
        ]
        template = await own.client.get(ResourceClaimTemplate, "rct", namespace="made")
        assert bytes(claim.spec) == bytes(template.spec.spec)
        found = (await own.pods())[0].status.resource_claim_statuses
        assert [(entry.name, entry.resource_claim_name) for entry in found] == [("cd-0", claim.metadata.name)]


async def test_writes_of_the_scheduler_come_in_one_order(cluster: World) -> None:
    async with team(cluster, "order") as own:
        await own.add_template()
        await own.client.create(Deployment, workload("w", spec=pod_spec(), replicas=1), namespace="order")
        pod = (await own.running(1))[0]
        claim = (await own.claims())[0]

        def wrote() -> list[str]:
            records = [r for r in own.server.audit() if r.user == "system:kube-scheduler" and _is_write(r)]
            mine = [r for r in records if r.namespace == "order" and r.name in {pod.metadata.name, claim.metadata.name}]
            steps = [f"{r.verb} {r.resource}/{r.subresource}" for r in sorted(mine, key=lambda record: record.time)]
            return [step for step in steps if step != "patch pods/status"]

        wanted = ["update resourceclaims/", "update resourceclaims/status", "create pods/binding"]

        async def all_seen() -> bool:
            return wrote() == wanted

        await eventually(all_seen, within=10, what=f"the writes {wanted}")


def _is_write(record: AuditRecord) -> bool:
    return record.verb in {"create", "update", "patch"} and record.resource != "events"


async def test_pods_of_a_deployment_get_a_node_each(cluster: World) -> None:
    async with team(cluster, "spread") as own:
        await own.client.create(
            Deployment, workload("w", spec=pod_spec(gpus=1, claim=False), replicas=NODES), namespace="spread"
        )
        pods = await own.running(NODES)
        assert len({pod.spec.node_name for pod in pods}) == NODES


async def test_a_pod_too_many_gets_the_same_sentence(cluster: World) -> None:
    async with team(cluster, "full") as own:
        await own.add_template()
        await own.client.create(Deployment, workload("w", spec=pod_spec(gpus=1), replicas=NODES + 1), namespace="full")
        reason, message = await eventually(lambda: _refusal(own), within=20)
        assert reason == "Unschedulable"
        assert message.startswith("0/3 nodes are available: 3 cannot allocate all claims.")


async def test_resources_and_selectors_are_named_in_the_same_words(cluster: World) -> None:
    async with team(cluster, "words") as own:
        spec = {**pod_spec(gpus=5, claim=False)}
        await own.client.create(
            Pod, {"metadata": {"name": "p", "labels": {"job": "x"}}, "spec": spec}, namespace="words"
        )
        reason, message = await eventually(lambda: _refusal(own), within=20)
        assert reason == "Unschedulable"
        assert message.startswith("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")
        await own.client.delete(Pod, "p", namespace="words", grace_period=0)
        spec = {**pod_spec(gpus=0, claim=False), "nodeSelector": {"no": "where"}}
        await own.client.create(
            Pod, {"metadata": {"name": "q", "labels": {"job": "x"}}, "spec": spec}, namespace="words"
        )
        reason, message = await eventually(lambda: _refusal(own), within=20)
        assert message.startswith("0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.")


async def test_an_attribute_that_a_device_lacks_stops_the_pod(cluster: World) -> None:
    async with team(cluster, "lacks") as own:
        await own.add_template(selector=f"device.attributes['{DRIVER}'].gone == ''")
        await own.client.create(
            Pod, {"metadata": {"name": "p", "labels": {"job": "x"}}, "spec": pod_spec()}, namespace="lacks"
        )

        async def refused() -> bool:
            return "no such key: gone" in (await _refusal(own))[1]

        await eventually(refused, within=20)


async def test_a_device_is_free_again_when_its_pod_is_gone(cluster: World) -> None:
    async with team(cluster, "free") as own:
        body = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [_request()]}}}
        await own.client.create(ResourceClaim, body, namespace="free")
        spec = pod_spec(claim=False)
        spec["resourceClaims"] = [{"name": "cd-0", "resourceClaimName": "c"}]
        await own.client.create(
            Pod, {"metadata": {"name": "p", "labels": {"job": "x"}}, "spec": spec}, namespace="free"
        )
        await own.running(1)
        assert (await own.claims())[0].allocated
        await own.client.delete(Pod, "p", namespace="free")

        async def free() -> bool:
            claim = (await own.claims())[0]
            return not claim.allocated and not claim.status.reserved_for and not claim.metadata.finalizers

        await eventually(free, within=20, what="a claim without allocation, consumers and finalizer")


def _request() -> dict[str, Any]:
    return {"name": "channel", "exactly": {"deviceClassName": CLASS}}


async def test_a_replica_set_carries_the_hash_of_its_template(cluster: World) -> None:
    async with team(cluster, "hash") as own:
        client = own.client
        await client.create(Deployment, workload("w", spec=pod_spec(gpus=0, claim=False), replicas=1), namespace="hash")
        pod = (await own.running(1))[0]
        found = (await client.list(ReplicaSet, namespace="hash")).items[0]
        mark = found.metadata.labels["pod-template-hash"]
        assert found.metadata.name == f"w-{mark}"
        assert found.spec.selector.match_labels == {"job": "x", "pod-template-hash": mark}
        assert found.metadata.annotations["deployment.kubernetes.io/revision"] == "1"
        assert pod.metadata.labels == {"job": "x", "pod-template-hash": mark}
        assert pod.metadata.generate_name == f"w-{mark}-"

        async def settled() -> bool:
            status = (await client.get(Deployment, "w", namespace="hash")).status
            reasons = {c["type"]: (c["status"], c["reason"]) for c in status.conditions}
            return (
                status.observed_generation == 1
                and (status.replicas, status.updated_replicas, status.ready_replicas, status.available_replicas)
                == (1, 1, 1, 1)
                and reasons
                == {
                    "Available": ("True", "MinimumReplicasAvailable"),
                    "Progressing": ("True", "NewReplicaSetAvailable"),
                }
            )

        await eventually(settled, within=20, what="the status of the Deployment")


async def test_a_rolling_update_ends_with_the_new_pods_alone(cluster: World) -> None:
    async with team(cluster, "roll") as own:
        client = own.client
        await client.create(Deployment, workload("w", spec=pod_spec(gpus=0, claim=False), replicas=3), namespace="roll")
        await own.running(3)
        patch = {"spec": {"template": {"metadata": {"labels": {"v": "2"}}}}}
        await client.merge_patch(Deployment, "w", patch, namespace="roll")

        async def replaced() -> bool:
            pods = await own.pods()
            return len(pods) == 3 and all(pod.ready and pod.metadata.labels.get("v") == "2" for pod in pods)

        await eventually(replaced, within=30)
        sizes = [found.spec.replicas for found in (await client.list(ReplicaSet, namespace="roll")).items]
        assert sorted(size or 0 for size in sizes) == [0, 3]


async def test_daemons_are_pinned_by_name_and_carry_a_revision(cluster: World) -> None:
    async with team(cluster, "daemons") as own:
        spec = {**pod_spec(gpus=0, claim=False), "nodeSelector": {CLIQUE: "c.0"}}
        await own.client.create(DaemonSet, workload("d", spec=spec), namespace="daemons")
        pods = await own.running(NODES)
        for pod in pods:
            assert pod.spec.affinity is not None
            assert pod.spec.affinity.node_affinity is not None
            required = pod.spec.affinity.node_affinity.required
            assert msgspec.to_builtins(required) == {
                "nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [pod.spec.node_name]}]}
                ]
            }
            assert pod.metadata.labels["controller-revision-hash"]
            forever = {(t.key, t.effect) for t in pod.spec.tolerations if t.toleration_seconds is None}
            assert forever == {
                ("node.kubernetes.io/not-ready", "NoExecute"),
                ("node.kubernetes.io/unreachable", "NoExecute"),
                ("node.kubernetes.io/disk-pressure", "NoSchedule"),
                ("node.kubernetes.io/memory-pressure", "NoSchedule"),
                ("node.kubernetes.io/pid-pressure", "NoSchedule"),
                ("node.kubernetes.io/unschedulable", "NoSchedule"),
            }

        async def counted() -> bool:
            status = (await own.client.get(DaemonSet, "d", namespace="daemons")).status
            return (status.desired_number_scheduled, status.number_ready, status.updated_number_scheduled) == (3, 3, 3)

        await eventually(counted, within=20)


async def test_daemons_with_surge_are_replaced_one_by_one_and_no_node_is_ever_without(cluster: World) -> None:
    async with team(cluster, "surge") as own:
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
        body = workload("d", spec=pod_spec(gpus=0, claim=False), updateStrategy=rolling)
        await own.client.create(DaemonSet, body, namespace="surge")
        old = [pod.metadata.name for pod in await own.running(NODES)]
        patch = {"spec": {"template": {"metadata": {"labels": {"v": "2"}}}}}
        await own.client.merge_patch(DaemonSet, "d", patch, namespace="surge")

        async def replaced() -> bool:
            pods = await own.pods()
            return len(pods) == NODES and all(pod.ready and pod.metadata.labels.get("v") == "2" for pod in pods)

        await eventually(replaced, within=60, what="new daemons alone")
        steps = [r for r in own.server.audit() if (r.resource, r.subresource, r.namespace) == ("pods", "", "surge")]
        began = [at for at, r in enumerate(steps) if r.verb == "create"][NODES:]
        ended = [min(at for at, r in enumerate(steps) if (r.verb, r.name) == ("delete", name)) for name in old]
        # A new one, then the end of the old one beside it, and so node by node.
        order = sorted([*((at, "begun") for at in began), *((at, "ended") for at in ended)])
        assert [step for _, step in order] == ["begun", "ended"] * NODES


async def test_a_stateful_set_starts_in_order_and_stops_from_the_end(cluster: World) -> None:
    async with team(cluster, "stateful") as own:
        body = workload("s", spec=pod_spec(gpus=0, claim=False), replicas=3, serviceName="s")
        await own.client.create(StatefulSet, body, namespace="stateful")
        pods = await own.running(3, within=30)
        assert {pod.metadata.labels["apps.kubernetes.io/pod-index"] for pod in pods} == {"0", "1", "2"}
        bound = [r.name for r in own.server.audit() if r.subresource == "binding" and r.namespace == "stateful"]
        assert bound == ["s-0", "s-1", "s-2"]
        await own.client.merge_patch(StatefulSet, "s", {"spec": {"replicas": 1}}, namespace="stateful")
        assert [pod.metadata.name for pod in await own.running(1, within=30)] == ["s-0"]


async def test_an_indexed_job_completes_with_every_index(cluster: World) -> None:
    async with team(cluster, "jobs") as own:
        spec = {**pod_spec(gpus=0, claim=False), "restartPolicy": "Never"}
        body = workload(
            "j", spec=spec, labels={"ends": "Succeeded"}, completions=3, completionMode="Indexed", parallelism=2
        )
        del body["spec"]["selector"]
        await own.client.create(Job, body, namespace="jobs")

        async def complete() -> Job | None:
            found = await own.client.get(Job, "j", namespace="jobs")
            return (
                found
                if any(c["type"] == "Complete" and c["status"] == "True" for c in found.status.conditions)
                else None
            )

        found = await eventually(complete, within=30)
        assert found is not None
        assert (found.status.succeeded, found.status.completed_indexes) == (3, "0-2")
        names = sorted(pod.metadata.name.rpartition("-")[0] for pod in await own.pods("ends=Succeeded"))
        assert names == ["j-0", "j-1", "j-2"]


async def test_foreground_deletion_ends_with_nothing_left(cluster: World) -> None:
    async with team(cluster, "foreground") as own:
        await own.add_template()
        await own.client.create(Deployment, workload("w", spec=pod_spec(), replicas=2), namespace="foreground")
        await own.running(2)
        await own.client.delete(Deployment, "w", namespace="foreground", propagation="Foreground")

        async def nothing() -> bool:
            left = [
                *(await own.client.list(Deployment, namespace="foreground")).items,
                *(await own.client.list(ReplicaSet, namespace="foreground")).items,
            ]
            return not (left or await own.pods() or await own.claims())

        await eventually(nothing, within=30)
