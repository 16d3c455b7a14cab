"""Reading what ``interlace domains`` shows, with the caller's rights."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from interlace.api.computedomain import DOMAIN_LABEL, DRIVER, ComputeDomain, ComputeDomainClique
from interlace.api.core import Event, Pod
from interlace.api.meta import Object
from interlace.api.resource import ResourceClaim, ResourceSlice
from interlace.cli.exits import Code, Exit
from interlace.domains.chain import Chain, chains
from interlace.domains.places import Place, place
from interlace.kube.client import Client
from interlace.kube.config import load, load_kubeconfig
from interlace.kube.errors import Expired, Forbidden, NotFound

T = TypeVar("T", bound=Object)


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """One domain with everything around it that could be read."""

    domain: ComputeDomain
    chains: list[Chain]
    events: list[Event]
    unreadable: list[str]
    """Kinds that the caller may not read."""


class Reader:
    """A connected client and the namespaces that matter."""

    def __init__(self, client: Client, *, namespace: str, system: str) -> None:
        self.client = client
        self.namespace = namespace
        self.system = system

    async def domains(self, *, everywhere: bool) -> list[ComputeDomain]:
        """All domains of the namespace, or of all namespaces."""
        try:
            listing = await self.client.list(ComputeDomain, namespace=None if everywhere else self.namespace)
        except NotFound:
            raise Exit(
                Code.REFUSED,
                "the cluster does not know ComputeDomains; install them: interlace manifests | kubectl apply "
                "--server-side -f -",
            ) from None
        return sorted(listing.items, key=lambda item: (item.metadata.namespace, item.metadata.name))

    async def domain(self, name: str) -> ComputeDomain:
        """One domain; Exit with REFUSED if it is not there."""
        try:
            return await self.client.get(ComputeDomain, name, namespace=self.namespace)
        except NotFound:
            raise Exit(
                Code.REFUSED,
                f"ComputeDomain {self.namespace}/{name} does not exist; see `interlace domains list -A`",
            ) from None

    async def picture(self, name: str) -> Picture:
        """The domain, its Pods' chains and the events about it."""
        domain = await self.domain(name)
        label = f"{DOMAIN_LABEL}={domain.metadata.uid}"
        unreadable: list[str] = []
        claims = await self._try(ResourceClaim, unreadable, namespace=None, labels=label)
        if claims is None:  # no right to read them everywhere
            claims = await self._try(ResourceClaim, unreadable, namespace=self.namespace, labels=label)
        pods = await self._try(Pod, unreadable, namespace=self.namespace)
        cliques = await self._try(ComputeDomainClique, unreadable, namespace=self.system, labels=label)
        slices = await self._try(ResourceSlice, unreadable, fields=f"spec.driver={DRIVER}")
        events = await self._try(
            Event, unreadable, namespace=self.namespace, fields=f"involvedObject.uid={domain.metadata.uid}"
        )
        places: dict[str, Place] | None = None
        if slices is not None:
            places = {item.spec.node_name or "": place(slices=[item], hosts=[]) for item in slices}
        return Picture(
            domain=domain,
            chains=chains(
                domain,
                claims=claims or [],
                pods={pod.metadata.uid: pod for pod in pods or []},
                cliques=cliques,
                places=places,
            ),
            events=sorted(events or [], key=lambda item: item.last_timestamp or ""),
            unreadable=unreadable,
        )

    async def follow(self, name: str) -> AsyncIterator[ComputeDomain | None]:
        """The domain now and at each change; None when it is deleted, then the end."""
        fields = f"metadata.name={name}"
        while True:
            listing = await self.client.list(ComputeDomain, namespace=self.namespace, fields=fields)
            for item in listing.items:
                yield item
            version = listing.resource_version
            try:
                async for event in self.client.watch(
                    ComputeDomain, namespace=self.namespace, fields=fields, resource_version=version
                ):
                    if event.type == "DELETED":
                        yield None
                        return
                    if event.type != "BOOKMARK":
                        yield event.object
            except Expired:
                continue

    async def _try(
        self, kind: type[T], unreadable: list[str], *, namespace: str | None = None, labels: str = "", fields: str = ""
    ) -> list[T] | None:
        try:
            return (await self.client.list(kind, namespace=namespace, labels=labels, fields=fields)).items
        except Forbidden:
            unreadable.append(kind.resource.plural)
            return None


@asynccontextmanager
async def connect(
    *, namespace: str | None, context: str | None, kubeconfig: str | None, system: str
) -> AsyncIterator[Reader]:
    """A reader for the cluster that the options name. Raises ConfigError."""
    config = (
        load_kubeconfig(Path(kubeconfig) if kubeconfig else None, context=context) if kubeconfig or context else load()
    )
    async with Client(config, user_agent="interlace-cli") as client:
        yield Reader(client, namespace=namespace or config.namespace or "default", system=system)
