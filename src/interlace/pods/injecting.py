"""Injection at admission: whether a Pod asked for it, for which family, and what the cluster says about it.

Asked for by the label ``interlace.dev/fabric`` on the Pod or, where the Pod has none, on its namespace. Decisions
are those of ``interlace inject``: the same functions with the same arguments. Invariant: a Pod that did not ask
is not touched; one that asked and cannot be served is refused, never let through without its fabric.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import msgspec

from interlace.api.core import Namespace
from interlace.api.meta import ObjectMeta, Resource, Struct
from interlace.api.resource import ResourceClaim, ResourceClaimTemplate
from interlace.api.webhook import FABRIC_LABEL, OFF
from interlace.fabric.version import GkeVersion, Minor, VersionError, gke_version, minor_version
from interlace.kube.client import Client
from interlace.kube.errors import NotFound
from interlace.kube.informer import Informer
from interlace.kube.metrics import Metrics
from interlace.pods.draft import Draft
from interlace.pods.errors import InjectError
from interlace.pods.gpus import device_classes
from interlace.pods.inject import Injection, inject
from interlace.pods.patching import difference
from interlace.pods.recognition import recognise
from interlace.pods.review import ALLOWED, Request, Verdict, refuse
from interlace.pods.settings import WebhookSettings

_SHOWN: Final = 3


class Injecting:
    """``run`` keeps the labels of namespaces; ``inject`` and ``check`` decide from them once ``synced``."""

    def __init__(self, client: Client, *, settings: WebhookSettings, metrics: Metrics | None = None) -> None:
        self._client = client
        self._settings = settings
        self._version: GkeVersion | Minor | None = settings.version
        self._namespaces = Informer(client, Namespace, labels=FABRIC_LABEL, metadata_only=True, metrics=metrics)

    async def run(self) -> None:
        """Until cancelled."""
        if self._version is None:
            told = msgspec.json.decode(await self._client.request("GET", "/version"), type=dict[str, Any])
            self._version = _cluster_version(str(told.get("gitVersion", "")))
        await self._namespaces.run()

    async def synced(self) -> None:
        """Wait until the labels of namespaces are known."""
        await self._namespaces.synced()

    def ready(self) -> str | None:
        """Why Pods cannot be injected; None: they can."""
        found = self._namespaces
        return None if found.has_synced else f"the labels of namespaces cannot be read yet: {found.problem}"

    async def inject(self, request: Request) -> Verdict:
        """The patch that gives a new Pod its fabric (mutating)."""
        pod, named = await self._asked(request)
        if pod is None:
            return ALLOWED
        try:
            done, why = await self._injection(pod, named=named, namespace=request.namespace)
        except InjectError as error:
            return refuse([_reworded(error, namespace=request.namespace)])
        if done is None:  # in a namespace that asks, Pods without GPUs are nothing special
            return ALLOWED if named else Verdict(warnings=(f"{FABRIC_LABEL}: nothing was injected, since {why}",))
        return Verdict(patch=difference(pod, done.pod), warnings=done.warnings)

    async def check(self, request: Request) -> Verdict:
        """Refuse a Pod that asked for its fabric and, after all webhooks, does not have it (validating)."""
        pod, named = await self._asked(request)
        if pod is None:
            return ALLOWED
        try:
            done, _ = await self._injection(pod, named=named, namespace=request.namespace)
        except InjectError as error:
            return refuse([_reworded(error, namespace=request.namespace)])
        if done is None or not done.changes:
            return ALLOWED
        lacking = "; ".join(f"{change.path} ({change.reason})" for change in done.changes[:_SHOWN])
        more = f" and {len(done.changes) - _SHOWN} more" if len(done.changes) > _SHOWN else ""
        cause = f"after injection another webhook set the label {FABRIC_LABEL} or changed the Pod, which now lacks"
        remedy = "Set the label in the template of the Pod, or keep the other webhook from changing it"
        return refuse([f"{cause} {lacking}{more}", remedy])

    async def _asked(self, request: Request) -> tuple[dict[str, Any] | None, str | None]:
        """The new Pod if it asked, and what its namespace names where the Pod itself names nothing."""
        if request.operation != "CREATE" or request.sub_resource:
            return None, None
        pod: dict[str, Any] = msgspec.json.decode(request.object)
        labels = (pod.get("metadata") or {}).get("labels") or {}
        own = labels.get(FABRIC_LABEL)
        named = await self._of_namespace(request.namespace) if own is None else None
        asked = named if own is None else own
        return (None, None) if asked in (None, OFF) else (pod, named)

    async def _of_namespace(self, name: str) -> str | None:
        found = self._namespaces.get(name)
        if found is None:  # the API server may know a label of a moment ago before we do
            try:
                found = await self._client.get(Namespace, name)
            except NotFound:
                return None
        return found.metadata.labels.get(FABRIC_LABEL)

    async def _injection(
        self, pod: dict[str, Any], *, named: str | None, namespace: str
    ) -> tuple[Injection | None, str]:
        claims = await self._classes(pod, namespace=namespace)
        recognised = recognise(Draft(pod), named=named, claims=claims)
        if recognised.family is None:
            return None, recognised.why
        family = recognised.family
        chosen = self._settings.software.get(family.id)
        done = inject(
            pod,
            family=family,
            software=family.software(chosen) if chosen else None,
            profile=self._settings.profile,
            version=self._version,
            required_plugin=self._settings.required_plugin,
            networks=self._settings.networks,
            claims=claims,
        )
        return done, recognised.why

    async def _classes(self, pod: Mapping[str, Any], *, namespace: str) -> dict[str, tuple[str, ...]]:
        """The DeviceClasses behind the claims of a Pod, by name of the claim or template; those that exist."""
        kinds: dict[str, type[_Claim | _Template]] = {}
        for entry in (pod.get("spec") or {}).get("resourceClaims") or []:
            if name := entry.get("resourceClaimTemplateName"):
                kinds[name] = _Template
            elif name := entry.get("resourceClaimName"):
                kinds[name] = _Claim

        async def classes(name: str) -> tuple[str, ...]:
            try:
                return (await self._client.get(kinds[name], name, namespace=namespace)).classes()
            except NotFound:
                return ()

        async with asyncio.TaskGroup() as group:
            asked = {name: group.create_task(classes(name)) for name in kinds}
        return {name: found.result() for name, found in asked.items()}


class _Claim(Struct, frozen=True):
    resource: ClassVar[Resource] = ResourceClaim.resource
    metadata: ObjectMeta = ObjectMeta()
    spec: dict[str, Any] = {}

    def classes(self) -> tuple[str, ...]:
        return device_classes(self.spec)


class _Template(Struct, frozen=True):
    resource: ClassVar[Resource] = ResourceClaimTemplate.resource
    metadata: ObjectMeta = ObjectMeta()
    spec: dict[str, Any] = {}

    def classes(self) -> tuple[str, ...]:
        return device_classes(self.spec.get("spec"))


def _cluster_version(text: str) -> GkeVersion | Minor | None:
    """Of ``gitVersion``: ``v1.34.5-gke.1153000`` in GKE, ``v1.36.3`` elsewhere."""
    try:
        return gke_version(text)
    except VersionError:
        pass
    try:
        return minor_version(".".join(text.removeprefix("v").split(".")[:2]))
    except VersionError:
        return None


def _reworded(error: InjectError, *, namespace: str) -> str:
    """The sentence for somebody who did not call the command."""
    return str(error).replace("--family", f"the label {FABRIC_LABEL} of namespace {namespace}")
