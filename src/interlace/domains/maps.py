"""Writes node maps: creates one, replaces exactly what was read, deletes; returns once the caches show it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from interlace.api.computedomain import ComputeDomainClique
from interlace.domains.metrics import Metrics
from interlace.domains.sources import Sources
from interlace.kube.client import Client
from interlace.kube.errors import NotFound
from interlace.kube.log import get_logger

_log = get_logger(__name__)


class MapWriter:
    """The only writer of ComputeDomainCliques."""

    def __init__(self, client: Client, *, sources: Sources, namespace: str, metrics: Metrics) -> None:
        self._client = client
        self._sources = sources
        self.namespace = namespace
        self._metrics = metrics

    async def write(self, body: dict[str, Any], *, current: ComputeDomainClique | None) -> None:
        """Create the object, or replace ``current``. Raises ``KubeError``, a ``Conflict`` if it is another by now."""
        name = body["metadata"]["name"]
        if current is None:
            operation = "create"
            written = await self._client.create(ComputeDomainClique, body, namespace=self.namespace)
        else:
            operation = "replace"
            written = await self._client.replace(ComputeDomainClique, name, body, namespace=self.namespace)
        await self._sources.cliques.reached(written.metadata.resource_version)
        self._metrics.clique_writes.labels(operation).inc()
        _log.info("clique written", clique=name, nodes=len(body["daemons"]))

    async def delete(self, clique: ComputeDomainClique) -> None:
        """Delete exactly this object."""
        meta = clique.metadata
        with suppress(NotFound):
            await self._client.delete(ComputeDomainClique, meta.name, namespace=meta.namespace, uid=meta.uid)
        self._sources.deleted(clique)
        self._metrics.clique_writes.labels("delete").inc()
