"""Keeps API servers trusting this webhook: the Secret, the certificate on the wire, the ``caBundle``.

All replicas do this alike and agree through the Secret's resourceVersion: who loses a write reads what the
other wrote. Invariant: what is served is what the Secret holds; handshakes from one moment on show the
new certificate, running connections are not touched.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec

from interlace.api.meta import Resource
from interlace.kube.backoff import backoff
from interlace.kube.client import Client
from interlace.kube.errors import Conflict, KubeError, NotFound
from interlace.kube.informer import Informer
from interlace.kube.log import get_logger
from interlace.kube.metrics import Metrics
from interlace.kube.untyped import Untyped, untyped
from interlace.pods.certificates import GRACE, LIFE, Stored, authorities, bundle_text, from_secret, plan, to_secret

SECRETS: Final = untyped(Resource("", "v1", "secrets", "Secret", True))
MUTATING: Final = untyped(
    Resource(
        "admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", False
    )
)
VALIDATING: Final = untyped(
    Resource(
        "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", False
    )
)
MANAGER: Final = "interlace-webhook"
LONGEST_REST: Final = 3600.0
"""Seconds after which all is looked at again, whatever is planned."""

_log = get_logger(__name__)


class TrustSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Whose certificate it is and how long it lives."""

    namespace: str
    secret: str
    mutating: tuple[str, ...]
    validating: tuple[str, ...]
    """Names of the webhook configurations that lead to us; those that do not exist are no fault."""
    names: tuple[str, ...]
    """DNS names and addresses under which API servers reach us."""
    life: timedelta = LIFE
    grace: timedelta = GRACE


class Trust:
    """``context`` is for the server; ``run`` keeps it current. Start ``run`` first and wait for ``loaded``."""

    def __init__(
        self,
        client: Client,
        *,
        settings: TrustSettings,
        metrics: Metrics | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._client = client
        self._settings = settings
        self._clock = clock
        self._wake = asyncio.Event()
        self._loaded = asyncio.Event()
        self._served = b""
        self._problem: str | None = "the serving certificate is not there yet"
        self._secrets = self._informer(SECRETS, settings.secret, settings.namespace, metrics)
        ours = [(MUTATING, name) for name in settings.mutating] + [(VALIDATING, name) for name in settings.validating]
        self._configurations = [(kind, name, self._informer(kind, name, None, metrics)) for kind, name in ours]
        self.expires: datetime | None = None
        """When the certificate that is served expires."""
        self.handshakes = 0
        """Since the start: an API server that has heard of another bundle connects anew."""
        self.context.sni_callback = self._count

    def _count(self, *_: object) -> None:
        self.handshakes += 1

    def _informer(
        self, kind: type[Untyped], name: str, namespace: str | None, metrics: Metrics | None
    ) -> Informer[Untyped]:
        # A Role with resourceNames allows lists and watches that select this one name.
        informer = Informer(self._client, kind, namespace=namespace, fields=f"metadata.name={name}", metrics=metrics)
        informer.on_change(lambda _old, _new: self._wake.set())
        return informer

    def _informers(self) -> list[Informer[Untyped]]:
        return [self._secrets, *(informer for _, _, informer in self._configurations)]

    async def loaded(self) -> None:
        """Wait until there is a certificate to serve."""
        await self._loaded.wait()

    def ready(self) -> str | None:
        """Why API servers may not be able to call us; None: they are."""
        for informer in self._informers():
            if not informer.has_synced:
                return f"Secret and webhook configurations cannot be read yet: {informer.problem}"
        if self._problem is None and self.expires is not None and self.expires <= self._clock():
            return f"the serving certificate expired at {self.expires:%Y-%m-%dT%H:%M:%SZ}"
        return self._problem

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            for informer in self._informers():
                group.create_task(informer.run())
            for informer in self._informers():
                await informer.synced()
            failures = 0
            while True:
                self._wake.clear()
                try:
                    rest = await self._look()
                    failures = 0
                except Conflict:
                    rest = LONGEST_REST  # the other replica was first; its write wakes us
                except KubeError as error:
                    failures += 1
                    rest = backoff(failures, base=0.2, cap=30.0)
                    self._problem = str(error)
                    _log.warning("the certificate could not be looked after", why=str(error), again=round(rest, 1))
                try:
                    async with asyncio.timeout(min(rest, LONGEST_REST)):
                        await self._wake.wait()
                except TimeoutError:
                    continue

    async def _look(self) -> float:
        """Do what is due; seconds until something may be due again."""
        settings = self._settings
        secret = self._secrets.get(settings.secret, settings.namespace)
        if secret is None:
            self._problem = (
                f"Secret {settings.namespace}/{settings.secret} is missing; apply the manifests of the webhook again"
            )
            return LONGEST_REST
        stored = from_secret(secret.get("data") or {})
        step = plan(
            stored,
            names=settings.names,
            trusted=self._trusted(),
            now=self._clock(),
            life=settings.life,
            grace=settings.grace,
        )
        if step.stored is not None:
            await self._write(step.stored, version=secret.metadata.resource_version)
            _log.info("certificate", action=step.action)
            return 0.0  # what is in the Secret now is looked at next
        self._serve(stored)
        await self._trust(stored)
        self._problem = None
        return step.again

    async def _write(self, stored: Stored, *, version: str) -> None:
        settings = self._settings
        patch = {"metadata": {"resourceVersion": version}, "data": to_secret(stored)}
        try:
            written = await self._client.merge_patch(SECRETS, settings.secret, patch, namespace=settings.namespace)
        except NotFound:
            return  # the informer will say so
        await self._secrets.reached(written.metadata.resource_version)

    def _serve(self, stored: Stored) -> None:
        present = stored.present
        if present is None or present.chain == self._served:
            return
        handle, name = tempfile.mkstemp(prefix="interlace-")  # mode 0600; OpenSSL reads files only
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(present.chain + present.key)
            self.context.load_cert_chain(name)
        finally:
            Path(name).unlink()
        self._served, self.expires = present.chain, present.expires
        self._loaded.set()
        _log.info("serving", expires=f"{present.expires:%Y-%m-%dT%H:%M:%SZ}")

    async def _trust(self, stored: Stored) -> None:
        """Put the bundle into every webhook of ours that has another."""
        bundle = bundle_text(stored)
        for kind, name, informer in self._configurations:
            hooks = _hooks(informer)
            if all(hook["clientConfig"].get("caBundle") == bundle for hook in hooks):
                continue
            body: dict[str, Any] = {
                "metadata": {"name": name},
                "webhooks": [{"name": hook["name"], "clientConfig": {"caBundle": bundle}} for hook in hooks],
            }
            try:
                written = await self._client.apply(kind, body, name=name, manager=MANAGER)
            except NotFound:
                continue  # uninstalled meanwhile
            await informer.reached(written.metadata.resource_version)

    def _trusted(self) -> set[bytes] | None:
        bundles = [
            set(authorities(hook["clientConfig"].get("caBundle") or ""))
            for _, _, informer in self._configurations
            for hook in _hooks(informer)
        ]
        return set.intersection(*bundles) if bundles else None


def _hooks(informer: Informer[Untyped]) -> list[dict[str, Any]]:
    return [hook for found in informer.items() for hook in found.get("webhooks") or []]
