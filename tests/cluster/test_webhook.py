"""The webhook in a whole cluster: real API server, scheduler and controllers in front of it."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from interlace.api import webhook as names
from interlace.api.computedomain import CHANNEL_CLASS, DOMAIN_LABEL, DRIVER
from interlace.api.core import Event, Namespace, Pod
from interlace.api.meta import Resource
from interlace.api.resource import ResourceClaim, ResourceClaimTemplate
from interlace.kube.client import Client
from interlace.kube.errors import ApiError
from interlace.kube.untyped import Untyped, apply_manifest, untyped
from interlace.manifests import manifests
from testbed.plane import ControlPlane
from tests.cluster.test_control_plane import kubectl
from tests.holding import hold
from tests.unit.sim.rules.hooks import Hooks, patch, serving
from tests.waiting import eventually
from tests.webhooks import WITHIN, Webhook, called, decisions, installed, register, replica

PODS, CLAIMS, TEMPLATES = (untyped(kind.resource) for kind in (Pod, ResourceClaim, ResourceClaimTemplate))
JOBS = untyped(Resource("batch", "v1", "jobs", "Job", True))
MUTATING = untyped(
    Resource(
        "admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", False
    )
)
UID = "5d5a8a4e-1a3f-4c0e-9f5c-2b8c2f8f0b11"
MEGA = {"cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb"}
_numbers = itertools.count()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def admin(real_plane: ControlPlane) -> AsyncIterator[Client]:
    config = real_plane.credentials("admin", groups=["system:masters"])
    async with Client(config, user_agent="test", qps=0) as client:
        for manifest in manifests(replicas=0):
            if manifest["kind"] in ("CustomResourceDefinition", "DeviceClass"):
                await apply_manifest(client, manifest, manager="platform-engineer")
        yield client


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hook(real_plane: ControlPlane, admin: Client) -> AsyncIterator[Webhook]:
    async with hold(installed(real_plane, admin)) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def team(admin: Client) -> str:
    """A namespace of the test's own."""
    name = f"team-{next(_numbers)}"
    await admin.create(Namespace, {"metadata": {"name": name}})
    account = Resource("", "v1", "serviceaccounts", "ServiceAccount", True)

    async def furnished() -> bool:
        found = await admin.list(untyped(account), namespace=name)
        return any(each.metadata.name == "default" for each in found.items)

    await eventually(furnished, within=WITHIN, what="the namespace's ServiceAccount")
    return name


def template(*, family: str | None = "auto", gpus: int = 8, **more: Any) -> dict[str, Any]:
    """A Pod template for A3 Mega nodes."""
    main = {
        "name": "main",
        "image": "docker.io/library/busybox:1.37",
        "command": ["python3", "train.py"],
        "resources": {"limits": {"nvidia.com/gpu": gpus}} if gpus else {},
    }
    labels = {"app": "training"} | ({names.FABRIC_LABEL: family} if family else {})
    spec = {"restartPolicy": "Never", "nodeSelector": MEGA, "containers": [main], **more}
    return {"metadata": {"labels": labels}, "spec": spec}


def pod(**how: Any) -> dict[str, Any]:
    made = template(**how)
    return {**made, "metadata": {**made["metadata"], "name": f"pod-{next(_numbers)}"}}


def job(name: str, made: dict[str, Any]) -> dict[str, Any]:
    spec = {"template": made, "backoffLimit": 0}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


async def pods_of(admin: Client, name: str, team: str) -> list[Untyped]:
    return (await admin.list(PODS, namespace=team, labels=f"job-name={name}")).items


async def refusal(admin: Client, obj: dict[str, Any], team: str) -> str:
    with pytest.raises(ApiError) as raised:
        await admin.create(PODS, obj, namespace=team)
    return raised.value.message


async def interlace_inject(manifest: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What the command makes of a manifest."""
    file = folder / "job.yaml"
    file.write_text(yaml.safe_dump(manifest))
    command = [str(Path(sys.executable).with_name("interlace")), "inject", "-f", str(file), "--cluster-version", "1.36"]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(WITHIN):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    found: dict[str, Any] = yaml.safe_load(out)
    return found


async def test_the_pod_of_a_job_is_the_one_that_the_command_writes(
    real_plane: ControlPlane, admin: Client, hook: Webhook, team: str, tmp_path: Path
) -> None:
    plain = job("train", template())
    by_hand = await interlace_inject(plain, tmp_path)
    # Out of the webhook's sight, so that the command alone made it.
    by_hand["spec"]["template"]["metadata"]["labels"][names.FABRIC_LABEL] = names.OFF
    by_hand["metadata"]["name"] = "train-by-hand"
    for manifest in (plain, by_hand):
        await admin.create(JOBS, manifest, namespace=team)

    async def both() -> tuple[Untyped, Untyped] | None:
        found = [await pods_of(admin, name, team) for name in ("train", "train-by-hand")]
        return (found[0][0], found[1][0]) if all(found) else None

    pods = await eventually(both, within=WITHIN, what="the Pods of both Jobs")
    assert pods is not None
    made, wanted = pods
    assert comparable(made) == comparable(wanted)
    assert made["spec"]["initContainers"][0]["name"] == "tcpxo-daemon"


def comparable(made: Untyped) -> dict[str, Any]:
    """A Pod without its token, whose name is random and which comes before webhooks are asked."""
    found = {"annotations": made["metadata"]["annotations"], "spec": json.loads(json.dumps(made["spec"]))}
    token = next(each["name"] for each in made["spec"]["volumes"] if each["name"].startswith("kube-api-access-"))
    for container in (*found["spec"]["containers"], *found["spec"]["initContainers"], found["spec"]):
        for field in ("volumes", "volumeMounts"):
            container[field] = [each for each in container.get(field, ()) if each["name"] != token]
    return found


async def test_a_refusal_stands_in_the_description_of_the_job(
    real_plane: ControlPlane, admin: Client, hook: Webhook, team: str
) -> None:
    await admin.create(JOBS, job("half", template(gpus=4)), namespace=team)

    async def described() -> str:
        code, out = await kubectl(real_plane, "describe", "job/half", "-n", team)
        return out if code == 0 and "FailedCreate" in out else ""

    out = await eventually(described, within=WITHIN, what="the event of the Job")
    assert 'admission webhook "pods.interlace.dev" denied the request: ' in out
    assert "set nvidia.com/gpu so that the containers of the Pod add up to 8" in out


async def test_a_refused_device_stands_in_the_events_of_the_replica_set(
    admin: Client, hook: Webhook, team: str
) -> None:
    made = template(family=None, gpus=0, restartPolicy="Always")
    made["metadata"]["annotations"] = {"devices.gke.io/container.main": "- path: /dev/sda"}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "training"}}, "template": made}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "thief"}, "spec": spec}
    await apply_manifest(admin, deployment, manager="test", namespace=team)

    async def told() -> str:
        events = (await admin.list(Event, namespace=team)).items
        return next(
            (e.message for e in events if e.involved_object.kind == "ReplicaSet" and "/dev/sda" in e.message), ""
        )

    message = await eventually(told, within=WITHIN, what="the event of the ReplicaSet")
    assert "/dev/sda may not be injected; allowed are /dev/nvidia*" in message


async def test_pods_that_do_not_ask_cost_no_call(admin: Client, hook: Webhook, team: str) -> None:
    before = await decisions(hook)
    for _ in range(10):
        await admin.create(PODS, pod(family=None), namespace=team)
    assert await decisions(hook) == before
    await admin.create(PODS, pod(), namespace=team)
    after = await decisions(hook)
    paths = (names.INJECT_PATH, names.CHECK_PATH, names.DEVICES_PATH)
    assert all(after[path] > before.get(path, 0) for path in paths)


async def test_claims_that_the_cluster_makes_from_a_template_cost_no_call(
    admin: Client, hook: Webhook, team: str
) -> None:
    kind = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomainChannelConfig", "domainID": UID}
    devices = {
        "requests": [{"name": "channel", "exactly": {"deviceClassName": CHANNEL_CLASS}}],
        "config": [{"requests": ["channel"], "opaque": {"driver": DRIVER, "parameters": kind}}],
    }
    await admin.create(TEMPLATES, {"metadata": {"name": "t"}, "spec": {"spec": {"devices": devices}}}, namespace=team)
    before = await decisions(hook)
    wanting = pod(family=None, gpus=0, resourceClaims=[{"name": "channel", "resourceClaimTemplateName": "t"}])
    await admin.create(PODS, wanting, namespace=team)

    async def claimed() -> list[Untyped]:
        return (await admin.list(CLAIMS, namespace=team)).items

    (claim,) = await eventually(claimed, within=WITHIN, what="the claim of the Pod")
    assert claim["metadata"]["labels"][DOMAIN_LABEL] == UID
    assert claim["spec"]["devices"]["requests"][0]["exactly"]["selectors"]
    assert await decisions(hook) == before


Mutation = Callable[[dict[str, Any]], list[dict[str, Any]]]


@pytest_asyncio.fixture(loop_scope="module")
async def others(admin: Client, team: str, tmp_path: Path) -> AsyncIterator[tuple[Hooks, Callable[..., Any]]]:
    """Webhooks of others in the same namespace: before ours or behind it, by name."""
    async with serving(tmp_path) as hooks:

        async def install(name: str, change: Mutation) -> None:
            hooks.answers["/" + name] = lambda request: patch(change(request["object"]))
            config = hooks.config(
                "/" + name,
                name=name,
                namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": team}},
                reinvocationPolicy="IfNeeded",
            )
            config["apiVersion"] = "admissionregistration.k8s.io/v1"
            await apply_manifest(admin, config, manager="others")

            async def asked() -> bool:
                await admin.create(PODS, pod(family=None, gpus=0), namespace=team, dry_run=True)
                return "/" + name in hooks.paths()

            await eventually(asked, within=WITHIN, what=f"calls of {name}")

        yield hooks, install
        for config in (await admin.list(MUTATING)).items:
            if config.metadata.name.endswith("-other"):
                await admin.delete(MUTATING, config.metadata.name)


def mesh(obj: dict[str, Any]) -> list[dict[str, Any]]:
    """A service mesh: a native sidecar in front, and a volume."""
    side = {"name": "mesh-proxy", "image": "docker.io/library/mesh:1", "restartPolicy": "Always"}
    listed = obj["spec"].get("initContainers")
    if any(each["name"] == side["name"] for each in listed or ()):
        return []
    where, value = ("/spec/initContainers/0", side) if listed else ("/spec/initContainers", [side])
    return [{"op": "add", "path": where, "value": value}]


@pytest.mark.parametrize("name", ["aa-other", "zz-other"])
async def test_a_mesh_before_or_behind_it_changes_nothing_of_the_fabric(
    admin: Client, hook: Webhook, others: Any, team: str, name: str
) -> None:
    _, install = others
    await install(name, mesh)
    found = await admin.create(PODS, pod(), namespace=team)
    assert {each["name"] for each in found["spec"]["initContainers"]} == {"tcpxo-daemon", "mesh-proxy"}
    assert "networking.gke.io/interfaces" in found["metadata"]["annotations"]


def foreign_daemon(obj: dict[str, Any]) -> list[dict[str, Any]]:
    """Somebody else's daemon, as a plain container, with another image than ours."""
    if any(each["name"] == "tcpxo-daemon" for each in obj["spec"]["containers"]):
        return []
    image = "us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpxo/tcpgpudmarxd-dev:v1.0.1-unknown"
    return [{"op": "add", "path": "/spec/containers/-", "value": {"name": "tcpxo-daemon", "image": image}}]


@pytest.mark.parametrize("name", ["aa-other", "zz-other"])
async def test_a_foreign_daemon_that_does_not_agree_is_refused_by_name(
    admin: Client, hook: Webhook, others: Any, team: str, name: str
) -> None:
    _, install = others
    await install(name, foreign_daemon)
    said = await refusal(admin, pod(), team)
    assert 'admission webhook "pods.interlace.dev" denied the request: ' in said
    assert "spec.containers[1]" in said


def late_label(obj: dict[str, Any]) -> list[dict[str, Any]]:
    labels = obj["metadata"].get("labels", {})
    key = names.FABRIC_LABEL.replace("/", "~1")
    return [] if names.FABRIC_LABEL in labels else [{"op": "add", "path": f"/metadata/labels/{key}", "value": "auto"}]


async def test_a_label_that_is_set_before_it_counts(admin: Client, hook: Webhook, others: Any, team: str) -> None:
    _, install = others
    await install("aa-other", late_label)
    found = await admin.create(PODS, pod(family=None), namespace=team)
    assert found["spec"]["initContainers"][0]["name"] == "tcpxo-daemon"


async def test_a_label_that_comes_too_late_is_refused_with_the_remedy(
    admin: Client, hook: Webhook, others: Any, team: str
) -> None:
    _, install = others
    await install("zz-other", late_label)
    said = await refusal(admin, pod(family=None), team)
    assert "another webhook set the label interlace.dev/fabric or changed the Pod" in said
    assert "Set the label in the template of the Pod" in said


async def test_while_it_is_down_only_what_asks_is_refused(
    real_plane: ControlPlane, admin: Client, hook: Webhook, team: str
) -> None:
    async with hold(replica(real_plane, admin)) as mortal:
        await register(admin, mortal.url)
        await called(admin)
        address = mortal.url
    made = await admin.create(PODS, pod(family=None), namespace=team)
    assert "initContainers" not in made["spec"]
    said = await refusal(admin, pod(), team)
    assert 'failed calling webhook "pods.interlace.dev"' in said
    assert address in said
    assert "connection refused" in said
    disk = pod(family=None, gpus=0)
    disk["metadata"]["annotations"] = {"devices.gke.io/container.main": "- path: /dev/nvidia0"}
    assert 'failed calling webhook "devices.interlace.dev"' in await refusal(admin, disk, team)
    await register(admin, hook.url)
    await called(admin)
    assert (await admin.create(PODS, pod(), namespace=team))["spec"]["initContainers"]
