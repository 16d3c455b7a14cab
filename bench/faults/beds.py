"""The two clusters on which the fault table is played, and the wire between their API server and our components.

``real``: etcd, kube-apiserver, kube-scheduler and kube-controller-manager, our components as processes of their own.
``embedded``: the simulated API server, whose faults can be switched, our components in this process. Nodes and
``nvidia-imex`` are simulated on both. Invariant: our components reach the API server through ``wire`` alone, kubelets,
platform and the one who measures never do.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Literal

from bench.faults.row import Bed
from bench.faults.wire import Wire
from interlace.api.computedomain import ComputeDomain
from interlace.kube.config import Config
from interlace.sim.cluster import Cluster, ClusterSettings, run_cluster
from interlace.sim.kubelet.container import ContainerRecord
from interlace.sim.kubelet.node import HollowNode
from interlace.sim.kubelet.programs import Command, Programs, launch_child
from interlace.sim.kubelet.settings import KubeletSettings
from interlace.sim.plane import AuditRecord, Plane

NODES: Final = 4
SEPARATE: Final = frozenset({"controller", "agent", "imex-host"})
NODE_GRACE: Final = 150.0
"""Seconds until a node without Lease counts as lost: longer than any outage here, so that a row sees its own fault."""
KUBELET: Final = KubeletSettings(lease=1.0, volume_wait=0.05, sandbox=0.05)


class Ground:
    """A running cluster, its wire, and every change of a domain's conditions since the start."""

    def __init__(self, cluster: Cluster, wire: Wire) -> None:
        self.cluster = cluster
        self.wire = wire
        self.changes: list[tuple[float, str, str]] = []
        """Time, namespace, ``Type=Status Reason: message``."""
        cluster.domains.on_change(self._note)

    def conditions(self, namespace: str, *, since: float) -> list[str]:
        """What the domains of a namespace said from then on, in order, repetitions left out."""
        found = [text for at, where, text in self.changes if where == namespace and at >= since]
        return list(dict.fromkeys(found))

    def _note(self, old: ComputeDomain | None, new: ComputeDomain | None) -> None:
        if old is None:
            return  # what an object comes with was said by those who made it, who may be hostile
        before = old.status.conditions if old.status is not None else []
        for condition in new.status.conditions if new is not None and new.status is not None else []:
            if new is not None and condition not in before:
                text = f"{condition.type}={condition.status} {condition.reason}: {condition.message}"
                self.changes.append((time.monotonic(), new.metadata.namespace, text))


class _Through:
    """A control plane as nodes see it whose Pods are told another address of the API server."""

    def __init__(self, plane: Plane, url: str) -> None:
        self._plane = plane
        self.url = url

    @property
    def kind(self) -> Literal["embedded", "real"]:
        return self._plane.kind

    @property
    def version(self) -> str:
        return self._plane.version

    @property
    def kubeconfig(self) -> Path:
        return self._plane.kubeconfig

    def credentials(self, user: str, *, groups: Sequence[str] = ()) -> Config:
        return self._plane.credentials(user, groups=groups)

    def audit(self) -> list[AuditRecord]:
        return self._plane.audit()


@asynccontextmanager
async def run_ground(bed: Bed) -> AsyncIterator[Ground]:
    """A fresh cluster. Raises what ``run_cluster`` raises."""
    settings = ClusterSettings(
        server=bed,
        nodes=NODES,
        replicas=2 if bed == "real" else 1,
        kubelet=KUBELET,
        imex_start=0.3 if bed == "real" else 0.01,
        node_grace=NODE_GRACE,
        separate=SEPARATE if bed == "real" else frozenset(),
    )
    async with Wire() as wire:

        def connect(node: HollowNode) -> None:
            if not isinstance(node.plane, _Through):
                node.plane = _Through(node.plane, wire.lead_to(node.plane.url))

        def launch(record: ContainerRecord, node: HollowNode) -> Command:
            plain = launch_child(record, node)
            return Command(argv=(plain.argv[0], "-m", "bench.faults.shifted", plain.argv[-1]), env=plain.env)

        programs = Programs(imex_start=settings.imex_start, separate=settings.separate, launch=launch, on_boot=connect)
        async with run_cluster(settings, programs=programs) as cluster:
            yield Ground(cluster, wire)
