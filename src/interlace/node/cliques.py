"""Follows the controller's clique objects of this node's fabric clique: one watch, by label.

When the fabric clique becomes another one, the watch is started anew; while the fabric is unhealthy and does
not say which clique it is in, the last known one is kept, so that a running job keeps its IMEX.
"""

from __future__ import annotations

import asyncio

from interlace.api.computedomain import CLIQUE_LABEL, ComputeDomainClique
from interlace.kube.client import Client
from interlace.kube.informer import Informer
from interlace.kube.log import get_logger
from interlace.node.fabric import Fabric
from interlace.node.membership import memberships
from interlace.node.state import NodeState

log = get_logger(__name__)


class CliqueWatch:
    """Fills ``NodeState.memberships``."""

    def __init__(self, client: Client, *, namespace: str, state: NodeState) -> None:
        self._client = client
        self._namespace = namespace
        self._state = state
        self._clique: str | None = None
        self._moved = asyncio.Event()

    def follow(self, fabric: Fabric) -> None:
        """The fabric verdict changed; only a clique that is known counts."""
        clique = fabric.clique if fabric.clique or fabric.healthy else self._clique
        if clique != self._clique:
            self._clique = clique
            self._moved.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._moved.clear()
            if self._clique:
                async with asyncio.TaskGroup() as group:
                    watch = group.create_task(self._watch(self._clique))
                    await self._moved.wait()
                    watch.cancel()
                continue
            # Without a fabric there are no cliques to wait for; before the first verdict there is nothing yet.
            self._forget(synced=self._clique is not None)
            await self._moved.wait()

    async def _watch(self, clique: str) -> None:
        log.info("following cliques", clique=clique)
        self._forget(synced=False)
        informer = Informer(
            self._client, ComputeDomainClique, namespace=self._namespace, labels=f"{CLIQUE_LABEL}={clique}"
        )
        informer.on_change(self._changed)
        async with asyncio.TaskGroup() as group:
            group.create_task(informer.run())
            await informer.synced()
            self._state.synced = True
            self._state.poke()

    def _changed(self, old: ComputeDomainClique | None, new: ComputeDomainClique | None) -> None:
        known, node = self._state.memberships, self._state.node
        before, after = (memberships(clique, node=node) if clique is not None else () for clique in (old, new))
        for gone in before:
            known.pop(gone.domain, None)
        known.update((found.domain, found) for found in after)
        if self._state.synced and before != after:
            self._state.poke()

    def _forget(self, *, synced: bool) -> None:
        self._state.memberships.clear()
        self._state.synced = synced
        self._state.poke()
