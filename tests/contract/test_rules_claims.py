"""Claims, slices and their status: bytes, verbs and nodes count the same on both servers."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from interlace.kube.config import Config
from interlace.sim.plane import Plane
from tests.contract.wire import APPLY, JSON_PATCH, MERGE, STRATEGIC, Reply, Wire
from tests.contract.wire import admin as as_admin
from tests.unit.sim.rules import tables

DRIVER = "compute-domain.nvidia.com"
AGENT = "system:serviceaccount:sys:agent"
GROUP = "/apis/resource.k8s.io/v1"
CLAIMS = f"{GROUP}/namespaces/team/resourceclaims"
TEMPLATES = f"{GROUP}/namespaces/team/resourceclaimtemplates"
SLICES = f"{GROUP}/resourceslices"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
COMPACT = b'{"apiVersion":"resource.nvidia.com/v1beta1","domainID":"u","kind":"X"}'
OTHER_ORDER = b'{"kind":"X","apiVersion":"resource.nvidia.com/v1beta1","domainID":"u"}'
SPACED = b'{"apiVersion": "resource.nvidia.com/v1beta1", "domainID": "u", "kind": "X"}'
CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "Prepared",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class World:
    """An administrator, and an agent whose token is bound to a pod on node n1."""

    admin: Wire
    agent: Wire


def causes(reply: Reply) -> list[str]:
    """``field: message`` of each cause of a 422."""
    assert (reply.code, reply.reason) == (422, "Invalid"), reply
    return [f"{c['field']}: {c['message']}" for c in reply.body["details"]["causes"]]


def accepted(reply: Reply) -> dict[str, Any]:
    """The object as it was stored."""
    assert reply.code in {200, 201}, reply
    found: dict[str, Any] = reply.body
    return found


def rule(resource: str, *verbs: str, **more: Any) -> dict[str, Any]:
    return {"apiGroups": ["resource.k8s.io"], "resources": [resource], "verbs": list(verbs)} | more


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(plane: Plane) -> AsyncIterator[World]:
    async with as_admin(plane) as admin:
        for namespace in ("sys", "team"):
            accepted(await admin("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}))
        for node in ("n1", "n2"):
            accepted(await admin("POST", "/api/v1/nodes", {"metadata": {"name": node}}))
        account = {"metadata": {"name": "agent"}}
        accepted(await admin("POST", "/api/v1/namespaces/sys/serviceaccounts", account))
        rules = [
            rule("resourceclaims", "get"),
            rule("resourceclaims/status", "patch", "update"),
            rule("resourceclaims/driver", "associated-node:patch", "associated-node:update", resourceNames=[DRIVER]),
        ]
        accepted(await admin("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "agent"}, "rules": rules}))
        binding = {
            "metadata": {"name": "agent"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "agent"},
            "subjects": [{"kind": "ServiceAccount", "name": "agent", "namespace": "sys"}],
        }
        accepted(await admin("POST", f"{RBAC}/clusterrolebindings", binding))
        token = await bound_token(admin, "agent-n1", node="n1")
        async with Wire(with_token(plane, token)) as agent:
            yield World(admin, agent)


async def bound_token(admin: Wire, pod: str, *, node: str) -> str:
    """A token for the agent's account, bound to a new pod on the node."""
    spec = {
        "nodeName": node,
        "serviceAccountName": "agent",
        "containers": [{"name": "c", "image": "registry.k8s.io/pause:3.10"}],
        "automountServiceAccountToken": False,
    }
    made = accepted(await admin("POST", "/api/v1/namespaces/sys/pods", {"metadata": {"name": pod}, "spec": spec}))
    about = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": made["metadata"]["uid"]}
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"boundObjectRef": about, "expirationSeconds": 3600},
    }
    answer = accepted(await admin("POST", "/api/v1/namespaces/sys/serviceaccounts/agent/token", request))
    return str(answer["status"]["token"])


def with_token(plane: Plane, token: str) -> Config:
    """The plane's address and authority with this token."""
    known = plane.credentials("nobody")
    return Config(server=known.server, ca=known.ca, token=token)


def allocation(parameters: bytes = COMPACT, *, node: str = "n1") -> dict[str, Any]:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    opaque = {"driver": DRIVER, "parameters": msgspec.Raw(parameters)}
    return {
        "devices": {
            "config": [{"opaque": opaque, "requests": ["channel"], "source": "FromClaim"}],
            "results": [{"device": "channel-0", "driver": DRIVER, "pool": node, "request": "channel"}],
        },
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
    }


def body(name: str, **content: Any) -> bytes:
    """A claim as bytes, raw values as they are."""
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}}
    return msgspec.json.encode(head | content)


async def new_claim(admin: Wire, parameters: bytes = COMPACT, *, node: str | None = "n1") -> str:
    """Name of a new claim, allocated on the node; None leaves it unallocated."""
    name = f"claim-{next(_numbers)}"
    config = [{"requests": ["channel"], "opaque": {"driver": DRIVER, "parameters": msgspec.Raw(parameters)}}]
    requests = [{"name": "channel", "exactly": {"deviceClassName": "channel.example.com"}}]
    spec = {"devices": {"config": config, "requests": requests}}
    accepted(await admin("POST", CLAIMS, body(name, spec=spec)))
    if node is not None:
        status = {"allocation": allocation(parameters, node=node)}
        accepted(await admin("PUT", f"{CLAIMS}/{name}/status", body(name, spec=spec, status=status)))
    return name


def entry(node: str = "n1", **changes: Any) -> dict[str, Any]:
    return {"driver": DRIVER, "pool": node, "device": "channel-0", "conditions": [CONDITION]} | changes


async def report(wire: Wire, name: str, *entries: dict[str, Any]) -> Reply:
    """Entries for ``status.devices`` by server-side apply."""
    content = body(name, status={"devices": list(entries)})
    return await wire("PATCH", f"{CLAIMS}/{name}/status", content, media=APPLY, fieldManager=DRIVER, force="true")


async def test_an_agent_reports_for_its_own_node(world: World) -> None:
    name = await new_claim(world.admin)
    stored = accepted(await report(world.agent, name, entry()))
    assert stored["status"]["devices"] == [entry()]


async def test_an_agent_cannot_report_for_another_node(world: World) -> None:
    name = await new_claim(world.admin, node="n2")
    assert causes(await report(world.agent, name, entry("n2"))) == [
        (
            'status.devices: Forbidden: changing status.devices requires resource="resourceclaims/driver", '
            'verb="[arbitrary-node:patch]" permission: resourceclaims.resource.k8s.io "compute-domain.nvidia.com" is '
            f'forbidden: User "{AGENT}" cannot arbitrary-node:patch resource "resourceclaims/driver" in API group '
            '"resource.k8s.io" in the namespace "team"'
        )
    ]


async def test_a_right_for_one_driver_is_none_for_another(world: World) -> None:
    name = await new_claim(world.admin, node=None)
    other = allocation()
    other["devices"]["results"][0]["driver"] = "gpu.example.com"
    accepted(
        await world.admin("PATCH", f"{CLAIMS}/{name}/status", body(name, status={"allocation": other}), media=MERGE)
    )
    (text,) = causes(await report(world.agent, name, entry(driver="gpu.example.com")))
    assert 'verb="[associated-node:patch arbitrary-node:patch]"' in text
    assert f'User "{AGENT}" cannot associated-node:patch resource "resourceclaims/driver"' in text


async def test_an_agent_cannot_reserve(world: World) -> None:
    name = await new_claim(world.admin)
    reserved = [{"resource": "pods", "name": "p", "uid": "u"}]
    reply = await world.agent("PATCH", f"{CLAIMS}/{name}/status", {"status": {"reservedFor": reserved}}, media=MERGE)
    assert causes(reply) == [
        (
            "status.allocation: Forbidden: changing status.allocation or status.reservedFor requires "
            'resource="resourceclaims/binding", verb="patch" permission: resourceclaims.resource.k8s.io is forbidden: '
            f'User "{AGENT}" cannot patch resource "resourceclaims/binding" in API group "resource.k8s.io" '
            "at the cluster scope"
        )
    ]


WAYS: dict[str, str] = {"apply": APPLY, "merge": MERGE, "json": JSON_PATCH, "strategic": STRATEGIC, "put": ""}


@pytest.mark.parametrize(
    ("parameters", "way", "code"),
    [
        (COMPACT, "apply", 200),
        (COMPACT, "merge", 200),
        (COMPACT, "json", 200),
        (COMPACT, "strategic", 200),
        (COMPACT, "put", 200),
        (OTHER_ORDER, "apply", 422),
        (OTHER_ORDER, "merge", 200),
        (OTHER_ORDER, "json", 200),
        (OTHER_ORDER, "strategic", 422),
        (OTHER_ORDER, "put", 200),
        (SPACED, "apply", 422),
        (SPACED, "merge", 422),
        (SPACED, "json", 422),
        (SPACED, "strategic", 422),
        (SPACED, "put", 200),
    ],
)
async def test_the_bytes_of_opaque_parameters_decide_who_may_write(
    world: World, parameters: bytes, way: str, code: int
) -> None:
    name = await new_claim(world.admin, parameters)
    path = f"{CLAIMS}/{name}/status"
    if way == "apply":
        reply = await report(world.agent, name, entry())
    elif way == "put":
        content = body(name, status={"allocation": allocation(parameters), "devices": [entry()]})
        reply = await world.agent("PUT", path, content)
    elif way == "json":
        operations = [{"op": "add", "path": "/status/devices", "value": [entry()]}]
        reply = await world.agent("PATCH", path, operations, media=JSON_PATCH)
    else:
        reply = await world.agent("PATCH", path, {"status": {"devices": [entry()]}}, media=WAYS[way])
    assert reply.code == code, reply
    if code == 422:
        assert any(c.startswith("status.allocation: ") and c.endswith("field is immutable") for c in causes(reply))


@pytest.mark.parametrize("sent", [OTHER_ORDER, SPACED])
async def test_a_put_with_other_bytes_is_refused(world: World, sent: bytes) -> None:
    name = await new_claim(world.admin)
    content = body(name, status={"allocation": allocation(sent)})
    found = causes(await world.admin("PUT", f"{CLAIMS}/{name}/status", content))
    assert len(found) == 1
    assert found[0].startswith("status.allocation: Invalid value: {")
    assert found[0].endswith("field is immutable")


async def test_deallocation_takes_the_entries_along(world: World) -> None:
    name = await new_claim(world.admin)
    accepted(await report(world.agent, name, entry()))
    reply = await world.admin("PATCH", f"{CLAIMS}/{name}/status", {"status": {"allocation": None}}, media=MERGE)
    assert "devices" not in (accepted(reply).get("status") or {})


BAD_ENTRIES: list[tuple[list[dict[str, Any]], list[str]]] = [
    (
        [entry(device="channel-7")],
        [
            (
                'status.devices[0]: Invalid value: {"Driver":"compute-domain.nvidia.com","Pool":"n1",'
                '"Device":"channel-7","ShareID":""}: must be an allocated device in the claim'
            )
        ],
    ),
    ([entry(data=[])], ['status.devices[0].data: Invalid value: "<value omitted>": must be a valid JSON object']),
    (
        [entry(data={"x": "y" * 10240})],
        ["status.devices[0].data: Too long: may not be more than 10240 bytes"],
    ),
    (
        [entry(conditions=[CONDITION | {"status": "Yes"}])],
        [
            (
                'status.devices[0].conditions[0].status: Unsupported value: "Yes": supported values: "False", "True", '
                '"Unknown"'
            )
        ],
    ),
    (
        [entry(conditions=[CONDITION | {"reason": ""}])],
        ["status.devices[0].conditions[0].reason: Required value"],
    ),
    (
        [entry(conditions=[CONDITION | {"reason": "a b"}])],
        [
            (
                'status.devices[0].conditions[0].reason: Invalid value: "a b": a condition reason must start with '
                "alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must "
                "end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or "
                "'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
                "'[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"
            )
        ],
    ),
    (
        [entry(conditions=[CONDITION | {"type": f"T{n}"} for n in range(9)])],
        ["status.devices[0].conditions: Too many: 9: must have at most 8 items"],
    ),
]


@pytest.mark.parametrize(("entries", "expected"), BAD_ENTRIES)
async def test_a_malformed_entry_is_explained(world: World, entries: list[dict[str, Any]], expected: list[str]) -> None:
    name = await new_claim(world.admin)
    reply = await world.admin("PATCH", f"{CLAIMS}/{name}/status", {"status": {"devices": entries}}, media=MERGE)
    assert causes(reply) == expected


async def test_a_device_is_reported_once(world: World) -> None:
    name = await new_claim(world.admin)
    entries = [entry(), entry()]
    reply = await world.admin("PATCH", f"{CLAIMS}/{name}/status", {"status": {"devices": entries}}, media=MERGE)
    assert causes(reply) == [
        (
            'status.devices[1]: Duplicate value: {"Driver":"compute-domain.nvidia.com","Pool":"n1",'
            '"Device":"channel-0","ShareID":""}'
        )
    ]


async def test_a_reservation_needs_an_allocation(world: World) -> None:
    name = await new_claim(world.admin, node=None)
    reserved = [{"resource": "pods", "name": "p", "uid": "u"}]
    reply = await world.admin("PATCH", f"{CLAIMS}/{name}/status", {"status": {"reservedFor": reserved}}, media=MERGE)
    assert causes(reply) == ["status.reservedFor: Forbidden: may not be specified when `allocated` is not set"]


async def test_a_reservation_names_its_consumer_once(world: World) -> None:
    name = await new_claim(world.admin)
    consumer = {"resource": "pods", "name": "p", "uid": "u"}
    for reserved, expected in (
        ([consumer, consumer], 'status.reservedFor[1]: Duplicate value: "u"'),
        ([consumer | {"name": ""}], "status.reservedFor[0].name: Required value"),
    ):
        reply = await world.admin(
            "PATCH", f"{CLAIMS}/{name}/status", {"status": {"reservedFor": reserved}}, media=MERGE
        )
        assert causes(reply) == [expected]


async def test_an_allocation_fits_the_requests_of_the_claim(world: World) -> None:
    name = await new_claim(world.admin, node=None)
    wrong = allocation()
    wrong["devices"]["results"][0]["request"] = "other"
    wrong["devices"]["config"][0]["source"] = "FromThinAir"
    found = causes(await world.admin("PUT", f"{CLAIMS}/{name}/status", body(name, status={"allocation": wrong})))
    assert sorted(text.split(": ")[0] for text in found) == [
        "status.allocation.devices.config[0].source",
        "status.allocation.devices.results[0].request",
    ]


@pytest.mark.parametrize(("obj", "expected"), tables.BAD_CLAIMS)
async def test_a_bad_claim_is_refused_alone_and_in_a_template(world: World, obj: dict[str, Any], expected: str) -> None:
    assert expected in causes(await world.admin("POST", CLAIMS, obj))
    inside = {"metadata": {"name": "t"}, "spec": {"spec": obj["spec"]}}
    found = causes(await world.admin("POST", TEMPLATES, inside))
    assert expected.replace("spec.devices", "spec.spec.devices", 1) in found


@pytest.mark.parametrize(("obj", "expected"), tables.BAD_SLICES)
async def test_a_bad_slice_is_refused(world: World, obj: dict[str, Any], expected: str) -> None:
    found = causes(await world.admin("POST", SLICES, obj))
    assert any(text.startswith(expected) for text in found), found


async def test_driver_pool_and_node_of_a_slice_are_fixed(world: World) -> None:
    made = tables.resource_slice()
    made["metadata"]["name"] = "fixed"
    accepted(await world.admin("POST", SLICES, made))
    changed = {"driver": "gpu.example.com", "nodeName": "n2", "pool": {"name": "other"}}
    assert sorted(causes(await world.admin("PATCH", f"{SLICES}/fixed", {"spec": changed}, media=MERGE))) == [
        'spec.driver: Invalid value: "gpu.example.com": field is immutable',
        'spec.nodeName: Invalid value: "n2": field is immutable',
        'spec.pool.name: Invalid value: "other": field is immutable',
    ]


@pytest.mark.parametrize(("path", "kind"), [(CLAIMS, "ResourceClaim"), (TEMPLATES, "ResourceClaimTemplate")])
async def test_the_spec_of_claims_and_templates_is_fixed(world: World, path: str, kind: str) -> None:
    obj = tables.claim() if kind == "ResourceClaim" else tables.template()
    obj["metadata"]["name"] = "fixed"
    obj |= {"apiVersion": "resource.k8s.io/v1", "kind": kind}
    accepted(await world.admin("POST", path, obj))
    inner = obj["spec"] if kind == "ResourceClaim" else obj["spec"]["spec"]
    inner["devices"]["requests"][0]["exactly"]["count"] = 2
    (text,) = causes(await world.admin("PUT", f"{path}/fixed", obj))
    assert text.startswith("spec: Invalid value: {")
    assert text.endswith("field is immutable")
