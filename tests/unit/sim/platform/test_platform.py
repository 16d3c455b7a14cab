"""The stand-ins at work on the embedded API server, with kubelets that start what is bound."""

from __future__ import annotations

from pathlib import Path

import msgspec

from interlace.api.core import Event
from interlace.api.meta import Resource
from interlace.kube.untyped import untyped
from interlace.sim.apiserver import ApiServer, errors
from interlace.sim.platform.devicekinds import Allocation, ResourceClaim, ResourceClaimSpec
from interlace.sim.platform.kinds import Namespace, Node, Pod, ServiceAccount
from interlace.sim.platform.scheduling.consumption import FINALIZER
from interlace.sim.platform.workloadkinds import DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from tests.unit.sim.platform.objects import allocation, request
from tests.unit.sim.platform.world import CLIQUE, World, inhabit, pod_spec, stand_ins, workload, world
from tests.waiting import eventually

ConfigMap = untyped(Resource("", "v1", "configmaps", "ConfigMap", True))
SCHEDULER = "system:kube-scheduler"


async def deploy(cluster: World, replicas: int, *, gpus: int = 4) -> None:
    near = {"topologyKey": CLIQUE, "labelSelector": {"matchLabels": {"job": "x"}}}
    spec = pod_spec(gpus=gpus)
    spec["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}
    await cluster.client.create(Deployment, workload("w", spec=spec, replicas=replicas), namespace="default")


async def scale(cluster: World, replicas: int) -> None:
    await cluster.client.merge_patch(Deployment, "w", {"spec": {"replicas": replicas}}, namespace="default")


async def unscheduled(cluster: World) -> tuple[str, str]:
    """Reason and message of a pod that was not placed; AssertionError while there is none."""
    for pod in await cluster.pods():
        for condition in pod.status.conditions:
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                return (condition["reason"], condition["message"])
    raise AssertionError("no pod was refused")


async def nothing_left(cluster: World) -> bool:
    sets = (await cluster.client.list(ReplicaSet, namespace="default")).items
    return not (sets or await cluster.pods() or await cluster.claims())


async def test_a_deployment_becomes_pods_with_a_device_each_on_nodes_of_their_own(tmp_path: Path) -> None:
    async with world(tmp_path, nodes=6) as cluster:
        await cluster.add_template()
        await deploy(cluster, 6)
        pods = await cluster.running(6)
        assert {pod.spec.node_name for pod in pods} == {f"n-{i}" for i in range(6)}
        claims = {claim.metadata.name: claim for claim in await cluster.claims()}
        for pod in pods:
            claim = claims[pod.status.resource_claim_statuses[0].resource_claim_name or ""]
            assert claim.metadata.labels == {"domain": "abc"}
            assert claim.metadata.finalizers == [FINALIZER]
            assert [entry.uid for entry in claim.status.reserved_for] == [pod.metadata.uid]
            given = msgspec.json.decode(claim.status.allocation, type=Allocation)
            assert [result.pool for result in given.devices.results] == [pod.spec.node_name]
            asked = msgspec.json.decode(claim.spec, type=ResourceClaimSpec).devices.config
            assert bytes(given.devices.config[0].opaque.parameters) == bytes(asked[0].opaque.parameters)  # type: ignore[union-attr]


async def test_the_scheduler_writes_in_the_real_order_and_without_conflicts(tmp_path: Path) -> None:
    async with world(tmp_path, nodes=2) as cluster:
        await cluster.add_template()
        await deploy(cluster, 2)
        pods = await cluster.running(2)
        await eventually(lambda: _scheduled(cluster, 2), within=10)
        records = [r for r in cluster.server.audit() if r.user == SCHEDULER and r.verb in {"create", "update", "patch"}]
        assert {record.code for record in records} <= {200, 201}
        for pod in pods:
            claim = pod.status.resource_claim_statuses[0].resource_claim_name
            wrote = [
                f"{r.verb} {r.resource}/{r.subresource}"
                for r in sorted(records, key=lambda record: record.time)
                if r.name in {claim, pod.metadata.name}
            ]
            assert wrote == ["update resourceclaims/", "update resourceclaims/status", "create pods/binding"]
        assert all(r.user_agent == "simulated-scheduler" for r in records)


async def _scheduled(cluster: World, count: int) -> list[Event] | None:
    found = await cluster.events("Scheduled")
    if len(found) < count:
        return None
    assert {event.source.component for event in found} == {"simulated-scheduler"}
    return found


async def test_a_pod_too_many_says_why_and_starts_when_a_device_is_free(tmp_path: Path) -> None:
    async with world(tmp_path, nodes=2) as cluster:
        await cluster.add_template()
        await deploy(cluster, 3, gpus=1)
        why = await eventually(lambda: unscheduled(cluster), within=10)
        assert why == ("Unschedulable", "0/2 nodes are available: 2 cannot allocate all claims.")
        events = await eventually(lambda: cluster.events("FailedScheduling"), within=10)
        assert events[0].type == "Warning"
        await cluster.add_node("n-2")
        await cluster.running(3)


async def test_pods_wait_for_a_template_that_comes_later(tmp_path: Path) -> None:
    async with world(tmp_path, nodes=1) as cluster:
        await deploy(cluster, 1)
        reason, message = await eventually(lambda: unscheduled(cluster), within=10)
        assert reason == "Unschedulable"
        assert "to be created" in message
        events = await eventually(lambda: cluster.events("FailedResourceClaimCreation"), within=10)
        assert "rct" in events[0].message
        await cluster.add_template()
        await cluster.running(1)


async def test_a_selector_that_fails_on_one_slice_stops_scheduling_with_its_error(tmp_path: Path) -> None:
    async with world(tmp_path, nodes=1) as cluster:
        await cluster.add_template(selector="device.attributes['compute-domain.nvidia.com'].gone == ''")
        await deploy(cluster, 1)
        reason, message = await eventually(lambda: unscheduled(cluster), within=10)
        assert reason == "SchedulerError"
        assert "no such key: gone" in message


async def test_writes_that_the_server_refuses_are_made_again(tmp_path: Path) -> None:
    async with ApiServer(state_dir=tmp_path) as server, stand_ins(server), inhabit(server, nodes=3) as cluster:
        await cluster.add_template()
        server.faults.refuse(5, lambda: errors.internal("try later"), resource="resourceclaims")
        await deploy(cluster, 3)
        pods = await cluster.running(3)
        assert len({pod.spec.node_name for pod in pods}) == 3


async def test_watches_that_break_and_expire_lose_nothing(tmp_path: Path) -> None:
    async with ApiServer(state_dir=tmp_path) as server, stand_ins(server), inhabit(server, nodes=4) as cluster:
        await cluster.add_template()
        await deploy(cluster, 2)
        await cluster.running(2)
        assert server.faults.drop_watches()
        await scale(cluster, 4)
        await cluster.running(4)
        server.faults.expire_history()
        assert server.faults.expire_watches()
        await scale(cluster, 1)
        await cluster.running(1)

        async def one_claim() -> bool:
            return len(await cluster.claims()) == 1

        await eventually(one_claim, within=20)


async def test_an_unused_allocation_on_a_cordoned_node_is_made_anew_elsewhere(tmp_path: Path) -> None:
    async with world(tmp_path, nodes=2) as cluster:
        body = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request()]}}}
        await cluster.client.create(ResourceClaim, body, namespace="default")
        status = {"status": {"allocation": allocation("n-0")}}
        await cluster.client.merge_patch(ResourceClaim, "c", status, namespace="default", subresource="status")
        await cluster.client.merge_patch(Node, "n-0", {"spec": {"unschedulable": True}})
        spec = pod_spec(claim=False)
        spec["resourceClaims"] = [{"name": "cd-0", "resourceClaimName": "c"}]
        pod = {"metadata": {"name": "p", "labels": {"job": "x"}}, "spec": spec}
        await cluster.client.create(Pod, pod, namespace="default")
        assert [pod.spec.node_name for pod in await cluster.running(1)] == ["n-1"]


async def test_deleting_the_deployment_leaves_nothing(tmp_path: Path) -> None:
    async with world(tmp_path, nodes=3) as cluster:
        await cluster.add_template()
        await deploy(cluster, 3)
        await cluster.running(3)
        await cluster.client.delete(Deployment, "w", namespace="default")
        await eventually(lambda: nothing_left(cluster), within=20, what="an empty namespace")


async def test_foreground_deletion_keeps_the_owner_until_its_pods_are_gone(tmp_path: Path) -> None:
    async with world(tmp_path, nodes=2) as cluster:
        await cluster.add_template()
        await deploy(cluster, 2)
        await cluster.running(2)
        cluster.kubelets.dead |= {"n-0", "n-1"}
        await cluster.client.delete(Deployment, "w", namespace="default", propagation="Foreground")

        async def all_dying() -> bool:
            return all(pod.terminating for pod in await cluster.pods())

        await eventually(all_dying, within=10)
        assert (await cluster.client.get(Deployment, "w", namespace="default")).metadata.finalizers
        for name in ("n-0", "n-1"):
            cluster.kubelets.revive(name)
        await eventually(lambda: nothing_left(cluster), within=20)

        async def gone() -> bool:
            return not (await cluster.client.list(Deployment, namespace="default")).items

        await eventually(gone, within=10)


async def test_scaling_down_and_up_frees_devices_and_takes_them_again(tmp_path: Path) -> None:
    async with world(tmp_path, nodes=3) as cluster:
        await cluster.add_template()
        await deploy(cluster, 3)
        await cluster.running(3)
        await scale(cluster, 1)
        await cluster.running(1)

        async def one_claim() -> bool:
            return len(await cluster.claims()) == 1

        await eventually(one_claim, within=10)
        await scale(cluster, 3)
        await cluster.running(3)


async def test_a_silent_node_is_tainted_and_its_pods_start_elsewhere(tmp_path: Path) -> None:
    async with world(tmp_path, nodes=3, node_grace=1.0) as cluster:
        await cluster.add_template()
        await deploy(cluster, 2)
        victim = (await cluster.running(2))[0].spec.node_name
        cluster.kubelets.dead.add(victim)

        async def tainted() -> bool:
            node = await cluster.client.get(Node, victim)
            return {taint.effect for taint in node.spec.taints} == {"NoSchedule", "NoExecute"}

        await eventually(tainted, within=15)

        async def healed() -> bool:
            pods = [pod for pod in await cluster.pods() if pod.active and pod.ready]
            return len(pods) == 2 and all(pod.spec.node_name != victim for pod in pods)

        await eventually(healed, within=15)
        stuck = [pod for pod in await cluster.pods() if pod.spec.node_name == victim]
        assert [pod.terminating for pod in stuck] == [True]
        cluster.kubelets.revive(victim)

        async def back() -> bool:
            node = await cluster.client.get(Node, victim)
            return not node.spec.taints and len(await cluster.pods()) == 2

        await eventually(back, within=15)


async def test_pods_of_a_deleted_node_are_removed_and_their_devices_freed(tmp_path: Path) -> None:
    async with world(tmp_path, nodes=3) as cluster:
        await cluster.add_template()
        await deploy(cluster, 2)
        victim = (await cluster.running(2))[0].spec.node_name
        cluster.kubelets.dead.add(victim)
        await cluster.client.delete(Node, victim)

        async def healed() -> bool:
            pods = await cluster.pods()
            ready = all(pod.ready and pod.spec.node_name != victim for pod in pods)
            return ready and len(pods) == 2 and len(await cluster.claims()) == 2

        await eventually(healed, within=20)


async def test_a_namespace_gets_an_account_and_goes_with_all_that_is_in_it(tmp_path: Path) -> None:
    async with world(tmp_path, nodes=1) as cluster:
        client = cluster.client
        await client.create(Namespace, {"metadata": {"name": "team"}})

        async def account() -> bool:
            found = (await client.list(ServiceAccount, namespace="team")).items
            return [entry.metadata.name for entry in found] == ["default"]

        await eventually(account, within=10)
        await client.create(Deployment, workload("w", spec=pod_spec(gpus=0, claim=False), replicas=2), namespace="team")
        await client.create(ConfigMap, {"metadata": {"name": "cm"}}, namespace="team")

        async def two() -> bool:
            return len(await cluster.pods(namespace="team")) == 2

        await eventually(two, within=10)
        await client.delete(Namespace, "team")

        async def gone() -> bool:
            return "team" not in {entry.metadata.name for entry in (await client.list(Namespace)).items}

        await eventually(gone, within=20)
        assert not (await client.list(ConfigMap, namespace="team")).items


async def test_dependents_of_any_kind_go_with_their_owner(tmp_path: Path) -> None:
    async with world(tmp_path, nodes=0) as cluster:
        client = cluster.client
        owner = await client.create(ConfigMap, {"metadata": {"name": "owner"}}, namespace="default")
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid}
        for name, uid in (("dependent", owner.metadata.uid), ("orphan", "no-such-uid")):
            metadata = {"name": name, "ownerReferences": [{**reference, "uid": uid}]}
            await client.create(ConfigMap, {"metadata": metadata}, namespace="default")

        async def names() -> set[str]:
            return {entry.metadata.name for entry in (await client.list(ConfigMap, namespace="default")).items}

        async def only(*wanted: str) -> bool:
            return await names() == set(wanted)

        await eventually(lambda: only("owner", "dependent"), within=10)
        await client.delete(ConfigMap, "owner", namespace="default")
        await eventually(only, within=10)


async def test_daemons_follow_the_nodes(tmp_path: Path) -> None:
    async with world(tmp_path, nodes=2) as cluster:
        spec = {**pod_spec(gpus=0, claim=False), "nodeSelector": {CLIQUE: "c.0"}}
        await cluster.client.create(DaemonSet, workload("d", spec=spec), namespace="default")
        await cluster.running(2)
        await cluster.add_node("n-2")
        pods = await cluster.running(3)
        assert {pod.spec.node_name for pod in pods} == {"n-0", "n-1", "n-2"}

        async def counted() -> bool:
            status = (await cluster.client.get(DaemonSet, "d", namespace="default")).status
            return (status.desired_number_scheduled, status.number_ready, status.updated_number_scheduled) == (3, 3, 3)

        await eventually(counted, within=10)


async def test_a_stateful_set_starts_its_pods_in_order(tmp_path: Path) -> None:
    async with world(tmp_path, nodes=1) as cluster:
        body = workload("s", spec=pod_spec(gpus=0, claim=False), replicas=3, serviceName="s")
        await cluster.client.create(StatefulSet, body, namespace="default")
        pods = sorted(await cluster.running(3), key=lambda pod: int(pod.metadata.resource_version))
        created = [
            r.name
            for r in cluster.server.audit()
            if r.verb == "create" and r.resource == "pods" and r.subresource == ""
        ]
        assert {pod.metadata.name for pod in pods} == {"s-0", "s-1", "s-2"}
        bound = [r.name for r in cluster.server.audit() if r.subresource == "binding"]
        assert bound == ["s-0", "s-1", "s-2"]
        assert len(created) == 3


async def test_a_job_runs_each_index_once_and_says_that_it_is_complete(tmp_path: Path) -> None:
    async with world(tmp_path, nodes=1) as cluster:
        spec = {**pod_spec(gpus=0, claim=False), "restartPolicy": "Never"}
        body = workload("j", spec=spec, labels={"ends": "Succeeded"}, completions=3, completionMode="Indexed")
        del body["spec"]["selector"]
        await cluster.client.create(Job, body, namespace="default")

        async def complete() -> Job | None:
            found = await cluster.client.get(Job, "j", namespace="default")
            return found if any(c["type"] == "Complete" for c in found.status.conditions) else None

        found = await eventually(complete, within=15)
        assert found is not None
        assert (found.status.succeeded, found.status.completed_indexes) == (3, "0-2")
        assert len(await cluster.pods("ends=Succeeded")) == 3
