"""Decisions about claims, ComputeDomains and whole requests, without a server."""

from __future__ import annotations

import base64
import json
from typing import Any, Literal

import msgspec
import pytest

from interlace.api import webhook as names
from interlace.api.channel import own_or_free as selector
from interlace.api.computedomain import (
    CHANNEL_CLASS,
    DOMAIN_LABEL,
    DRIVER,
    SHARED,
    ComputeDomain,
    ComputeDomainChannelSpec,
    ComputeDomainSpec,
    ResourceClaimTemplateReference,
)
from interlace.api.meta import ObjectMeta
from interlace.domains.template import own_or_free
from interlace.fabric.devices import allow
from interlace.pods import claims, domains
from interlace.pods.admission import routes
from interlace.pods.review import ALLOWED, GroupVersionResource, Request, ReviewError, Verdict, decode, encode, refuse
from interlace.pods.settings import WebhookSettings
from interlace.sim.apiserver.patching import json_patch
from tests.unit.pods.no_injection import NoInjection, no_domain

UID = "5d5a8a4e-1a3f-4c0e-9f5c-2b8c2f8f0b11"
OTHER = "0d5a8a4e-1a3f-4c0e-9f5c-2b8c2f8f0b11"


def parameters(**more: Any) -> dict[str, Any]:
    kind = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomainChannelConfig"}
    return {key: value for key, value in (kind | {"domainID": UID} | more).items() if value is not None}


def devices(*configs: Any, version: str = "v1") -> dict[str, Any]:
    wanted: dict[str, Any] = {"deviceClassName": CHANNEL_CLASS}
    request = {"name": "channel", **(wanted if version == "v1beta1" else {"exactly": wanted})}
    opaque = [{"opaque": {"driver": DRIVER, "parameters": each}} for each in configs or (parameters(),)]
    return {"requests": [request], "config": opaque}


def claim(*configs: Any, version: str = "v1", **labels: str) -> dict[str, Any]:
    metadata = {"name": "by-hand", **({"labels": labels} if labels else {})}
    return {"metadata": metadata, "spec": {"devices": devices(*configs, version=version)}, "later": {"field": 1.50}}


def asked(
    obj: Any,
    *,
    plural: str = "resourceclaims",
    operation: Literal["CREATE", "UPDATE"] = "CREATE",
    old: Any = None,
) -> Request:
    content, before = (json.dumps(each).encode() for each in (obj, old))
    where = GroupVersionResource(group="resource.k8s.io", version="v1", resource=plural)
    return Request(
        uid="1", resource=where, operation=operation, object=msgspec.Raw(content), old_object=msgspec.Raw(before)
    )


def patched(obj: dict[str, Any], verdict: Verdict) -> dict[str, Any]:
    found: dict[str, Any] = json_patch(obj, list(verdict.patch))
    return found


def completed(request: Request, *, isolation: Literal["Domain", "Channel"] = "Domain") -> Verdict:
    channel = ComputeDomainChannelSpec(resource_claim_template=ResourceClaimTemplateReference(name="t"))
    spec = ComputeDomainSpec(channel=channel, isolation=isolation)
    return claims.complete(request, domain=ComputeDomain(metadata=ObjectMeta(uid=UID), spec=spec))


def test_a_claim_by_hand_gets_label_and_selector() -> None:
    obj = claim()
    found = patched(obj, completed(asked(obj)))
    assert found["metadata"]["labels"] == {DOMAIN_LABEL: UID}
    request = found["spec"]["devices"]["requests"][0]["exactly"]
    assert request["selectors"] == [{"cel": {"expression": selector(UID)}}]
    assert found["later"] == obj["later"]
    assert claims.check(asked(found)) == ALLOWED


def test_a_claim_for_a_domain_that_shares_nodes_may_go_to_shared_ones() -> None:
    obj = claim()
    found = patched(obj, completed(asked(obj), isolation="Channel"))
    request = found["spec"]["devices"]["requests"][0]["exactly"]
    assert request["selectors"] == [{"cel": {"expression": selector(SHARED)}}]
    assert found["metadata"]["labels"] == {DOMAIN_LABEL: UID}


def test_a_domain_that_is_not_there_is_warned_of() -> None:
    verdict = claims.complete(msgspec.structs.replace(asked(claim()), namespace="team"), domain=None)
    assert verdict.patch
    assert verdict.warnings == (
        f"no ComputeDomain of namespace team has the uid {UID}: Pods with this claim will not start",
    )


def test_completing_a_claim_again_changes_nothing() -> None:
    found = patched(claim(), completed(asked(claim())))
    assert completed(asked(found)) == ALLOWED


def test_a_claim_of_the_older_api_gets_them_in_its_shape() -> None:
    obj = claim(version="v1beta1")
    found = patched(obj, completed(asked(obj)))
    assert found["spec"]["devices"]["requests"][0]["selectors"] == [{"cel": {"expression": selector(UID)}}]


def test_a_template_gets_the_label_for_its_claims() -> None:
    obj = {"metadata": {"name": "t"}, "spec": {"spec": {"devices": devices()}}}
    found = patched(obj, completed(asked(obj, plural=claims.TEMPLATES)))
    assert found["spec"]["metadata"]["labels"] == {DOMAIN_LABEL: UID}
    assert "labels" not in found["metadata"]
    assert claims.check(asked(found, plural=claims.TEMPLATES)) == ALLOWED


def test_selectors_and_labels_of_the_user_stay() -> None:
    obj = claim(team="a")
    mine = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    obj["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = [mine]
    found = patched(obj, completed(asked(obj)))
    assert found["metadata"]["labels"] == {"team": "a", DOMAIN_LABEL: UID}
    assert found["spec"]["devices"]["requests"][0]["exactly"]["selectors"][0] == mine


def test_a_selector_on_the_domain_is_not_doubled() -> None:
    obj = claim()
    mine = {"cel": {"expression": own_or_free(UID)}}
    obj["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = [mine]
    found = patched(obj, completed(asked(obj)))
    assert found["spec"]["devices"]["requests"][0]["exactly"]["selectors"] == [mine]


def test_alternatives_are_restricted_each() -> None:
    obj = claim()
    alternatives = [{"name": "a", "deviceClassName": CHANNEL_CLASS}, {"name": "b", "deviceClassName": "other.example"}]
    obj["spec"]["devices"]["requests"] = [{"name": "channel", "firstAvailable": alternatives}]
    first, second = patched(obj, completed(asked(obj)))["spec"]["devices"]["requests"][0]["firstAvailable"]
    assert first["selectors"] == [{"cel": {"expression": selector(UID)}}]
    assert "selectors" not in second


def test_claims_of_other_drivers_are_not_touched() -> None:
    obj = claim()
    obj["spec"]["devices"]["config"][0]["opaque"]["driver"] = "gpu.nvidia.com"
    assert completed(asked(obj)) == ALLOWED
    assert claims.check(asked(obj)) == ALLOWED


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (parameters(nodes=3), 'strict decoding error: unknown field "nodes"'),
        (parameters(domainID=None), "domainID is empty"),
        (parameters(domainID="not a uid"), "domainID 'not a uid' is no uid"),
        (parameters(kind="ComputeDomainDaemonConfig"), "write ComputeDomainChannelConfig"),
        (parameters(kind="Channel"), 'no kind "Channel"'),
        (parameters(allocationMode=1), "have to be strings"),
        ([], "not a JSON object"),
    ],
)
def test_parameters_that_prepare_would_refuse_are_refused(config: Any, said: str) -> None:
    verdict = claims.check(asked(claim(config, **{DOMAIN_LABEL: UID})))
    assert verdict.refused.startswith("spec.devices.config[0].opaque.parameters: ")
    assert said in verdict.refused


def test_a_field_that_is_there_twice_is_seen() -> None:
    text = json.dumps(claim(**{DOMAIN_LABEL: UID})).replace('"domainID"', f'"domainID": "{OTHER}", "domainID"')
    request = msgspec.structs.replace(asked({}), object=msgspec.Raw(text.encode()))
    assert 'duplicate field "domainID"' in claims.check(request).refused


def test_a_claim_has_one_domain_and_its_label() -> None:
    two = claim(parameters(), parameters(domainID=OTHER))
    assert completed(asked(two)) == ALLOWED
    assert "names 2 ComputeDomains" in claims.check(asked(two)).refused
    assert f"set the label to {UID}" in claims.check(asked(claim(**{DOMAIN_LABEL: OTHER}))).refused


def domain(name: str = "job-channel", **spec: Any) -> dict[str, Any]:
    mode = spec.pop("mode", "Single")
    channel = {"resourceClaimTemplate": {"name": name}, "allocationMode": mode}
    return {"metadata": {"name": "job"}, "spec": {"channel": channel, **spec}}


@pytest.mark.parametrize("good", [domain(), domain(mode="All"), domain(isolation="Channel"), domain(numNodes=18)])
def test_domains_that_can_work_pass(good: dict[str, Any]) -> None:
    assert domains.check(asked(good)) == ALLOWED


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (domain(isolation="Channel", mode="All"), "use allocationMode Single or isolation Domain"),
        (domain("Job_Channel"), "spec.channel.resourceClaimTemplate.name 'Job_Channel'"),
        (domain("a" * 254), "cannot be the name of an object"),
        ({"metadata": {"name": "job"}}, "spec is missing"),
        (domain(isolation="Node"), "cannot be read"),
    ],
)
def test_domains_that_could_never_work_are_refused(bad: dict[str, Any], said: str) -> None:
    assert said in domains.check(asked(bad)).refused


async def test_claims_and_domains_are_judged_when_they_are_created_and_never_later() -> None:
    decisions = routes(injecting=NoInjection(), find=no_domain, mode="enforce", allowed=allow())
    bad = asked(claim(parameters(nodes=3)), operation="UPDATE")
    for path in (names.COMPLETE_CLAIM_PATH, names.CHECK_CLAIM_PATH, names.CHECK_DOMAIN_PATH):
        assert await decisions[path](bad) == ALLOWED


async def test_the_guard_compares_an_update_with_what_was_there() -> None:
    decide = routes(injecting=NoInjection(), find=no_domain, mode="enforce", allowed=allow())[names.DEVICES_PATH]
    pod = {"metadata": {"annotations": {"devices.gke.io/container.x": "- path: /dev/sda"}}}
    assert (await decide(asked(pod))).refused
    assert (await decide(asked(pod, operation="UPDATE", old={"metadata": {}}))).refused
    assert await decide(asked(pod, operation="UPDATE", old=pod)) == ALLOWED
    assert await decide(asked(None)) == ALLOWED


def review(**request: Any) -> bytes:
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", **request}}
    return json.dumps(body).encode()


def test_a_request_is_read_with_its_object_as_it_came() -> None:
    found = decode(review(object={"b": 1.0, "a": [None]}, operation="UPDATE", subResource="x", unknown={}))
    assert bytes(found.object) == b'{"b": 1.0, "a": [null]}'
    assert (found.uid, found.operation, found.sub_resource) == ("u", "UPDATE", "x")


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", review()[:-1], review().replace(b"/v1", b"/v1beta1")])
def test_what_is_no_review_is_an_error(body: bytes) -> None:
    with pytest.raises(ReviewError):
        decode(body)


def test_a_patch_is_answered_in_base64() -> None:
    operation = {"op": "add", "path": "/a", "value": 1}
    answer = json.loads(encode("u", Verdict(patch=(operation,), warnings=("w" * 300,))))["response"]
    assert (answer["uid"], answer["allowed"], answer["patchType"]) == ("u", True, "JSONPatch")
    assert json.loads(base64.b64decode(answer["patch"])) == [operation]
    assert len(answer["warnings"][0]) == 256


def test_a_refusal_is_a_status_with_whole_sentences() -> None:
    answer = json.loads(encode("u", refuse(["one", "two."], code=403)))["response"]
    assert answer["allowed"] is False
    assert answer["status"] == {"code": 403, "reason": "Forbidden", "message": "one. two."}
    assert "patch" not in answer


def test_settings_come_from_flags_before_environment() -> None:
    env = {"NAMESPACE": "team", "DEVICE_GUARD": "warn", "NETWORK_MAP": "vpc1=rail1, vpc2=rail2"}
    found = WebhookSettings.parse(["--device-guard=off", "--allow-device=/dev/a*", "--listen=:1"], env)
    assert (found.guard, found.namespace, found.port) == ("off", "team", 1)
    assert found.networks == {"vpc1": "rail1", "vpc2": "rail2"}
    assert "/dev/a7" in found.allowed
    assert WebhookSettings.parse(["--tuple=a3-megagpu-8g=tcpxo-1.0.14"], {}).software == {"a3-mega": "tcpxo-1.0.14"}
    assert found.certificate_names[0] == "interlace-webhook.team.svc"


@pytest.mark.parametrize(
    "flag",
    ["--device-guard=maybe", "--allow-device=sda", "--network-map=vpc1",
     "--network-map=a=b", "--network-map=vpc1=a,vpc1=b", "--network-map=vpc1=Rail_1",
     "--tuple=a3-mega=new", "--tuple=a3-giga=x", "--tuple=a3-mega=tcpxo-1.0.15,a3-megagpu-8g=tcpxo-1.0.14",
     "--listen=here",
     "--cluster-version=new", "--certificate-days=0", "--kube-api-qps=fast", "--unknown"],
)  # fmt: skip
def test_bad_settings_end_the_program_with_one_sentence(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        WebhookSettings.parse([flag], {})
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("interlace: ")
    assert said.count("\n") == 1


def test_the_selector_is_the_one_of_templates() -> None:
    assert selector(UID) == own_or_free(UID)
