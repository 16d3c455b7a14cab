"""What is rendered for each hardware family is accepted by a real API server that tolerates no unknown field."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from interlace.fabric.family import IDS, find
from interlace.fabric.vpcs import VpcNames
from interlace.manifests.family import Plan, family_manifests
from interlace.manifests.workload import CHANNEL, TestPlan
from interlace.pods.inject import inject
from interlace.sim.plane import Plane
from tests.contract.space import CRDS, Space, a_space, our_kinds
from tests.contract.wire import APPLY, Json, admin
from tests.network_kinds import network_crds
from tests.waiting import eventually

PATHS = {
    "Namespace": "/api/v1/namespaces",
    "CustomResourceDefinition": CRDS,
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "ResourceQuota": "/api/v1/namespaces/{}/resourcequotas",
    "DaemonSet": "/apis/apps/v1/namespaces/{}/daemonsets",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "Network": "/apis/networking.gke.io/v1/networks",
    "GKENetworkParamSet": "/apis/networking.gke.io/v1/gkenetworkparamsets",
    "ComputeDomain": "/apis/resource.nvidia.com/v1beta1/namespaces/{}/computedomains",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Service": "/api/v1/namespaces/{}/services",
    "Pod": "/api/v1/namespaces/{}/pods",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
}
KEPT = {"Namespace", "CustomResourceDefinition"}
"""What the others need; these stay from one family to the next."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(real_plane: Plane) -> Plane:
    async with admin(real_plane) as wire:
        await our_kinds(wire)
        for crd in network_crds():
            assert (await wire("POST", CRDS, crd)).code == 201

        async def there() -> bool:
            return (await wire("GET", PATHS["GKENetworkParamSet"])).code == 200

        await eventually(there, within=15, what="the kinds of networking.gke.io are served")
    return real_plane


@pytest_asyncio.fixture(loop_scope="module")
async def space(served: Plane) -> AsyncIterator[Space]:
    async with a_space(served) as made:
        yield made


def rendered(id_: str, namespace: str) -> list[Json]:
    family = find(id_)
    software = family.software_for(None)

    def wire(template: Json) -> Json:
        return inject(template, family=family, software=software, channel=CHANNEL if family.node.mnnvl else "").pod

    plan = Plan(vpcs=VpcNames(prefix="acme"), test=TestPlan(namespace=namespace))
    return family_manifests(family, software=software, plan=plan, wire=wire)


def path(obj: Json) -> str:
    return PATHS[obj["kind"]].format(obj["metadata"].get("namespace", ""))


@pytest.mark.parametrize("id_", IDS)
async def test_every_object_of_a_family_is_accepted_strictly(space: Space, id_: str) -> None:
    for obj in rendered(id_, space.name):
        if obj["kind"] in KEPT:
            reply = await space.wire("POST", path(obj), obj, fieldValidation="Strict")
            assert reply.code in (201, 409), reply
        else:
            reply = await space.wire("POST", path(obj), obj, fieldValidation="Strict", dryRun="All")
            assert reply.code == 201, (obj["kind"], obj["metadata"]["name"], reply)
        assert not reply.headers.get("Warning"), reply.headers["Warning"]


async def test_applying_the_networks_of_a_family_again_changes_nothing(space: Space) -> None:
    sets = [obj for obj in rendered("a3-mega", space.name) if obj["kind"] in {"Network", "GKENetworkParamSet"}]
    assert len(sets) == 16
    for obj in sets:
        where = f"{path(obj)}/{obj['metadata']['name']}"
        replies = [
            await space.wire("PATCH", where, obj, media=APPLY, fieldManager="test", fieldValidation="Strict")
            for _ in range(2)
        ]
        assert [reply.code for reply in replies] == [201, 200]
        assert replies[0].version == replies[1].version


async def test_a_misspelt_field_would_have_been_refused(space: Space) -> None:
    (first, *_) = [obj for obj in rendered("a3-mega", space.name) if obj["kind"] == "DaemonSet"]
    spoilt = {**first, "spec": {**first["spec"], "updateStrategie": {}}}
    reply = await space.wire("POST", path(first), spoilt, fieldValidation="Strict", dryRun="All")
    assert reply.code == 400
    assert "updateStrategie" in reply.message
