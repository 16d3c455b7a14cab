"""All that the controller watches, and which domains a change concerns.

Six watches, each as narrow as the API allows: ComputeDomains; claims and templates that carry the
domain label; cliques and imex-host Pods of our namespace; ResourceSlices of our driver. No Nodes
and no Pods of users. A key is the uid of a domain.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeVar

from interlace.api.computedomain import DOMAIN_LABEL, DRIVER, SHARED, ComputeDomain, ComputeDomainClique
from interlace.api.core import ObjectReference, Pod
from interlace.api.meta import Object
from interlace.api.resource import ResourceClaim, ResourceClaimTemplate, ResourceSlice
from interlace.domains.channels import clique_of
from interlace.domains.collisions import crowded
from interlace.domains.hosts import revision_of
from interlace.domains.membership import node_of
from interlace.domains.places import Place, place
from interlace.domains.reports import completed, elsewhere
from interlace.domains.retry import pods_to_touch
from interlace.domains.sharing import is_free
from interlace.domains.template import SELECTOR
from interlace.kube.client import Client
from interlace.kube.informer import Informer
from interlace.kube.metrics import Metrics

T = TypeVar("T", bound=Object)

HOST_SELECTOR = "app.kubernetes.io/component=imex-host"
"""Labels of imex-host Pods."""

UID = "uid"
TENANT = "tenant"
CLIQUE = "clique"
DOMAIN = "domain"
NODE = "node"
UNREADY = "unready"


def _uid(obj: Object) -> Iterable[str]:
    return (obj.metadata.uid,)


def _domain(obj: Object) -> Iterable[str]:
    uid = obj.metadata.labels.get(DOMAIN_LABEL)
    return (uid,) if uid else ()


def _claim_node(claim: ResourceClaim) -> Iterable[str]:
    node = node_of(claim)
    return (node,) if node else ()


def _slice_clique(slice_: ResourceSlice) -> Iterable[str]:
    clique = place(slices=[slice_], hosts=()).clique
    return (clique,) if clique else ()


def _tenants(clique: ComputeDomainClique) -> Iterable[str]:
    return (entry.domain for entry in clique.channels)


def _map_keys(clique: ComputeDomainClique) -> Iterable[str]:
    """The domains that a map concerns, and the map itself where several share it."""
    shared = (clique.metadata.name,) if clique_of(clique.metadata.name) is not None else ()
    return {*_domain(clique), *_tenants(clique), *shared}


def _slice_node(slice_: ResourceSlice) -> Iterable[str]:
    return (slice_.spec.node_name,) if slice_.spec.node_name else ()


def _pod_node(pod: Pod) -> Iterable[str]:
    return (pod.spec.node_name,) if pod.spec.node_name else ()


def _unready(pod: Pod) -> Iterable[str]:
    return () if pod.ready or pod.metadata.deletion_timestamp else (revision_of(pod),)


class Sources:
    """The caches of one term of leadership; ``changed`` and ``touch`` are called synchronously."""

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        changed: Callable[[str], None],
        touch: Callable[[ObjectReference], None],
        metrics: Metrics | None = None,
    ) -> None:
        self._changed = changed
        self._touch = touch
        self.domains = Informer(client, ComputeDomain, indexes={UID: _uid}, metrics=metrics)
        self.cliques = Informer(
            client,
            ComputeDomainClique,
            namespace=namespace,
            indexes={DOMAIN: _domain, TENANT: _tenants},
            metrics=metrics,
        )
        self.templates = Informer(
            client, ResourceClaimTemplate, labels=SELECTOR, indexes={DOMAIN: _domain}, metrics=metrics
        )
        self._claims = Informer(
            client, ResourceClaim, labels=DOMAIN_LABEL, indexes={DOMAIN: _domain, NODE: _claim_node}, metrics=metrics
        )
        self._slices = Informer(
            client,
            ResourceSlice,
            fields=f"spec.driver={DRIVER}",
            indexes={NODE: _slice_node, CLIQUE: _slice_clique},
            metrics=metrics,
        )
        self.hosts = Informer(
            client,
            Pod,
            namespace=namespace,
            labels=HOST_SELECTOR,
            indexes={NODE: _pod_node, UNREADY: _unready},
            metrics=metrics,
        )
        self._left: Callable[[str], None] = lambda _node: None
        self.hidden: set[str] = set()
        """Uids of objects that we have deleted and that the caches still show."""
        self._shared: dict[str, ComputeDomainClique] = {}
        self.hungry: set[str] = set()
        """Domains with claims that wait: they are told once no node is free any more."""
        self.crowded: set[str] = set()
        """Nodes on which claims of several domains are allocated."""
        self._free: set[str] = set()
        self._informers = (self.domains, self.cliques, self.templates, self._claims, self._slices, self.hosts)
        self.domains.on_change(lambda old, new: self._tell(old, new, _uid))
        self.cliques.on_change(self._map_changed)
        self.templates.on_change(lambda old, new: self._tell(old, new, _domain))
        self._claims.on_change(self._claim_changed)
        self._slices.on_change(self._slice_changed)
        self.hosts.on_change(self._host_changed)

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            for informer in self._informers:
                group.create_task(informer.run())

    async def synced(self) -> None:
        """Wait until every cache has had its first full list."""
        for informer in self._informers:
            await informer.synced()

    def known(self) -> set[str]:
        """Domains that exist, and those that something of ours still names; maps that several share."""
        named: list[Object] = [*self.cliques.items(), *self.templates.items()]
        uids = {domain.metadata.uid for domain in self.domains.items()} | {uid for obj in named for uid in _domain(obj)}
        return uids | {key for clique in self.cliques.items() for key in _map_keys(clique)}

    def domain(self, uid: str) -> ComputeDomain | None:
        """The domain, if it exists and we have not let go of it."""
        return next((domain for domain in self.domains.by(UID, uid) if uid not in self.hidden), None)

    def cliques_of(self, uid: str) -> list[ComputeDomainClique]:
        """Cliques of the domain, without those that we have deleted."""
        return [clique for clique in self.cliques.by(DOMAIN, uid) if clique.metadata.uid not in self.hidden]

    def shared(self) -> dict[str, ComputeDomainClique]:
        """The node maps that domains with isolation Channel share, by fabric clique; without those that we deleted."""
        return {clique: found for clique, found in self._shared.items() if found.metadata.uid not in self.hidden}

    def shared_in(self, clique: str) -> ComputeDomainClique | None:
        """The one of a fabric clique."""
        found = self._shared.get(clique)
        return found if found is not None and found.metadata.uid not in self.hidden else None

    def shared_of(self, uid: str) -> list[ComputeDomainClique]:
        """Those of them that name the domain."""
        return [clique for clique in self.cliques.by(TENANT, uid) if clique.metadata.uid not in self.hidden]

    def shared_near(self, uid: str, touched: Iterable[str]) -> dict[str, ComputeDomainClique]:
        """Those of the fabric cliques ``touched``, and those that name the domain; never all that there are."""
        near = {clique: found for clique in touched if (found := self.shared_in(clique)) is not None}
        return near | {clique: found for found in self.shared_of(uid) if (clique := clique_of(found.metadata.name))}

    def nodes_of(self, clique: str) -> set[str]:
        """Nodes whose slice says that they are in the fabric clique."""
        return {node for slice_ in self._slices.by(CLIQUE, clique) for node in _slice_node(slice_)}

    def nodes_with(self, uid: str) -> set[str]:
        """Nodes with an allocated claim that carries the label of the domain."""
        return {node for claim in self._claims.by(DOMAIN, uid) for node in _claim_node(claim)}

    def group(self, uid: str) -> str:
        """With whom a domain may be on one node: with itself, or with all that share nodes."""
        domain = self.domain(uid)
        if domain is None:
            return SHARED if self.shared_of(uid) else uid
        return SHARED if domain.spec is not None and domain.spec.isolation == "Channel" else uid

    def ask(self, key: str) -> None:
        """Ask for a pass."""
        self._changed(key)

    def templates_of(self, uid: str) -> list[ResourceClaimTemplate]:
        """Templates of the domain, without those that we have deleted."""
        return [template for template in self.templates.by(DOMAIN, uid) if template.metadata.uid not in self.hidden]

    def deleted(self, obj: Object) -> None:
        """We have deleted ``obj``, or taken our finalizer off it at last; it is not shown any more."""
        meta = obj.metadata
        shown = (informer.get(meta.name, meta.namespace) for informer in (self.domains, self.cliques, self.templates))
        if any(found is not None and found.metadata.uid == meta.uid for found in shown):
            self.hidden.add(meta.uid)

    def claims_of(self, uid: str) -> list[ResourceClaim]:
        """Claims that carry the label of the domain, in any namespace."""
        return [self._completed(claim) for claim in self._claims.by(DOMAIN, uid)]

    def reports_elsewhere(self, nodes: Iterable[str]) -> bool:
        """Whether agents of these nodes report on their slices, because the server keeps nothing on claims."""
        return any(elsewhere(self._slices.by(NODE, node)) for node in nodes)

    def claims_on(self, node: str) -> list[ResourceClaim]:
        """Claims with the label of any domain that are allocated on the node."""
        return [self._completed(claim) for claim in self._claims.by(NODE, node)]

    def hosts_on(self, node: str) -> list[Pod]:
        """The imex-host Pods of the node: one, or two while one is replaced."""
        return self.hosts.by(NODE, node)

    def on_left(self, handler: Callable[[str], None]) -> None:
        """Call ``handler`` with a node when its last claim is not allocated there any more."""
        self._left = handler

    def place(self, node: str) -> Place:
        """What is known of a node."""
        return place(slices=self._slices.by(NODE, node), hosts=self.hosts.by(NODE, node))

    @property
    def free_nodes(self) -> bool:
        """Whether there is a node that a new domain could take."""
        return bool(self._free)

    def _completed(self, claim: ResourceClaim) -> ResourceClaim:
        return completed(claim, self._slices.by(NODE, node_of(claim)))

    def _domains_on(self, nodes: Iterable[str]) -> Iterable[str]:
        return {uid for node in nodes for claim in self._claims.by(NODE, node) for uid in _domain(claim)}

    def _map_changed(self, old: ComputeDomainClique | None, new: ComputeDomainClique | None) -> None:
        for found in (old, new):
            if found is not None and (clique := clique_of(found.metadata.name)) is not None:
                self._shared.pop(clique, None)
                if new is not None:
                    self._shared[clique] = new
        self._tell(old, new, _map_keys)

    def _host_changed(self, old: Pod | None, new: Pod | None) -> None:
        self._tell(old, new, lambda obj: self._domains_on(_pod_node(obj)))
        nodes = [set(_pod_node(pod)) if pod is not None else set() for pod in (old, new)]
        if nodes[0] != nodes[1]:
            self._count_free(nodes[0] | nodes[1])

    def _slice_changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        self._tell(old, new, lambda obj: self._domains_on(_slice_node(obj)))
        nodes = {node for obj in (old, new) if obj is not None for node in _slice_node(obj)}
        self._count_free(nodes)
        seen = [[obj] if obj is not None else [] for obj in (old, new)]
        if any(map(elsewhere, seen)):
            for claim in (claim for node in nodes for claim in self._claims.by(NODE, node)):
                for pod in pods_to_touch(completed(claim, seen[0]), completed(claim, seen[1])):
                    self._touch(pod)

    def _count_free(self, nodes: Iterable[str]) -> None:
        before = bool(self._free)
        for node in nodes:
            if is_free(self._slices.by(NODE, node), self._claims.by(NODE, node), hosts=self.hosts_on(node)):
                self._free.add(node)
            else:
                self._free.discard(node)
        if before and not self._free:
            hungry, self.hungry = self.hungry, set()
            for uid in hungry:
                self._changed(uid)

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        self._tell(old, new, _domain)
        nodes = [set(_claim_node(claim)) if claim is not None else set() for claim in (old, new)]
        if nodes[0] != nodes[1]:
            self._count_free(nodes[0] | nodes[1])
            for node in nodes[0] - nodes[1]:
                if not self._claims.by(NODE, node):
                    self._left(node)
            for node in nodes[0] | nodes[1]:
                if crowded(self._claims.by(NODE, node)):
                    self.crowded.add(node)
                else:
                    self.crowded.discard(node)
        for uid in self._domains_on(nodes[1] & self.crowded):
            self._changed(uid)
        for pod in pods_to_touch(old, new):
            self._touch(pod)

    def _tell(self, old: T | None, new: T | None, keys: Callable[[T], Iterable[str]]) -> None:
        for uid in {uid for obj in (old, new) if obj is not None for uid in keys(obj)}:
            self._changed(uid)
        if old is not None and new is None:
            self.hidden.discard(old.metadata.uid)
