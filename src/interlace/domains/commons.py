"""Keeps the node maps that domains with isolation Channel share: one pass over one fabric clique.

A pass looks at the claims on the nodes of its clique alone, whatever the cluster holds. Passes over the
domains ask for it; it never asks for them but through what it writes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any

from interlace.api.computedomain import ComputeDomainClique, PeerCount
from interlace.api.resource import ResourceClaim
from interlace.domains import channels, cliques, debounce
from interlace.domains.channels import Draft, Tenant, shared_name
from interlace.domains.collisions import domain_of
from interlace.domains.maps import MapWriter
from interlace.domains.sources import Sources
from interlace.kube.errors import ApiError, Conflict

SPREAD = 1.0
"""Seconds between two cliques that are opened for a domain that has no node yet."""


class Commons:
    """All shared maps. ``queued`` says whether claims of a domain wait for a node."""

    def __init__(
        self,
        writer: MapWriter,
        *,
        sources: Sources,
        slots: int,
        queued: Callable[[str], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._writer = writer
        self._sources = sources
        self._slots = slots
        self._queued = queued
        self._clock = clock
        self._opening: set[str] = set()
        self._pending: dict[str, debounce.Pending] = {}
        self._refusals: dict[str, str] = {}
        """Why the server did not take the map of a clique last, in its own words."""

    def look(self, uid: str, *, touched: Collection[str]) -> None:
        """Pass over the maps that concern a domain: of the fabric cliques where it has claims, and where it had."""
        for clique in {*touched, *(cliques.clique_id(found) for found in self._sources.shared_of(uid))}:
            self._sources.ask(shared_name(clique))

    def open(self, *, mine: Collection[str]) -> float | None:
        """Open nodes for a domain that waits and is in the cliques ``mine``; seconds until more may be opened."""
        shared = self._sources.shared()
        chosen = channels.to_open(shared, mine=mine)
        for clique in chosen:
            self._opening.add(clique)
            self._sources.ask(shared_name(clique))
        return SPREAD if chosen else None

    def refusal(self, touched: Collection[str]) -> str:
        """Why the server does not take one of these maps, ``""`` where it takes all."""
        return next((self._refusals[clique] for clique in sorted(touched) if clique in self._refusals), "")

    async def reconcile(self, clique: str) -> float | None:
        """Pass over one map; seconds until the next pass that no change will cause, None for none."""
        current = self._sources.shared_in(clique)
        tenants = self._tenants(clique, current)
        nodes = {node for tenant in tenants for node in tenant.nodes}
        wanted = channels.draft(
            clique,
            tenants,
            places={node: self._sources.place(node) for node in nodes},
            current=current,
            slots=self._slots,
            share=clique in self._opening,
        )
        if not channels.changed(wanted, current):
            self._pending.pop(clique, None)
            self._refusals.pop(clique, None)
            self._opening.discard(clique)
            return None
        now = self._clock()
        pending = self._pending[clique] = debounce.observe(self._pending.get(clique), wanted=wanted, now=now)
        waiting = any(self._queued(tenant.uid) for tenant in tenants)
        due = debounce.map_due_in(pending, waiting=waiting, grows=channels.grows(wanted, current), now=now)
        if due > 0 and not channels.opens(wanted, current):
            return due
        del self._pending[clique]
        try:
            await self._write(wanted, current=current)
        except ApiError as error:
            if not isinstance(error, Conflict) and self._refusals.get(clique) != error.message:
                self._refusals[clique] = error.message
                for tenant in tenants:  # once for each refusal: their passes lead back here
                    self._sources.ask(tenant.uid)
            raise
        self._refusals.pop(clique, None)
        self._opening.discard(clique)
        return None

    async def _write(self, wanted: Draft, *, current: ComputeDomainClique | None) -> None:
        if current is not None and not wanted.rows:
            await self._writer.delete(current)
        else:
            body = channels.body(wanted, namespace=self._writer.namespace, current=current)
            await self._writer.write(body, current=current)

    def _tenants(self, clique: str, current: ComputeDomainClique | None) -> list[Tenant]:
        known = {entry.domain: entry for entry in current.channels} if current is not None else {}
        nodes = self._sources.nodes_of(clique) | {row.node_name for row in (current.daemons if current else ())}
        found: dict[str, set[str]] = {}
        names: dict[str, tuple[str, str, PeerCount | None]] = {}
        for node in nodes:
            for claim in self._sources.claims_on(node):
                uid = domain_of(claim)
                if uid not in names and (who := self._who(claim, known=known)) is not None:
                    names[uid] = who
                if uid in names and names[uid][1] == claim.metadata.namespace:
                    found.setdefault(uid, set()).add(node)
        return [
            Tenant(
                uid=uid, name=names[uid][0], namespace=names[uid][1], nodes=frozenset(found[uid]), barrier=names[uid][2]
            )
            for uid in sorted(found)
        ]

    def _who(self, claim: ResourceClaim, *, known: dict[str, Any]) -> tuple[str, str, PeerCount | None] | None:
        """Name, namespace and barrier of the domain of a claim, if it has isolation Channel."""
        uid = domain_of(claim)
        domain = self._sources.domain(uid)
        if domain is not None:
            if domain.spec is None or domain.spec.isolation != "Channel":
                return None
            present = len(self._sources.nodes_with(uid)) if domain.spec.wait_for_peers else 0
            barrier = cliques.peer_count(domain.spec.wait_for_peers, present=present)
            return domain.metadata.name, domain.metadata.namespace, barrier
        entry = known.get(uid)  # deleted while its Pods run: they keep their channel
        return (entry.name, entry.namespace, entry.wait_for_peers) if entry is not None else None
