"""Webhooks are asked over https, by rule and by selector, and their answers and failures count."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from interlace.sim.apiserver.admission import Admitted, admit
from interlace.sim.apiserver.auth import UserInfo
from interlace.sim.apiserver.errors import ApiFault
from interlace.sim.apiserver.kinds import Kind, Kinds
from interlace.sim.apiserver.raw import RawJson
from tests.unit.sim.rules.hooks import PODS, Hooks, patch, serving

KINDS = Kinds()
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "y", "labels": {"a": "b"}}, "spec": {}}
LABEL = [{"op": "add", "path": "/metadata/labels/seen", "value": "yes"}]


def kind(plural: str, api_version: str = "v1") -> Kind:
    group, _, version = api_version.rpartition("/")
    found = KINDS.find(group, version, plural)
    assert found is not None
    return found


async def ask(*configs: dict[str, Any], **changes: Any) -> Admitted:
    """The outcome for a new Pod, unless ``changes`` say otherwise."""
    arguments: dict[str, Any] = {
        "operation": "CREATE",
        "kind": kind("pods"),
        "namespace": "y",
        "name": "p",
        "obj": POD,
        "old": None,
        "user": UserInfo("kate", "uid-k", ["team"], {"key": ["value"]}),
        "resolve": lambda _namespace, _name, _port: None,
    }
    async with aiohttp.ClientSession() as session:
        return await admit(configs, session=session, **(arguments | changes))


async def refusal(*configs: dict[str, Any], **changes: Any) -> ApiFault:
    with pytest.raises(ApiFault) as caught:
        await ask(*configs, **changes)
    return caught.value


@pytest.fixture
async def hooks(tmp_path: Path) -> AsyncIterator[Hooks]:
    async with serving(tmp_path) as found:
        yield found


async def test_a_webhook_learns_what_happens_to_what_and_by_whom(hooks: Hooks) -> None:
    assert (await ask(hooks.config("/m"))).obj == POD
    ((path, request),) = hooks.asked
    assert path == "/m"
    assert request.pop("uid")
    assert request == {
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "requestKind": {"group": "", "version": "v1", "kind": "Pod"},
        "requestResource": {"group": "", "version": "v1", "resource": "pods"},
        "name": "p",
        "namespace": "y",
        "operation": "CREATE",
        "userInfo": {"username": "kate", "uid": "uid-k", "groups": ["team"], "extra": {"key": ["value"]}},
        "object": POD,
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }


async def test_mutations_build_on_each_other_in_the_order_of_the_names(hooks: Hooks) -> None:
    hooks.answers["/first"] = lambda _request: patch(LABEL)
    hooks.answers["/second"] = lambda request: patch(
        [{"op": "add", "path": "/metadata/labels/after", "value": request["object"]["metadata"]["labels"]["seen"]}]
    )
    admitted = await ask(hooks.config("/second", name="b"), hooks.config("/first", name="a"))
    assert admitted.obj is not None
    assert admitted.obj["metadata"]["labels"] == {"a": "b", "seen": "yes", "after": "yes"}
    assert POD["metadata"] == {"name": "p", "namespace": "y", "labels": {"a": "b"}}


async def test_validating_webhooks_see_the_mutated_object(hooks: Hooks) -> None:
    hooks.answers["/m"] = lambda _request: patch(LABEL)
    await ask(hooks.config("/v", mutating=False), hooks.config("/m"))
    assert hooks.paths() == ["/m", "/v"]
    assert hooks.asked[1][1]["object"]["metadata"]["labels"]["seen"] == "yes"


async def test_opaque_parameters_reach_the_webhook_and_come_through_unchanged(hooks: Hooks) -> None:
    raw = RawJson(b'{"b": 1,  "a": 2}')
    claim = {"metadata": {"labels": {}}, "spec": {"devices": {"config": [{"opaque": {"parameters": raw}}]}}}
    rule = PODS | {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"]}
    hooks.answers["/m"] = lambda _request: patch(LABEL)
    claims = kind("resourceclaims", "resource.k8s.io/v1")
    admitted = await ask(hooks.config("/m", rules=[rule]), kind=claims, obj=claim)
    assert hooks.asked[0][1]["object"]["spec"]["devices"]["config"][0]["opaque"]["parameters"] == {"a": 2, "b": 1}
    assert admitted.obj is not None
    assert admitted.obj["spec"]["devices"]["config"][0]["opaque"]["parameters"].raw == raw.raw


async def test_warnings_are_handed_on(hooks: Hooks) -> None:
    hooks.answers["/m"] = lambda _request: {"allowed": True, "warnings": ["careful"]}
    hooks.answers["/v"] = lambda _request: {"allowed": True, "warnings": ["really"]}
    admitted = await ask(hooks.config("/v", mutating=False), hooks.config("/m"))
    assert admitted.warnings == ["careful", "really"]


@pytest.mark.parametrize("mutating", [True, False])
@pytest.mark.parametrize(
    ("status", "code", "reason", "text"),
    [
        (
            {"code": 403, "reason": "Forbidden", "message": "no"},
            403,
            "Forbidden",
            'admission webhook "w.example.com" denied the request: no',
        ),
        ({"code": 200, "reason": "Odd"}, 400, "Odd", 'admission webhook "w.example.com" denied the request: Odd'),
        ({}, 400, "", 'admission webhook "w.example.com" denied the request without explanation'),
    ],
)
async def test_a_refusal_reaches_the_user_in_the_words_of_the_server(
    hooks: Hooks, *, mutating: bool, status: dict[str, Any], code: int, reason: str, text: str
) -> None:
    hooks.answers["/w"] = lambda _request: {"allowed": False, "status": status}
    fault = await refusal(hooks.config("/w", mutating=mutating, failurePolicy="Ignore"))
    assert (fault.code, fault.reason, fault.status["message"]) == (code, reason, text)


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        ({"rules": [PODS | {"operations": ["*"]}]}, True),
        ({"rules": [PODS | {"operations": ["UPDATE"]}]}, False),
        ({"rules": [PODS | {"apiGroups": ["apps"]}, PODS]}, True),
        ({"rules": [PODS | {"apiVersions": ["v2"]}]}, False),
        ({"rules": [PODS | {"resources": ["*"]}]}, True),
        ({"rules": [PODS | {"resources": ["*/*"]}]}, True),
        ({"rules": [PODS | {"resources": ["pods/status"]}]}, False),
        ({"rules": [PODS | {"scope": "Namespaced"}]}, True),
        ({"rules": [PODS | {"scope": "Cluster"}]}, False),
        ({"rules": []}, False),
        ({"objectSelector": {"matchLabels": {"a": "b"}}}, True),
        ({"objectSelector": {"matchLabels": {"a": "c"}}}, False),
        ({"objectSelector": {}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "x"}}}, True),
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]}},
            False,
        ),
    ],
)
async def test_rules_and_selectors_choose_who_is_asked(hooks: Hooks, change: dict[str, Any], *, asked: bool) -> None:
    await ask(hooks.config("/m", **change), namespace_labels={"team": "x"})
    assert bool(hooks.asked) is asked


async def test_the_old_object_can_bring_a_webhook_in(hooks: Hooks) -> None:
    config = hooks.config("/m", objectSelector={"matchLabels": {"old": "yes"}}, rules=[PODS | {"operations": ["*"]}])
    old = {"metadata": {"labels": {"old": "yes"}}}
    await ask(config, operation="UPDATE", old=old)
    await ask(config, operation="DELETE", old=old, obj=None)
    assert [request["operation"] for _, request in hooks.asked] == ["UPDATE", "DELETE"]
    assert hooks.asked[1][1]["object"] is None


async def test_a_namespace_is_judged_by_its_own_labels(hooks: Hooks) -> None:
    rule = PODS | {"resources": ["namespaces"]}
    config = hooks.config("/m", rules=[rule], namespaceSelector={"matchLabels": {"team": "x"}})
    namespaces = kind("namespaces")
    for labels in ({"team": "x"}, {}):
        await ask(config, kind=namespaces, namespace="n", name="n", obj={"metadata": {"labels": labels}})
    assert len(hooks.asked) == 1


async def test_webhook_configurations_are_never_shown_to_webhooks(hooks: Hooks) -> None:
    rule = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}
    own = kind("mutatingwebhookconfigurations", "admissionregistration.k8s.io/v1")
    await ask(hooks.config("/m", rules=[rule]), kind=own)
    assert not hooks.asked


async def test_a_service_is_found_by_the_callable_and_trusted_by_its_own_name(hooks: Hooks) -> None:
    service = {"namespace": "default", "name": "kubernetes", "path": "/m", "port": 9443}
    config = hooks.config("/m", clientConfig={"service": service, "caBundle": hooks.ca})
    looked_up: list[tuple[str, str, int]] = []

    def resolve(namespace: str, name: str, port: int) -> tuple[str, int]:
        looked_up.append((namespace, name, port))
        return "127.0.0.1", hooks.port

    await ask(config, resolve=resolve)
    assert looked_up == [("default", "kubernetes", 9443)]
    assert hooks.paths() == ["/m"]
    service["name"] = "impostor"
    fault = await refusal(config, resolve=resolve)
    assert "tls: failed to verify certificate" in fault.status["message"]


async def test_a_service_without_endpoints_is_a_failure(hooks: Hooks) -> None:
    config = hooks.config("/m", clientConfig={"service": {"namespace": "sys", "name": "hook"}, "caBundle": hooks.ca})
    fault = await refusal(config)
    assert (fault.code, fault.reason) == (500, "InternalError")
    assert fault.status["message"] == (
        'Internal error occurred: failed calling webhook "m.example.com": failed to call webhook: '
        'Post "https://hook.sys.svc:443/?timeout=10s": no endpoints available for service "hook"'
    )


ANSWER = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
BROKEN: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (lambda _r: web.Response(status=500, text="oh"), "the webhook answered with status 500: oh"),
    (lambda _r: web.Response(text="no json"), "couldn't get a valid answer"),
    (lambda _r: web.json_response(ANSWER), "webhook response was absent"),
    (lambda _r: {"uid": "other", "allowed": True}, "expected response.uid="),
    (
        lambda r: web.json_response({"kind": "Review", "response": {"uid": r["uid"], "allowed": True}}),
        "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got , Kind=Review",
    ),
    (lambda _r: {"allowed": True, "patch": "W10="}, "returned response.patch but not response.patchType"),
    (lambda _r: {"allowed": True, "patchType": "JSONPatch"}, "returned response.patchType but not response.patch"),
    (lambda _r: {"allowed": True, "patchType": "Other", "patch": "W10="}, 'unsupported patch type "Other"'),
    (lambda _r: {"allowed": True, "patchType": "JSONPatch", "patch": "e30="}, "received undecodable patch"),
]


@pytest.mark.parametrize(("answer", "text"), BROKEN)
async def test_an_answer_that_makes_no_sense_fails_closed_or_open(
    hooks: Hooks, answer: Callable[[dict[str, Any]], Any], text: str
) -> None:
    hooks.answers["/m"] = answer
    fault = await refusal(hooks.config("/m", failurePolicy="Fail"))
    assert fault.code == 500
    assert fault.status["message"].startswith('Internal error occurred: failed calling webhook "m.example.com": ')
    assert text in fault.status["message"]
    assert (await ask(hooks.config("/m", failurePolicy="Ignore"))).obj == POD


async def test_a_validating_webhook_may_not_change_anything(hooks: Hooks) -> None:
    hooks.answers["/v"] = lambda _request: patch(LABEL)
    fault = await refusal(hooks.config("/v", mutating=False))
    assert "validating webhook may not return response.patch" in fault.status["message"]


async def test_a_patch_that_does_not_fit_is_an_error_even_where_failures_are_ignored(hooks: Hooks) -> None:
    hooks.answers["/m"] = lambda _request: patch([{"op": "remove", "path": "/spec/nothing"}])
    fault = await refusal(hooks.config("/m", failurePolicy="Ignore"))
    assert (fault.code, fault.reason) == (500, "InternalError")


async def test_a_deleted_object_cannot_be_patched(hooks: Hooks) -> None:
    hooks.answers["/m"] = lambda _request: patch(LABEL)
    config = hooks.config("/m", rules=[PODS | {"operations": ["DELETE"]}])
    fault = await refusal(config, operation="DELETE", obj=None, old=POD)
    assert "attempted to modify the object, which is not supported for this operation" in fault.status["message"]


async def test_a_webhook_that_does_not_answer_in_time_has_failed(hooks: Hooks) -> None:
    hooks.answers["/m"] = lambda _request: "hold"
    fault = await refusal(hooks.config("/m", timeoutSeconds=1))
    assert fault.status["message"].endswith('/m?timeout=1s": context deadline exceeded')


async def test_a_port_where_nobody_listens_is_a_failure(hooks: Hooks, unused_tcp_port: int) -> None:
    client = {"url": f"https://127.0.0.1:{unused_tcp_port}/m", "caBundle": hooks.ca}
    fault = await refusal(hooks.config("/m", clientConfig=client))
    assert 'failed calling webhook "m.example.com": failed to call webhook: Post "https://127.0.0.1:' in str(fault)


@pytest.mark.parametrize("bundle", ["", "bm90IGEgY2VydGlmaWNhdGU=", "!"])
async def test_a_server_that_the_bundle_does_not_vouch_for_is_not_trusted(hooks: Hooks, bundle: str) -> None:
    client = {"url": f"https://localhost:{hooks.port}/m", "caBundle": bundle}
    fault = await refusal(hooks.config("/m", clientConfig=client))
    assert fault.code == 500
    assert not hooks.asked


async def test_a_dry_run_asks_only_webhooks_without_side_effects(hooks: Hooks) -> None:
    fault = await refusal(hooks.config("/m", sideEffects="Some"), dry_run=True)
    assert (fault.code, fault.status["message"]) == (400, 'admission webhook "m.example.com" does not support dry run')
    await ask(hooks.config("/m", sideEffects="NoneOnDryRun"), dry_run=True)
    assert hooks.asked[0][1]["dryRun"] is True


async def test_validating_webhooks_are_asked_at_once_and_the_first_refusal_counts(hooks: Hooks) -> None:
    arrived = asyncio.Event()

    def second(_request: dict[str, Any]) -> dict[str, Any]:
        hooks.hold.set()
        arrived.set()
        return {"allowed": False, "status": {"message": "second"}}

    hooks.answers["/first"] = lambda _request: "hold"
    hooks.answers["/second"] = second
    configs = [hooks.config("/first", mutating=False, name="a"), hooks.config("/second", mutating=False, name="b")]
    fault = await refusal(*configs)
    assert arrived.is_set()
    assert fault.status["message"].endswith("denied the request: second")
