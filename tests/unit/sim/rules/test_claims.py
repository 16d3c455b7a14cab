"""Writes to the status of a claim: whose they may be, and what they may not touch."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from interlace.sim.apiserver.auth import NODE_NAME_KEY, UserInfo
from interlace.sim.apiserver.claims import allocated_node, settle_claim_status, validate_claim_status_update
from interlace.sim.apiserver.raw import RawJson, raw_bytes, same
from interlace.sim.apiserver.rbac import Authorizer

DRIVER = "compute-domain.nvidia.com"
PARAMETERS = b'{"apiVersion":"resource.nvidia.com/v1beta1","domainID":"u"}'
ENTRY = {"driver": DRIVER, "pool": "n1", "device": "channel-0"}
AGENT = UserInfo("system:serviceaccount:sys:agent", extra={NODE_NAME_KEY: ["n1"]})


def rule(resource: str, *verbs: str, names: list[str] | None = None) -> dict[str, Any]:
    found = {"apiGroups": ["resource.k8s.io"], "resources": [f"resourceclaims/{resource}"], "verbs": list(verbs)}
    return found | ({"resourceNames": names} if names else {})


def authorizer(*rules: dict[str, Any]) -> Authorizer:
    objects = {
        "clusterroles": [{"metadata": {"name": "r"}, "rules": list(rules)}],
        "clusterrolebindings": [
            {
                "metadata": {"name": "b"},
                "roleRef": {"kind": "ClusterRole", "name": "r"},
                "subjects": [{"kind": "User", "name": AGENT.username}],
            }
        ],
    }
    return Authorizer(lambda plural, _namespace: objects.get(plural, []))


OWN_NODE = rule("driver", "associated-node:patch", names=[DRIVER])
ANY_NODE = rule("driver", "arbitrary-node:patch", names=[DRIVER])
BINDING = rule("binding", "patch", "update")


def selector(node: str) -> dict[str, Any]:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"nodeSelectorTerms": [{"matchFields": [field]}]}


def claim(*, node: str = "n1", parameters: bytes = PARAMETERS, allocated: bool = True) -> dict[str, Any]:
    found: dict[str, Any] = {
        "metadata": {"name": "c", "namespace": "y"},
        "spec": {"devices": {"requests": [{"name": "channel", "exactly": {"deviceClassName": "x"}}]}},
        "status": {},
    }
    if allocated:
        opaque = {"driver": DRIVER, "parameters": RawJson(parameters)}
        found["status"]["allocation"] = {
            "devices": {
                "results": [{"request": "channel", **ENTRY}],
                "config": [{"source": "FromClaim", "requests": ["channel"], "opaque": opaque}],
            },
            "nodeSelector": selector(node),
        }
    return found


def reported(**changes: Any) -> dict[str, Any]:
    """A claim in whose status the agent says something of its device."""
    new = claim(**changes)
    condition = {"type": "Ready", "status": "True", "reason": "Prepared", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    new["status"]["devices"] = [ENTRY | {"conditions": [condition]}]
    return new


def findings(
    new: dict[str, Any], old: dict[str, Any], *rules: dict[str, Any], user: UserInfo = AGENT, **options: Any
) -> list[str]:
    arguments = {"verb": "patch"} | options
    allowed = authorizer(*rules).allowed
    return [str(c) for c in validate_claim_status_update(new, old, user, allowed, **arguments)]


def test_an_agent_reports_for_its_own_node() -> None:
    assert not findings(reported(), claim(), OWN_NODE)


def test_an_agent_cannot_report_for_another_node() -> None:
    assert findings(reported(node="n2"), claim(node="n2"), OWN_NODE) == [
        (
            'status.devices: Forbidden: changing status.devices requires resource="resourceclaims/driver", '
            'verb="[arbitrary-node:patch]" permission: resourceclaims.resource.k8s.io "compute-domain.nvidia.com" is '
            'forbidden: User "system:serviceaccount:sys:agent" cannot arbitrary-node:patch resource '
            '"resourceclaims/driver" in API group "resource.k8s.io" in the namespace "y"'
        )
    ]
    assert not findings(reported(node="n2"), claim(node="n2"), ANY_NODE)


def test_without_the_verb_the_refusal_names_both_ways() -> None:
    (text,) = findings(reported(), claim())
    assert 'verb="[associated-node:patch arbitrary-node:patch]"' in text
    assert "cannot associated-node:patch resource" in text


@pytest.mark.parametrize(
    "user",
    [
        UserInfo(AGENT.username),
        UserInfo(AGENT.username, extra={NODE_NAME_KEY: ["n1", "n2"]}),
        UserInfo(AGENT.username, extra={NODE_NAME_KEY: ["n2"]}),
    ],
)
def test_the_node_comes_from_the_token_alone(user: UserInfo) -> None:
    assert findings(reported(), claim(), OWN_NODE, user=user)


def test_a_person_with_a_node_in_his_token_is_no_agent() -> None:
    rules = [OWN_NODE | {"resourceNames": []}]
    user = UserInfo("kate", extra=AGENT.extra)
    objects: dict[str, list[dict[str, Any]]] = {
        "clusterroles": [{"metadata": {"name": "r"}, "rules": rules}],
        "clusterrolebindings": [
            {
                "metadata": {"name": "b"},
                "roleRef": {"kind": "ClusterRole", "name": "r"},
                "subjects": [{"kind": "User", "name": "kate"}],
            }
        ],
    }
    allowed = Authorizer(lambda plural, _namespace: objects.get(plural, [])).allowed
    assert validate_claim_status_update(reported(), claim(), user, allowed, verb="patch")


def test_the_right_for_one_driver_is_none_for_another() -> None:
    old, new = claim(), reported()
    for obj in (old, new):
        obj["status"]["allocation"]["devices"]["results"].append(
            {"request": "channel", "driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-0"}
        )
    new["status"]["devices"].append({"driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-0"})
    (text,) = findings(new, old, OWN_NODE)
    assert '"gpu.nvidia.com" is forbidden' in text


def test_taking_an_entry_back_needs_the_right_too() -> None:
    assert findings(claim(), reported())
    assert not findings(claim(), reported(), OWN_NODE)


def test_the_verb_of_the_request_counts() -> None:
    assert findings(reported(), claim(), OWN_NODE, verb="update")
    update = rule("driver", "associated-node:update")
    assert not findings(reported(), claim(), update, verb="update")


def test_an_older_server_asks_for_no_verb() -> None:
    assert not findings(reported(), claim(), granular=False)


RESERVED = [{"resource": "pods", "name": "p", "uid": "u"}]


def test_reserving_and_allocating_need_the_binding_right() -> None:
    for new, old in ((claim(), claim(allocated=False)), (claim(), claim())):
        new["status"]["reservedFor"] = RESERVED
        assert findings(new, old) == [
            (
                "status.allocation: Forbidden: changing status.allocation or status.reservedFor requires "
                'resource="resourceclaims/binding", verb="patch" permission: resourceclaims.resource.k8s.io is '
                'forbidden: User "system:serviceaccount:sys:agent" cannot patch resource "resourceclaims/binding" '
                'in API group "resource.k8s.io" at the cluster scope'
            )
        ]
        assert not findings(new, old, BINDING)


@pytest.mark.parametrize(
    "parameters",
    [
        b'{"apiVersion": "resource.nvidia.com/v1beta1", "domainID": "u"}',
        b'{"domainID":"u","apiVersion":"resource.nvidia.com/v1beta1"}',
        PARAMETERS + b" ",
    ],
)
def test_an_allocation_is_compared_byte_by_byte(parameters: bytes) -> None:
    (text,) = findings(reported(parameters=parameters), claim(), OWN_NODE, BINDING)
    assert text.startswith("status.allocation: Invalid value: {")
    assert text.endswith(": field is immutable")


def test_an_allocation_changes_in_no_field_but_goes_as_a_whole() -> None:
    changed = claim()
    changed["status"]["allocation"]["devices"]["results"][0]["device"] = "channel-1"
    assert any("field is immutable" in text for text in findings(changed, claim(), BINDING))
    assert not findings(claim(allocated=False), claim(), BINDING)


def test_a_field_that_is_empty_equals_one_that_is_absent() -> None:
    new = claim()
    new["status"]["allocation"]["devices"]["constraints"] = []
    new["status"]["reservedFor"] = []
    assert not findings(new, claim())


def test_deallocation_takes_the_entries_of_the_devices_along() -> None:
    new = reported()
    del new["status"]["allocation"]
    settle_claim_status(new, reported())
    assert "devices" not in new["status"]
    assert not findings(new, reported(), BINDING)


def test_an_entry_of_a_device_that_stays_stays() -> None:
    new = reported()
    settle_claim_status(new, claim())
    assert new == reported()


def test_an_entry_needs_an_allocated_device() -> None:
    new = reported()
    new["status"]["devices"][0]["device"] = "channel-7"
    assert findings(new, claim(), OWN_NODE) == [
        (
            'status.devices[0]: Invalid value: {"Driver":"compute-domain.nvidia.com","Pool":"n1","Device":"channel-7",'
            '"ShareID":""}: must be an allocated device in the claim'
        )
    ]


def test_an_unallocated_claim_has_no_entries() -> None:
    new = reported(allocated=False)
    (text,) = findings(new, claim(allocated=False), OWN_NODE)
    assert "must be an allocated device in the claim" in text


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"driver": ""}, "status.devices[0].driver: Required value"),
        ({"pool": "A b"}, 'status.devices[0].pool: Invalid value: "A b": a lowercase RFC 1123 subdomain must'),
        ({"device": "a.b"}, 'status.devices[0].device: Invalid value: "a.b": must not contain dots'),
        ({"data": []}, 'status.devices[0].data: Invalid value: "<value omitted>": must be a valid JSON object'),
        ({"data": {"x": "y" * 10240}}, "status.devices[0].data: Too long: may not be more than 10240 bytes"),
        (
            {"conditions": [{"type": "Ready", "status": "Yes", "reason": "a b", "lastTransitionTime": "t"}]},
            'status.devices[0].conditions[0].status: Unsupported value: "Yes": supported values: "False", "True", ',
        ),
        (
            {"conditions": [{"type": "Ready", "status": "True", "reason": "a b", "lastTransitionTime": "t"}]},
            'status.devices[0].conditions[0].reason: Invalid value: "a b": a condition reason must start with',
        ),
        (
            {"conditions": [{"type": "Ready", "status": "True"}]},
            "status.devices[0].conditions[0].lastTransitionTime: Required value",
        ),
        (
            {"conditions": [{"type": str(n % 8), "status": "True"} for n in range(9)]},
            "status.devices[0].conditions: Too many: 9: must have at most 8 items",
        ),
        (
            {"conditions": [{"type": "A", "status": "True"}, {"type": "A", "status": "True"}]},
            'status.devices[0].conditions[1].type: Duplicate value: "A"',
        ),
    ],
)
def test_a_malformed_entry_is_explained(change: dict[str, Any], expected: str) -> None:
    new = reported()
    new["status"]["devices"][0] |= change
    found = findings(new, claim(), OWN_NODE, granular=False)
    assert any(text.startswith(expected) for text in found), found


def test_a_device_is_reported_once() -> None:
    new = reported()
    new["status"]["devices"] *= 2
    assert findings(new, claim(), OWN_NODE) == [
        (f'status.devices[1]: Duplicate value: {{"Driver":"{DRIVER}","Pool":"n1","Device":"channel-0","ShareID":""}}')
    ]


def test_a_reservation_needs_an_allocation_a_name_and_its_own_uid() -> None:
    new = claim(allocated=False)
    new["status"]["reservedFor"] = RESERVED
    assert findings(new, claim(allocated=False), BINDING) == [
        "status.reservedFor: Forbidden: may not be specified when `allocated` is not set"
    ]
    new = claim()
    new["status"]["reservedFor"] = [{"resource": "pods"}, *RESERVED, *RESERVED]
    assert findings(new, claim(), BINDING) == [
        "status.reservedFor[0].name: Required value",
        "status.reservedFor[0].uid: Required value",
        'status.reservedFor[2]: Duplicate value: "u"',
    ]
    new["status"]["reservedFor"] = [RESERVED[0] | {"uid": str(n)} for n in range(257)]
    assert findings(new, claim(), BINDING) == ["status.reservedFor: Too many: 257: must have at most 256 items"]


def test_a_claim_that_is_being_deleted_takes_no_new_consumers() -> None:
    old, new = claim(), claim()
    old["status"]["reservedFor"] = RESERVED
    new["status"]["reservedFor"] = [*RESERVED, RESERVED[0] | {"uid": "v"}]
    new["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    (text,) = findings(new, old, BINDING)
    assert "new entries may not be added while" in text
    new["status"]["reservedFor"] = RESERVED
    assert not findings(new, old, BINDING)


def test_a_new_allocation_is_checked_against_the_requests_of_the_claim() -> None:
    new = claim()
    devices = new["status"]["allocation"]["devices"]
    devices["results"][0]["request"] = "other"
    devices["config"][0]["source"] = "FromThinAir"
    devices["config"].append({"opaque": {"driver": DRIVER, "parameters": RawJson(b"{}")}})
    found = findings(new, claim(allocated=False), BINDING)
    assert [text.split(": ")[0] for text in found] == [
        "status.allocation.devices.results[0].request",
        "status.allocation.devices.config[0].source",
        "status.allocation.devices.config[1].source",
    ]


@pytest.mark.parametrize(
    ("terms", "node"),
    [
        ([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}], "n1"),
        ([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1", "n2"]}]}], ""),
        ([{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}]}], ""),
        ([{"matchExpressions": [{"key": "a", "operator": "Exists"}]}], ""),
        ([{"matchFields": []}], ""),
        ([{}, {}], ""),
        ([], ""),
    ],
)
def test_an_allocation_is_tied_to_a_node_by_its_name_alone(terms: list[dict[str, Any]], node: str) -> None:
    assert allocated_node({"nodeSelector": {"nodeSelectorTerms": terms}}) == node
    assert allocated_node(None) == ""


def test_raw_objects_keep_their_bytes_through_copies() -> None:
    raw = RawJson(b'{"b": 1, "a": 2}')
    assert raw == {"b": 1, "a": 2}
    assert copy.deepcopy({"x": [raw]})["x"][0].raw == b'{"b": 1, "a": 2}'
    assert copy.copy(raw).raw == raw.raw
    assert raw_bytes({"b": 1, "a": 2}) == b'{"b":1,"a":2}'
    assert not same({"parameters": {"a": 1, "b": 2}}, {"parameters": {"b": 2, "a": 1}})
    assert same({"parameters": {"a": 1}}, {"parameters": RawJson(b'{"a":1}')})
    assert not same({"parameters": {}}, {})
    assert same({"x": {"a": 1, "b": 2}}, {"x": {"b": 2, "a": 1}})
