"""Keeps the ResourceClaimTemplate of each domain: makes it, makes it again, replaces the known driver's, lets it go.

Invariant: only templates in the namespace of the domain and with its label are touched, and exactly the object that
was read (by uid). A refusal is remembered and told; it is no failure of the pass.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import msgspec

from interlace.api.computedomain import FINALIZER, ComputeDomain, ComputeDomainSpec
from interlace.api.meta import Condition
from interlace.api.resource import ResourceClaimTemplate
from interlace.domains import conditions
from interlace.domains.reasons import DomainReason
from interlace.domains.sources import Sources
from interlace.domains.takeover import is_ours
from interlace.domains.template import template
from interlace.kube.client import Client
from interlace.kube.errors import AlreadyExists, BadRequest, Forbidden, Invalid, NotFound

RETRY: Final = 15.0
"""Seconds until a template that was refused is tried again."""


class Refusal(msgspec.Struct):
    """Why the server did not take the template of one domain last, and when it is asked again."""

    state: Condition | None = None
    until: float = 0.0

    def next_in(self, *, now: float) -> float | None:
        """Seconds until the server is asked again, None where nothing was refused."""
        return None if self.state is None else self.until - now


class Templates:
    """The templates of all domains."""

    def __init__(self, client: Client, *, sources: Sources) -> None:
        self._client = client
        self._sources = sources

    async def keep(self, domain: ComputeDomain, *, spec: ComputeDomainSpec, memo: Refusal, now: float) -> Condition:
        """Make or replace the template of the domain where needed; its condition. Raises ``KubeError``."""
        meta, name = domain.metadata, spec.channel.resource_claim_template.name
        # Whatever other namespaces label with our uid has no say here.
        mine = [t for t in self._sources.templates_of(meta.uid) if t.metadata.namespace == meta.namespace]
        for old in mine:
            theirs = old.metadata.name == name and not is_ours(old)
            if old.metadata.deletion_timestamp is not None or theirs:
                # Somebody deleted it, or the known driver made it: let it go, then make it again.
                await self.release(old)
                memo.state = None
                return conditions.template_ready(DomainReason.TEMPLATE_PENDING, name=name, namespace=meta.namespace)
        if any(t.metadata.name == name for t in mine):
            memo.state = None
            return conditions.template_ready(DomainReason.TEMPLATE_CREATED, name=name, namespace=meta.namespace)
        if memo.state is not None and now < memo.until:
            return memo.state
        memo.state, memo.until = await self._make(domain, spec=spec), now + RETRY
        if memo.state is not None:
            return memo.state
        return conditions.template_ready(DomainReason.TEMPLATE_CREATED, name=name, namespace=meta.namespace)

    async def _make(self, domain: ComputeDomain, *, spec: ComputeDomainSpec) -> Condition | None:
        """Create it; the condition where the server refuses."""
        meta, name = domain.metadata, spec.channel.resource_claim_template.name
        try:
            written = await self._client.create(
                ResourceClaimTemplate, template(domain, spec=spec), namespace=meta.namespace
            )
        except AlreadyExists:
            return conditions.template_ready(
                DomainReason.TEMPLATE_NAME_TAKEN,
                name=name,
                namespace=meta.namespace,
                holder=self._holder_of(name, namespace=meta.namespace),
            )
        except (Invalid, BadRequest, Forbidden) as error:
            reason = DomainReason.TEMPLATE_INVALID if isinstance(error, Invalid) else DomainReason.TEMPLATE_REFUSED
            return conditions.template_ready(reason, name=name, namespace=meta.namespace, message=error.message)
        await self._sources.templates.reached(written.metadata.resource_version)
        return None

    def _holder_of(self, name: str, *, namespace: str) -> str:
        """Whose the template is, if it is one of another domain."""
        taken = self._sources.templates.get(name, namespace)
        if taken is None:
            return ""
        for uid in taken.metadata.labels.values():
            if (domain := self._sources.domain(uid)) is not None:
                return f"ComputeDomain {domain.metadata.namespace}/{domain.metadata.name}"
        return ""

    async def release(self, old: ResourceClaimTemplate) -> None:
        """Delete a template of ours if it is not being deleted, and take our finalizer off it."""
        meta = old.metadata
        with suppress(NotFound):
            if meta.deletion_timestamp is None:
                await self._client.delete(ResourceClaimTemplate, meta.name, namespace=meta.namespace, uid=meta.uid)
            if FINALIZER in meta.finalizers:
                rest = [finalizer for finalizer in meta.finalizers if finalizer != FINALIZER]
                await self._client.merge_patch(
                    ResourceClaimTemplate,
                    meta.name,
                    {"metadata": {"uid": meta.uid, "finalizers": rest}},
                    namespace=meta.namespace,
                )
        self._sources.deleted(old)
