"""What the stand-ins know of the cluster: one informer a kind, shared by all of them.

kube-scheduler and kube-controller-manager each keep caches of their own; here one set serves both, which halves
the work of a demo. Invariant: handlers are registered before ``run``, so that nobody misses a change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, TypeVar

from interlace.api.core import Lease
from interlace.api.meta import Object
from interlace.kube.client import Client
from interlace.kube.informer import Informer
from interlace.sim.platform import devicekinds, kinds, workloadkinds

T = TypeVar("T", bound=Object)

Key = tuple[str, str]
"""Namespace and name."""


def key_of(obj: Object) -> Key:
    """Namespace and name of an object."""
    return (obj.metadata.namespace, obj.metadata.name)


def _owner_uids(obj: Object) -> Iterable[str]:
    return [owner.uid for owner in obj.metadata.owner_references if owner.controller]


class Views:
    """Informers on everything that scheduler and controllers look at; ``run`` fills them until cancelled."""

    def __init__(self, client: Client) -> None:
        def informer(kind: type[T], **indexes: Any) -> Informer[T]:
            made = self.informers[kind] = Informer(client, kind, indexes=indexes)
            return made

        self.informers: dict[type[Any], Informer[Any]] = {}
        self.pods = informer(
            kinds.Pod,
            owner=_owner_uids,
            node=lambda pod: [pod.spec.node_name] if pod.spec.node_name else [],
        )
        self.nodes = informer(kinds.Node)
        self.namespaces = informer(kinds.Namespace)
        self.accounts = informer(kinds.ServiceAccount)
        self.leases = informer(Lease)
        self.deployments = informer(workloadkinds.Deployment)
        self.replica_sets = informer(workloadkinds.ReplicaSet, owner=_owner_uids)
        self.stateful_sets = informer(workloadkinds.StatefulSet)
        self.daemon_sets = informer(workloadkinds.DaemonSet)
        self.jobs = informer(workloadkinds.Job)
        self.claims = informer(devicekinds.ResourceClaim, owner=_owner_uids)
        self.templates = informer(devicekinds.ResourceClaimTemplate)
        self.slices = informer(devicekinds.ResourceSlice)
        self.classes = informer(devicekinds.DeviceClass)

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for informer in self.informers.values():
                tasks.create_task(informer.run())

    async def synced(self) -> None:
        """Wait for the first full list of every kind."""
        for informer in self.informers.values():
            await informer.synced()
