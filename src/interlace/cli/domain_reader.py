"""Reading what ``interlace domains`` shows, with the caller's rights.

Invariant: what the caller may not read is named and never guessed; only the domain itself must be readable.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from interlace.api.computedomain import CLIQUE_LABEL, DOMAIN_LABEL, DRIVER, GROUP, ComputeDomain, ComputeDomainClique
from interlace.api.core import Event, Pod
from interlace.api.meta import Object
from interlace.api.resource import ResourceClaim, ResourceSlice
from interlace.cli.exits import Code, Exit
from interlace.domains.chain import Chain, chains, unhealthy
from interlace.domains.membership import node_of
from interlace.domains.places import place
from interlace.domains.reports import completed
from interlace.kube.client import Client
from interlace.kube.config import load, load_kubeconfig
from interlace.kube.errors import Expired, Forbidden, NotFound, ServerError, Unreachable

T = TypeVar("T", bound=Object)

_RETRY = 1.0
"""Seconds between attempts to follow a domain on a server that does not answer."""


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """One domain with everything around it that could be read."""

    domain: ComputeDomain
    chains: list[Chain]
    events: list[Event]
    unhealthy: dict[str, str]
    """Nodes whose fabric is unhealthy, with the reason."""
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
        where = "any namespace" if everywhere else f"namespace {self.namespace}"
        try:
            listing = await self.client.list(ComputeDomain, namespace=None if everywhere else self.namespace)
        except NotFound:
            raise _not_installed() from None
        except Forbidden as error:
            raise _forbidden(f"list ComputeDomains in {where}", error) from None
        return sorted(listing.items, key=lambda item: (item.metadata.namespace, item.metadata.name))

    async def domain(self, name: str) -> ComputeDomain:
        """One domain; Exit with REFUSED if it is not there."""
        try:
            return await self.client.get(ComputeDomain, name, namespace=self.namespace)
        except NotFound as error:
            if error.details is None or error.details.details is None or error.details.details.name != name:
                raise _not_installed() from None
            raise Exit(
                Code.REFUSED,
                f"ComputeDomain {self.namespace}/{name} does not exist; see `interlace domains list -A`",
            ) from None
        except Forbidden as error:
            raise _forbidden(f"read ComputeDomain {self.namespace}/{name}", error) from None

    async def picture(self, name: str) -> Picture:
        """The domain, its Pods' chains and the events about it."""
        domain = await self.domain(name)
        label = f"{DOMAIN_LABEL}={domain.metadata.uid}"
        about = f"involvedObject.uid={domain.metadata.uid}"
        async with asyncio.TaskGroup() as group:
            claims_read = group.create_task(self._claims(label))
            pods_read = group.create_task(self._try(Pod, namespace=self.namespace))
            cliques_read = group.create_task(
                self._try(ComputeDomainClique, namespace=self.system, labels=_maps_of(domain))
            )
            slices_read = group.create_task(self._try(ResourceSlice, fields=f"spec.driver={DRIVER}"))
            events_read = group.create_task(self._try(Event, namespace=self.namespace, fields=about))
        claims, pods, cliques = claims_read.result(), pods_read.result(), cliques_read.result()
        slices, events = slices_read.result(), events_read.result()
        by_node = _by_node(slices or [])
        if claims is not None:
            claims = [completed(claim, by_node.get(node_of(claim), ())) for claim in claims]
        read = {
            ResourceClaim.resource.plural: claims,
            Pod.resource.plural: pods,
            ComputeDomainClique.resource.plural: cliques,
            ResourceSlice.resource.plural: slices,
            Event.resource.plural: events,
        }
        return Picture(
            domain=domain,
            chains=chains(
                domain,
                claims=claims or [],
                pods=None if pods is None else {pod.metadata.uid: pod for pod in pods},
                cliques=cliques,
                places=None
                if slices is None
                else {node: place(slices=found, hosts=()) for node, found in by_node.items()},
            ),
            events=sorted(events or [], key=lambda item: item.last_timestamp or ""),
            unhealthy=unhealthy(slices or []),
            unreadable=[plural for plural, found in read.items() if found is None],
        )

    async def follow(self, name: str, *, tell: Callable[[str], None]) -> AsyncGenerator[ComputeDomain | None]:
        """The domain now and at each change; None when it is deleted, then the end.

        A domain that does not exist yet is waited for. Once the server has answered, a lost connection is tried
        again until the caller gives up; ``tell`` gets a sentence about either, once.
        """
        fields = f"metadata.name={name}"
        answered, told, seen = False, False, ""
        while True:
            try:
                listing = await self.client.list(ComputeDomain, namespace=self.namespace, fields=fields)
                if seen and not any(item.metadata.uid == seen for item in listing.items):
                    yield None
                    return
                if not listing.items and not answered:
                    tell(f"ComputeDomain {self.namespace}/{name} does not exist yet; waiting for it")
                answered, told = True, False
                for item in listing.items:
                    seen = item.metadata.uid
                    yield item
                changes = self.client.watch(
                    ComputeDomain, namespace=self.namespace, fields=fields, resource_version=listing.resource_version
                )
                async with aclosing(changes):
                    async for event in changes:
                        if event.type == "DELETED":
                            yield None
                            return
                        if event.type != "BOOKMARK":
                            seen = event.object.metadata.uid
                            yield event.object
            except Expired:
                continue
            except NotFound:
                raise _not_installed() from None
            except Forbidden as error:
                raise _forbidden(f"watch ComputeDomains in namespace {self.namespace}", error) from None
            except (Unreachable, ServerError) as error:
                if not answered:
                    raise
                if not told:
                    tell(f"{error}; trying again")
                    told = True
                await asyncio.sleep(_RETRY)

    async def _claims(self, label: str) -> list[ResourceClaim] | None:
        """Of all namespaces, or where that is not allowed of the domain's."""
        everywhere = await self._try(ResourceClaim, labels=label)
        if everywhere is not None:
            return everywhere
        return await self._try(ResourceClaim, namespace=self.namespace, labels=label)

    async def _try(
        self, kind: type[T], *, namespace: str | None = None, labels: str = "", fields: str = ""
    ) -> list[T] | None:
        """None for what may not be read."""
        try:
            return (await self.client.list(kind, namespace=namespace, labels=labels, fields=fields)).items
        except Forbidden:
            return None


def _maps_of(domain: ComputeDomain) -> str:
    """Label selector of the node maps that may hold the domain: its own, or with isolation Channel those that are
    shared, which have no domain's label.
    """
    if domain.spec is not None and domain.spec.isolation == "Channel":
        return f"{CLIQUE_LABEL},!{DOMAIN_LABEL}"
    return f"{DOMAIN_LABEL}={domain.metadata.uid}"


def _by_node(slices: Iterable[ResourceSlice]) -> dict[str, list[ResourceSlice]]:
    found: dict[str, list[ResourceSlice]] = {}
    for item in slices:
        if item.spec.node_name:
            found.setdefault(item.spec.node_name, []).append(item)
    return found


def _not_installed() -> Exit:
    return Exit(
        Code.REFUSED,
        "the cluster does not know ComputeDomains; install them with "
        "`interlace manifests | kubectl apply --server-side -f -`",
    )


def _forbidden(what: str, error: Forbidden) -> Exit:
    """What the server said names the user."""
    return Exit(
        Code.UNKNOWN,
        f"you may not {what} ({error.message}); ask for get, list and watch on computedomains.{GROUP}",
    )


@asynccontextmanager
async def connect(
    *, namespace: str | None, context: str | None, kubeconfig: str | None, system: str
) -> AsyncIterator[Reader]:
    """A reader for the cluster that the options name. Raises ConfigError."""
    async with open_client(context=context, kubeconfig=kubeconfig) as client:
        yield Reader(client, namespace=namespace or client.namespace or "default", system=system)


def open_client(*, context: str | None, kubeconfig: str | None) -> Client:
    """A client, still to be entered. Raises ConfigError."""
    config = (
        load_kubeconfig(Path(kubeconfig) if kubeconfig else None, context=context) if kubeconfig or context else load()
    )
    return Client(config, user_agent="interlace-cli")
