"""When things happened to the pods of a run and to its domain, as kubelets and the API show it.

Wall clock, since the audit log has it too and all of it is one machine.
"""

from __future__ import annotations

import time

from bench.domains.record import PodTimes
from interlace.api.computedomain import ComputeDomain
from interlace.api.core import Pod
from interlace.sim.cluster import Cluster
from interlace.sim.kubelet.pods import PodWorker


class Marks:
    """Listens to hollow nodes and informers of one cluster; ``begin`` starts a new run."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._namespace = ""
        self._name = ""
        self.pods: dict[str, dict[str, float]] = {}
        """Moments by uid of the pod."""
        self.domain: dict[str, float] = {}
        """``gone``, and ``ready N``: first time that status showed Ready with N Ready nodes."""
        self._about: dict[str, PodTimes] = {}
        cluster.fleet.watch_pods(self._on_worker)
        cluster.pods.on_change(self._on_pod)
        cluster.domains.on_change(self._on_domain)

    def begin(self, *, namespace: str, name: str) -> None:
        """Forget everything; from now on mark pods in ``namespace`` and the domain ``name``."""
        self._namespace, self._name = namespace, name
        self.pods.clear()
        self.domain.clear()
        self._about.clear()

    def reached(self, what: str) -> int:
        """How many pods have come to ``what``."""
        return sum(what in moments for moments in self.pods.values())

    def last(self, what: str) -> float:
        """When the last pod came to ``what``; 0 if none did."""
        return max((moments[what] for moments in self.pods.values() if what in moments), default=0.0)

    def domain_ready(self, nodes: int) -> float:
        """When status first showed Ready with ``nodes`` Ready nodes; 0 if it did not."""
        return self.domain.get(f"ready {nodes}", 0.0)

    def pod_times(self, *, since: float) -> list[PodTimes]:
        """All pods in order of preparation, seconds after ``since``."""
        found = []
        for uid, times in self._about.items():
            for what in ("bound", "called", "prepared", "running", "ready"):
                if what in self.pods[uid]:
                    setattr(times, what, round(self.pods[uid][what] - since, 3))
            found.append(times)
        return sorted(found, key=lambda times: (times.prepared is None, times.prepared or 0.0, times.pod))

    def _on_worker(self, worker: PodWorker, what: str) -> None:
        pod = worker.pod
        if pod.metadata.namespace != self._namespace or not pod.spec.resource_claims:
            return
        uid = pod.metadata.uid
        self.pods.setdefault(uid, {}).setdefault(what, time.time())
        about = self._about.setdefault(uid, PodTimes(pod=pod.metadata.name, node=pod.spec.node_name))
        about.calls = worker.prepare_calls
        self._cluster.signal.fire()

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        if pod is None or pod.metadata.uid not in self.pods:
            return
        if new is None:
            self.pods[pod.metadata.uid].setdefault("deleted", time.time())
        elif new.ready:
            self.pods[pod.metadata.uid].setdefault("ready", time.time())

    def _on_domain(self, old: ComputeDomain | None, new: ComputeDomain | None) -> None:
        domain = new or old
        if domain is None or domain.metadata.name != self._name or domain.metadata.namespace != self._namespace:
            return
        if new is None:
            self.domain.setdefault("gone", time.time())
        elif new.status is not None and new.status.status == "Ready":
            ready = sum(node.status == "Ready" for node in new.status.nodes)
            self.domain.setdefault(f"ready {ready}", time.time())
