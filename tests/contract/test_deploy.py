"""What we install, and the server's behaviour that the controller rests on: the same on both servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from interlace.api.computedomain import ComputeDomain, ComputeDomainClique
from interlace.api.core import Namespace
from interlace.api.crd import crds
from interlace.domains import cliques, places
from interlace.domains.template import template
from interlace.kube.client import Client
from interlace.kube.errors import Conflict, Invalid, KubeError
from interlace.kube.untyped import apply_manifest, untyped
from interlace.manifests import NAMESPACE, manifests
from interlace.sim.plane import Plane
from tests.waiting import eventually

TEAM = "deploy-team"
RACK = "c0ffee00-0000-4000-8000-0000000000ff.0"
OBJECTS = manifests(replicas=0)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def admin(plane: Plane) -> AsyncIterator[Client]:
    """A client that may do everything, on a server with our objects and a namespace of users."""
    config = plane.credentials("admin", groups=["system:masters"])
    async with Client(config, user_agent="test", qps=0) as client:
        for manifest in OBJECTS:
            await apply_manifest(client, manifest, manager="platform-engineer")
        await client.create(Namespace, {"metadata": {"name": TEAM}})

        async def served() -> bool:
            try:
                await client.list(ComputeDomain)
                await client.list(ComputeDomainClique)
            except KubeError:
                return False
            return True

        await eventually(served, within=15, what="our kinds are served")
        yield client


def domain(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"channel": {"resourceClaimTemplate": {"name": f"{name}-rct"}}, **spec},
    }


async def stored(admin: Client, name: str) -> dict[str, Any]:
    found: dict[str, Any] = await admin.get(untyped(ComputeDomain.resource), name, namespace=TEAM)
    return found


@pytest.mark.parametrize("obj", OBJECTS, ids=lambda obj: f"{obj['kind']}-{obj['metadata']['name']}")
async def test_applying_what_is_installed_again_changes_nothing(admin: Client, obj: dict[str, Any]) -> None:
    first = await apply_manifest(admin, obj, manager="platform-engineer")
    second = await apply_manifest(admin, obj, manager="platform-engineer")
    assert second["metadata"].get("generation") == first["metadata"].get("generation")
    for key in ("spec", "rules", "subjects", "roleRef"):
        assert second.get(key) == first.get(key)


async def test_the_definitions_become_established_without_a_complaint(admin: Client) -> None:
    for crd in crds():
        found = await apply_manifest(admin, crd, manager="platform-engineer")
        conditions = {c["type"]: c["status"] for c in found["status"]["conditions"]}
        assert conditions["Established"] == "True"
        assert conditions["NamesAccepted"] == "True"
        assert conditions.get("NonStructuralSchema", "False") == "False"


async def test_defaults_are_filled_in(admin: Client) -> None:
    await admin.create(ComputeDomain, domain("defaults"), namespace=TEAM)
    spec = (await stored(admin, "defaults"))["spec"]
    assert spec == {
        "numNodes": 0,
        "channel": {"allocationMode": "Single", "resourceClaimTemplate": {"name": "defaults-rct"}},
    }


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"metadata": {"name": "bad"}}, "spec: Required value"),
        ({"metadata": {"name": "bad"}, "spec": {"numNodes": 1}}, "spec.channel: Required value"),
        (domain("bad", numNodes=-1), "spec.numNodes"),
        (
            domain("bad", channel={"allocationMode": "Some", "resourceClaimTemplate": {"name": "t"}}),
            "spec.channel.allocationMode",
        ),
    ],
)
async def test_a_bad_domain_is_refused_with_the_path_of_the_field(
    admin: Client, body: dict[str, Any], path: str
) -> None:
    with pytest.raises(Invalid, match=path):
        await admin.create(ComputeDomain, body, namespace=TEAM)


async def test_a_spec_never_changes(admin: Client) -> None:
    await admin.create(ComputeDomain, domain("fixed"), namespace=TEAM)
    with pytest.raises(Invalid, match=r"A computeDomain\.spec is immutable"):
        await admin.merge_patch(ComputeDomain, "fixed", {"spec": {"numNodes": 2}}, namespace=TEAM)


async def test_a_status_is_written_only_through_its_subresource(admin: Client) -> None:
    await admin.create(ComputeDomain, domain("status"), namespace=TEAM)
    await admin.merge_patch(ComputeDomain, "status", {"status": {"status": "Ready"}}, namespace=TEAM)
    assert "status" not in await stored(admin, "status")
    patch = {"status": {"status": "Ready", "readyNodes": "0/0"}}
    await admin.merge_patch(ComputeDomain, "status", patch, namespace=TEAM, subresource="status")
    assert (await stored(admin, "status"))["status"] == {"status": "Ready", "readyNodes": "0/0"}


async def test_finalizers_are_patched_against_the_version_that_was_read(admin: Client) -> None:
    first = await admin.create(ComputeDomain, domain("versions"), namespace=TEAM)
    await admin.merge_patch(ComputeDomain, "versions", {"metadata": {"labels": {"a": "b"}}}, namespace=TEAM)
    patch = {"metadata": {"resourceVersion": first.metadata.resource_version, "finalizers": ["resource.nvidia.com/x"]}}
    with pytest.raises(Conflict):
        await admin.merge_patch(ComputeDomain, "versions", patch, namespace=TEAM)


async def test_a_patch_with_the_uid_of_another_object_is_refused(admin: Client) -> None:
    await admin.create(ComputeDomain, domain("uids"), namespace=TEAM)
    patch = {"metadata": {"uid": "11111111-2222-4333-8444-555555555555", "labels": {"a": "b"}}}
    with pytest.raises(Invalid, match=r"metadata\.uid"):
        await admin.merge_patch(ComputeDomain, "uids", patch, namespace=TEAM)


async def test_a_status_is_patched_against_the_version_that_was_read(admin: Client) -> None:
    first = await admin.create(ComputeDomain, domain("stale"), namespace=TEAM)
    await admin.merge_patch(ComputeDomain, "stale", {"metadata": {"labels": {"a": "b"}}}, namespace=TEAM)
    patch = {"metadata": {"resourceVersion": first.metadata.resource_version}, "status": {"status": "Ready"}}
    with pytest.raises(Conflict):
        await admin.merge_patch(ComputeDomain, "stale", patch, namespace=TEAM, subresource="status")


async def test_a_replaced_clique_carries_no_managed_fields_and_a_stale_one_is_refused(admin: Client) -> None:
    made = await admin.create(ComputeDomain, domain("clique"), namespace=TEAM)
    here = {"n1": places.Place(clique=RACK, address="10.0.0.1"), "n2": places.Place(clique=RACK, address="10.0.0.2")}
    first = cliques.plan({"n1": ()}, places=here, current={}, slots=18).drafts[RACK]
    body = cliques.body(first, domain=made, namespace=NAMESPACE, current=None)
    created = await admin.create(ComputeDomainClique, body, namespace=NAMESPACE)
    both = cliques.plan({"n1": (), "n2": ()}, places=here, current={RACK: created}, slots=18).drafts[RACK]
    body = cliques.body(both, domain=made, namespace=NAMESPACE, current=created)
    replaced = await admin.replace(ComputeDomainClique, created.metadata.name, body, namespace=NAMESPACE)
    assert [(row.node_name, row.index) for row in replaced.daemons] == [("n1", 0), ("n2", 1)]
    raw = await admin.get(untyped(ComputeDomainClique.resource), created.metadata.name, namespace=NAMESPACE)
    assert not raw["metadata"].get("managedFields")
    with pytest.raises(Conflict):
        await admin.replace(ComputeDomainClique, created.metadata.name, body, namespace=NAMESPACE)


async def test_the_claim_template_is_accepted_and_its_parameters_stay_byte_for_byte(admin: Client) -> None:
    made = await admin.create(ComputeDomain, domain("bytes"), namespace=TEAM)
    assert made.spec is not None
    body = template(made, spec=made.spec)
    path = f"/apis/resource.k8s.io/v1/namespaces/{TEAM}/resourceclaimtemplates"
    headers = {"Content-Type": "application/json"}
    raw = await admin.request("POST", path, body=msgspec.json.encode(body), headers=headers)
    sent = body["spec"]["spec"]["devices"]["config"][0]["opaque"]["parameters"]
    assert b'"parameters":' + bytes(sent) in raw
