"""Admission through an API server: what is completed, what is refused, and in which words, on both servers."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from interlace.api import webhook as names
from interlace.api.channel import own_or_free
from interlace.api.computedomain import CHANNEL_CLASS, DOMAIN_LABEL, DRIVER, SHARED, ComputeDomain
from interlace.api.core import Namespace, Pod
from interlace.api.meta import Resource
from interlace.api.resource import ResourceClaim, ResourceClaimTemplate
from interlace.kube.client import Client
from interlace.kube.errors import ApiError, Forbidden, Invalid
from interlace.kube.untyped import Untyped, apply_manifest, untyped
from interlace.manifests import manifests
from interlace.pods.draft import Draft
from interlace.pods.inject import inject
from interlace.pods.recognition import recognise
from interlace.sim.plane import Plane
from tests.holding import hold
from tests.webhooks import Webhook, bundles, installed

TEAM, ASKING, EXEMPT = "plain-team", "asking-team", "exempt-team"
UID = "5d5a8a4e-1a3f-4c0e-9f5c-2b8c2f8f0b11"
PODS, CLAIMS, TEMPLATES = (untyped(kind.resource) for kind in (Pod, ResourceClaim, ResourceClaimTemplate))
_numbers = itertools.count()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hook(plane: Plane) -> AsyncIterator[Webhook]:
    """A webhook that the server calls, and namespaces that ask and do not ask."""
    config = plane.credentials("admin", groups=["system:masters"])
    async with Client(config, user_agent="test", qps=0) as admin:
        for manifest in manifests(replicas=0):
            if manifest["kind"] in ("CustomResourceDefinition", "DeviceClass"):
                await apply_manifest(admin, manifest, manager="platform-engineer")
        labels = {ASKING: {names.FABRIC_LABEL: "a3-mega"}, EXEMPT: {names.GUARD_LABEL: "off"}}
        for name in (TEAM, ASKING, EXEMPT):
            await admin.create(Namespace, {"metadata": {"name": name, "labels": labels.get(name, {})}})
            account = untyped(Resource("", "v1", "serviceaccounts", "ServiceAccount", True))
            await apply_manifest(
                admin,
                {"apiVersion": "v1", "kind": account.resource.kind, "metadata": {"name": "default"}},
                manager="test",
                namespace=name,
            )
        async with hold(installed(plane, admin)) as running:
            yield running


def pod(*, gpus: int = 8, family: str | None = None, asks: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A Pod for A3 Mega nodes that nobody schedules."""
    main: dict[str, Any] = {"name": "main", "image": "docker.io/library/busybox:1.37"}
    if gpus:
        main["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{next(_numbers)}",
            "labels": {names.FABRIC_LABEL: family} if family is not None else {},
            "annotations": {f"devices.gke.io/container.{name}": text for name, text in (asks or {}).items()},
        },
        "spec": {
            "schedulerName": "nobody",
            "nodeSelector": {"cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb"},
            "containers": [main],
            **spec,
        },
    }


async def created(hook: Webhook, obj: dict[str, Any], *, kind: type[Untyped] = PODS, namespace: str = TEAM) -> Untyped:
    return await hook.admin.create(kind, obj, namespace=namespace)


async def refused(hook: Webhook, obj: dict[str, Any], *, kind: type[Untyped] = PODS, namespace: str = TEAM) -> ApiError:
    with pytest.raises(ApiError) as raised:
        await created(hook, obj, kind=kind, namespace=namespace)
    return raised.value


async def test_the_server_is_told_whom_to_trust(hook: Webhook) -> None:
    (bundle,) = await bundles(hook.admin)
    assert bundle


@pytest.mark.parametrize(("family", "namespace"), [("auto", TEAM), ("a3-megagpu-8g", TEAM), (None, ASKING)])
async def test_a_pod_that_asks_gets_what_the_command_would_write(
    hook: Webhook, family: str | None, namespace: str
) -> None:
    untold: dict[str, Any] = {
        "setHostnameAsFQDN": True,
        "schedulingGates": [{"name": "example.com/later"}],
    }  # in no struct of ours
    asked = pod(family=family, automountServiceAccountToken=False, **untold)
    recognised = recognise(Draft(asked), named="a3-mega").family
    assert recognised is not None
    wanted = inject(asked, family=recognised).pod
    wanted["metadata"]["name"] += "-by-hand"
    by_hand = await created(hook, wanted, namespace=EXEMPT)
    found = await created(hook, asked, namespace=namespace)
    assert found["spec"] == by_hand["spec"]
    for key in ("annotations", "labels"):
        assert found["metadata"].get(key) == by_hand["metadata"].get(key)
    assert [each["name"] for each in found["spec"]["initContainers"]] == ["tcpxo-daemon"]
    assert {key: found["spec"][key] for key in untold} == untold


@pytest.mark.parametrize(("family", "namespace"), [(None, TEAM), ("off", TEAM), ("off", ASKING)])
async def test_a_pod_that_does_not_ask_is_left_as_it_is(hook: Webhook, family: str | None, namespace: str) -> None:
    found = await created(hook, pod(family=family), namespace=namespace)
    assert "initContainers" not in found["spec"]
    assert not found["metadata"].get("annotations")


async def test_a_pod_of_an_asking_namespace_that_uses_no_gpu_is_left_as_it_is(hook: Webhook) -> None:
    found = await created(hook, pod(gpus=0), namespace=ASKING)
    assert "initContainers" not in found["spec"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (pod(family="a3-giga"), "a3-giga"),
        (pod(family="auto", gpus=4), "add up to 8"),
        (pod(family="a3-high"), "change one of the two"),
        (pod(family="auto", nodeSelector={}), "the family cannot be told"),
    ],
)
async def test_a_pod_that_cannot_have_its_fabric_is_refused_with_what_to_change(
    hook: Webhook, asked: dict[str, Any], said: str
) -> None:
    error = await refused(hook, asked)
    assert isinstance(error, Invalid)
    assert 'admission webhook "pods.interlace.dev" denied the request: ' in error.message
    assert said in error.message


async def test_a_refusal_in_an_asking_namespace_names_the_namespace(hook: Webhook) -> None:
    error = await refused(hook, pod(nodeSelector={"cloud.google.com/gke-accelerator": "nvidia-b200"}), namespace=ASKING)
    assert f"the label {names.FABRIC_LABEL} of namespace {ASKING}" in error.message


@pytest.mark.parametrize(
    "text",
    [
        "- path: /dev/sda",
        "- Path: /dev/sda",
        "- path: /dev/nvidia0\n  path: /dev/sda",
        "- path: /dev/nvidia0\n  Path: /dev/sda",
        "- &disk {path: /dev/sda}\n- *disk",
        "- path: /dev/sda\n  file_mode: 0666",
        "- path: /dev/nvidia0\n  file_mode: 0o666",
        '[{"path":"/dev/\\u0073da"}]',
        "- path: /dev/nvidia0/../sda",
    ],
)
async def test_a_disk_is_refused_however_it_is_spelt(hook: Webhook, text: str) -> None:
    error = await refused(hook, pod(gpus=0, asks={"main": text}))
    assert isinstance(error, Forbidden)
    assert 'admission webhook "devices.interlace.dev" denied the request: ' in error.message
    assert "metadata.annotations[devices.gke.io/container.main]" in error.message


async def test_gpus_may_be_asked_for(hook: Webhook) -> None:
    await created(hook, pod(gpus=0, asks={"main": "- path: /dev/nvidia0\n- path: /dev/nvidiactl\n"}))


async def test_a_disk_may_be_asked_for_in_an_exempt_namespace(hook: Webhook) -> None:
    await created(hook, pod(gpus=0, asks={"main": "- path: /dev/sda"}), namespace=EXEMPT)


async def test_a_pod_cannot_ask_for_a_disk_later(hook: Webhook) -> None:
    made = await created(hook, pod(gpus=0, asks={"main": "- path: /dev/nvidia0"}))
    change = {"metadata": {"annotations": {"devices.gke.io/container.main": "- path: /dev/sda"}}}
    with pytest.raises(Forbidden, match="may not be injected"):
        await hook.admin.merge_patch(PODS, made.metadata.name, change, namespace=TEAM)
    await hook.admin.merge_patch(PODS, made.metadata.name, {"metadata": {"labels": {"a": "b"}}}, namespace=TEAM)


def parameters(**more: Any) -> dict[str, Any]:
    kind = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomainChannelConfig"}
    return {**kind, "domainID": UID, **more}


def devices(**more: Any) -> dict[str, Any]:
    return {
        "requests": [{"name": "channel", "exactly": {"deviceClassName": CHANNEL_CLASS}}],
        "config": [{"requests": ["channel"], "opaque": {"driver": DRIVER, "parameters": parameters(**more)}}],
    }


def claim(**more: Any) -> dict[str, Any]:
    return {"metadata": {"name": f"claim-{next(_numbers)}"}, "spec": {"devices": devices(**more)}}


def template(**more: Any) -> dict[str, Any]:
    return {"metadata": {"name": f"template-{next(_numbers)}"}, "spec": {"spec": {"devices": devices(**more)}}}


async def test_the_claims_of_a_pod_tell_what_it_has_already(hook: Webhook) -> None:
    made = await created(hook, template(), kind=TEMPLATES)
    claims = [{"name": "my-channel", "resourceClaimTemplateName": made.metadata.name}]
    asked = pod(family="gb200-nvl72", gpus=4, nodeSelector={}, resourceClaims=claims)
    found = await created(hook, asked)
    assert [each["name"] for each in found["spec"]["resourceClaims"]] == ["my-channel"]
    assert found["spec"]["containers"][0]["resources"]["claims"] == [{"name": "my-channel"}]


async def test_a_claim_by_hand_is_completed(hook: Webhook) -> None:
    found = await created(hook, claim(), kind=CLAIMS)
    assert found["metadata"]["labels"] == {DOMAIN_LABEL: UID}
    (selector,) = found["spec"]["devices"]["requests"][0]["exactly"]["selectors"]
    assert selector == {"cel": {"expression": own_or_free(UID)}}
    assert found["spec"]["devices"]["config"][0]["opaque"]["parameters"] == parameters()


async def test_a_claim_by_hand_for_a_domain_that_shares_nodes_may_go_to_shared_ones(hook: Webhook) -> None:
    spec = {"channel": {"resourceClaimTemplate": {"name": "sharing-channel"}}, "isolation": "Channel"}
    domain = await created(hook, {"metadata": {"name": "sharing"}, "spec": spec}, kind=untyped(ComputeDomain.resource))
    found = await created(hook, claim(domainID=domain.metadata.uid), kind=CLAIMS)
    (selector,) = found["spec"]["devices"]["requests"][0]["exactly"]["selectors"]
    assert selector == {"cel": {"expression": own_or_free(SHARED)}}


async def test_a_template_by_hand_is_completed(hook: Webhook) -> None:
    found = await created(hook, template(), kind=TEMPLATES)
    assert found["spec"]["metadata"]["labels"] == {DOMAIN_LABEL: UID}
    assert found["spec"]["spec"]["devices"]["requests"][0]["exactly"]["selectors"]


@pytest.mark.parametrize(("obj", "kind"), [(claim(nodes=2), CLAIMS), (template(nodes=2), TEMPLATES)])
async def test_an_unknown_field_in_the_parameters_is_refused(
    hook: Webhook, obj: dict[str, Any], kind: type[Untyped]
) -> None:
    error = await refused(hook, obj, kind=kind)
    assert 'strict decoding error: unknown field "nodes"' in error.message


async def test_a_claim_for_another_driver_is_not_touched(hook: Webhook) -> None:
    obj = json.loads(json.dumps(claim(nodes=2)).replace(DRIVER, "gpu.example.com"))
    found = await created(hook, obj, kind=CLAIMS)
    assert "labels" not in found["metadata"]


async def test_a_domain_that_could_never_work_is_refused(hook: Webhook) -> None:
    kind = untyped(ComputeDomain.resource)
    channel = {"resourceClaimTemplate": {"name": "job-channel"}}
    await created(hook, {"metadata": {"name": "good"}, "spec": {"channel": channel}}, kind=kind)
    channel = {"resourceClaimTemplate": {"name": "Job_Channel"}}
    error = await refused(hook, {"metadata": {"name": "bad"}, "spec": {"channel": channel}}, kind=kind)
    assert 'admission webhook "computedomains.interlace.dev" denied the request: ' in error.message
    assert "spec.channel.resourceClaimTemplate.name 'Job_Channel'" in error.message
