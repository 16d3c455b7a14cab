"""The webhook as it runs in a cluster, beside a control plane of the tests.

Its objects are the installed ones but for the address (API servers of the tests reach loopback and no Service); it
authenticates with a token of its ServiceAccount, so that a right which is missing shows.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from interlace.api import webhook as names
from interlace.api.core import Pod
from interlace.kube.client import Client
from interlace.kube.config import Config
from interlace.kube.errors import ApiError
from interlace.kube.untyped import Discovery, Untyped, apply_manifest
from interlace.manifests import NAMESPACE
from interlace.manifests.webhook import configurations, webhook_manifests
from interlace.pods.settings import WebhookSettings
from interlace.pods.trust import MUTATING, SECRETS, VALIDATING
from interlace.pods.webhook import Ports, serve
from interlace.sim.kubelet.token import TokenRequest
from interlace.sim.plane import Plane
from tests.waiting import eventually

WITHIN = 30.0


@dataclass(slots=True)
class Clock:
    """Time as the webhook sees it: the real one, and as much later as a test says."""

    ahead: timedelta = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@dataclass(slots=True)
class Webhook:
    """One replica."""

    admin: Client
    ports: Ports
    clock: Clock = field(default_factory=Clock)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.ports.admission}"


async def settle(client: Client, *, image: str = "docker.io/library/none:1") -> None:
    """Apply everything that installs the webhook but its configurations and its Pods."""
    discovery = Discovery(client)
    for manifest in webhook_manifests(image=image, replicas=0):
        if "admissionregistration" not in manifest["apiVersion"]:
            await apply_manifest(client, manifest, manager="platform-engineer", discovery=discovery)


async def register(client: Client, url: str, *, guard: str = "enforce") -> None:
    """Have API servers call ``url``."""
    for manifest in configurations(url=url, guard=guard):
        await apply_manifest(client, manifest, manager="platform-engineer")


async def credentials(plane: Plane, admin: Client) -> Config:
    """Those of the webhook's ServiceAccount."""
    answer = await admin.create(
        TokenRequest,
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}},
        name=names.SERVICE,
        namespace=NAMESPACE,
        subresource="token",
    )
    config = plane.credentials("nobody")
    return Config(server=config.server, ca=config.ca, token=answer.status.token)


@asynccontextmanager
async def replica(
    plane: Plane, admin: Client, *, clock: Clock | None = None, **settings: Any
) -> AsyncIterator[Webhook]:
    """A webhook that listens on loopback; ended, as by SIGTERM, on leaving. Enter and leave it in one task."""
    loopback = WebhookSettings(host="127.0.0.1", port=0, http_host="127.0.0.1", http_port=0, names=("127.0.0.1",))
    chosen = msgspec.structs.replace(loopback, **settings)
    config, found = await credentials(plane, admin), clock or Clock()
    listening: asyncio.Future[Ports] = asyncio.get_running_loop().create_future()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(serve(chosen, config=config, on_listening=listening.set_result, clock=found))
        try:
            async with asyncio.timeout(WITHIN):
                ports = await listening
            yield Webhook(admin, ports, found)
        finally:
            running.cancel()


async def bundles(admin: Client) -> set[str]:
    """The ``caBundle`` of every webhook of ours; an empty one where there is none."""
    found: set[str] = set()
    for kind, name in (
        (MUTATING, names.CONFIGURATION),
        (VALIDATING, names.CONFIGURATION),
        (VALIDATING, names.GUARD_CONFIGURATION),
    ):
        hooks = (await admin.get(kind, name))["webhooks"]
        found |= {hook["clientConfig"].get("caBundle", "") for hook in hooks}
    return found


async def secret(admin: Client) -> Untyped:
    """The Secret with the certificate."""
    return await admin.get(SECRETS, names.SECRET, namespace=NAMESPACE)


@asynccontextmanager
async def installed(plane: Plane, admin: Client, **settings: Any) -> AsyncIterator[Webhook]:
    """One replica that the API server calls, and trusts."""
    await settle(admin)
    async with replica(plane, admin, **settings) as hook:
        await register(admin, hook.url)
        await called(admin)
        yield hook


async def called(admin: Client) -> None:
    """Wait until every configuration is in force: a bundle is written, and a Pod that must be refused is."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}}
    await apply_manifest(admin, account, manager="test")  # the embedded server has no controller that makes it
    limits = {"limits": {"nvidia.com/gpu": "8"}}
    container = {"name": "main", "image": "docker.io/library/busybox:1.37", "resources": limits}
    probes: dict[str, dict[str, Any]] = {
        "may not be injected": {"annotations": {"devices.gke.io/container.main": "- path: /dev/sda"}},
        "no-family": {"labels": {names.FABRIC_LABEL: "no-family"}},
    }

    async def refused() -> bool:
        found = await bundles(admin)
        assert len(found) == 1, "all webhooks have the same caBundle"
        assert "" not in found
        for said, metadata in probes.items():
            pod = {"metadata": {"name": "probe", **metadata}, "spec": {"containers": [container]}}
            answer = "created"
            try:
                await admin.create(Pod, pod, namespace="default", dry_run=True)
            except ApiError as error:
                answer = error.message
            assert said in answer, f"the API server answers: {answer}"
        return True

    await eventually(refused, within=WITHIN, what="the webhook to be called")


async def exposed(hook: Webhook, path: str = "/metrics") -> tuple[int, str]:
    """Code and text of an answer of the replica's port for health and metrics."""
    async with asyncio.timeout(WITHIN):
        reader, writer = await asyncio.open_connection("127.0.0.1", hook.ports.http)
        try:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: webhook\r\n\r\n".encode())
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        finally:
            writer.close()
    return int(head.split(b" ")[1]), body.decode()


async def samples(hook: Webhook, name: str) -> dict[tuple[str, ...], float]:
    """The samples of one metric by the values of its labels."""
    _, text = await exposed(hook)
    found = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {tuple(sample.labels.values()): sample.value for sample in found if sample.name == name}


async def decisions(hook: Webhook) -> dict[str, int]:
    """How many requests were allowed under each path; refused ones are tried again by controllers at any time."""
    found = await samples(hook, "interlace_admission_total")
    return {path: int(value) for (path, verdict), value in found.items() if verdict == "allowed"}
