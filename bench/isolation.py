"""How domains fare beside one in trouble: ``python -m bench.isolation [--minutes 5] [--server real]``.

A healthy domain rests while, beside it, the (simulated) ``nvidia-imex`` of one domain crashes again and again, another
domain is flooded with changes, hostile manifests come, and a domain is deleted in use. Printed: what changed of the
healthy one (nothing, if all is well), and how long a third domain takes to form, alone and beside the trouble.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final

import msgspec

from bench.figures import Figure, ratio, table
from interlace.api.computedomain import ComputeDomain
from interlace.api.core import Pod
from interlace.api.meta import Resource
from interlace.kube.errors import NotFound
from interlace.kube.log import configure
from interlace.kube.untyped import untyped
from interlace.sim.cluster import Cluster, ClusterSettings, run_cluster
from interlace.sim.plane import AuditRecord
from interlace.sim.trouble import break_imex, make_noise, poison
from interlace.sim.witness import changes, look

NODES: Final = 10
SEPARATE: Final = frozenset({"controller"})
"""A process of its own, as in a cluster: what is measured must not wait for the (simulated) kubelets' event loop."""
SIZE: Final = 3
"""Nodes of the third domain."""
ALONE: Final = 10
"""Formations before the trouble begins."""
FLOOD: Final = 10_000
"""Changes of the noisy domain, spread over the time."""
DOOM_PAUSE: Final = 3.0
"""Seconds between two domains that are deleted in use."""
REST: Final = 15.0
"""Seconds for which the healthy domain rests before it is looked at: its peers report their connections."""
WITHIN: Final = 60.0
DEPLOYMENTS: Final = untyped(Resource("apps", "v1", "deployments", "Deployment", True))


class Formation(msgspec.Struct, frozen=True, kw_only=True):
    """One domain that was formed."""

    seconds: float
    began: float
    ended: float
    """Both in seconds since the epoch, as the audit log has them."""
    namespace: str
    uid: str

    def requests(self, records: Iterable[AuditRecord]) -> int:
        """What our components asked for it until it was formed, watches apart: does not depend on the machine."""
        return sum(
            record.user_agent.startswith("interlace-")
            and record.verb != "watch"
            and self.began <= record.time <= self.ended
            and (record.namespace == self.namespace or record.name.startswith(self.uid))
            for record in records
        )


class Scene:
    """Domains in namespaces of their own on one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    async def namespace(self, name: str) -> str:
        await self.cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        return name

    async def start(self, name: str, *, count: int, nodes: list[str] | None = None) -> None:
        """A domain ``name`` in the namespace of that name and a Deployment that uses it."""
        metadata = {"name": name, "namespace": name}
        channel = {"resourceClaimTemplate": {"name": "channel"}}
        api = "resource.nvidia.com/v1beta1"
        spec = {"numNodes": 0, "channel": channel}
        await self.cluster.apply({"apiVersion": api, "kind": "ComputeDomain", "metadata": metadata, "spec": spec})
        pod: dict[str, Any] = {
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "c",
                    "image": "localhost/pause:1",
                    "resources": {"claims": [{"name": "channel"}], "limits": {"nvidia.com/gpu": "4"}},
                }
            ],
            "resourceClaims": [{"name": "channel", "resourceClaimTemplateName": "channel"}],
        }
        if nodes is not None:
            terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": nodes}]}]
            required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
            pod["affinity"] = {"nodeAffinity": required}
        labels = {"job": name}
        await self.cluster.apply(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": metadata,
                "spec": {
                    "replicas": count,
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": pod},
                },
            }
        )

    async def formed(self, name: str, *, count: int) -> None:
        """Wait until its nodes and Pods are Ready. Raises NotReachedError."""

        def whole() -> bool:
            found = self.cluster.domains.get(name, name)
            ready = found.status.nodes if found is not None and found.status is not None else []
            return sum(node.status == "Ready" for node in ready) == count == len(self._pods(name, ready=True))

        await self.cluster.signal.until(
            f"domain {name} of {count} nodes", whole, within=WITHIN, instead=lambda: self._state(name)
        )

    async def remove(self, name: str) -> None:
        """Delete both and wait until Pods and claims are gone."""
        client = self.cluster.client
        with contextlib.suppress(NotFound):
            await client.delete(DEPLOYMENTS, name, namespace=name, propagation="Background")
        for pod in self._pods(name):
            with contextlib.suppress(NotFound):
                await client.delete(Pod, pod.metadata.name, namespace=name)
        with contextlib.suppress(NotFound):
            await client.delete(ComputeDomain, name, namespace=name)

        def gone() -> bool:
            claims = [claim for claim in self.cluster.claims.items() if claim.metadata.namespace == name]
            return not self._pods(name) and not claims and self.cluster.domains.get(name, name) is None

        await self.cluster.signal.until(f"the end of domain {name}", gone, within=WITHIN)

    async def formation(self, name: str) -> Formation:
        """A domain of this name is formed and removed again."""
        began, clock = time.time(), time.monotonic()
        await self.start(name, count=SIZE)
        await self.formed(name, count=SIZE)
        took, ended = time.monotonic() - clock, time.time()
        uid = (await self.cluster.client.get(ComputeDomain, name, namespace=name)).metadata.uid
        await self.remove(name)
        return Formation(seconds=took, began=began, ended=ended, namespace=name, uid=uid)

    def _state(self, name: str) -> str:
        found = self.cluster.domains.get(name, name)
        status = found.status if found is not None else None
        ready = next((c.message for c in status.conditions if c.type == "Ready"), "") if status is not None else ""
        placed = [(pod.metadata.name, pod.spec.node_name, pod.ready) for pod in self._pods(name)]
        return f"{ready or 'no status'} Pods: {placed}"

    def _pods(self, name: str, *, ready: bool = False) -> list[Pod]:
        found = [pod for pod in self.cluster.pods.items() if pod.metadata.namespace == name]
        return [pod for pod in found if pod.ready] if ready else found


@contextlib.asynccontextmanager
async def trouble(scene: Scene, *, victim: str, seconds: float) -> AsyncIterator[None]:
    """All of it, until the block ends."""
    cluster = scene.cluster
    taken = {pod.spec.node_name for pod in cluster.pods.items() if pod.metadata.namespace == "healthy"}
    broken = [node for node in cluster.gpu_nodes if node not in taken][:2]
    for name in ("crashing", "noisy", "hostile", "doomed"):
        await scene.namespace(name)
    break_imex(cluster, broken)
    await scene.start("crashing", count=2, nodes=broken)
    await scene.start("noisy", count=1)
    await scene.formed("noisy", count=1)
    noisy = (await cluster.client.get(ComputeDomain, "noisy", namespace="noisy")).metadata.uid
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(make_noise(cluster.client, uid=noisy, namespace="noisy", changes=FLOOD, over=seconds)),
            group.create_task(doom(scene)),
        ]
        await poison(cluster.client, namespace="hostile", victim=victim)
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


async def doom(scene: Scene) -> None:
    """A domain that is deleted while its Pod runs, again and again until cancelled."""
    while True:
        await scene.start("doomed", count=1)
        await scene.formed("doomed", count=1)
        await scene.cluster.client.delete(ComputeDomain, "doomed", namespace="doomed")
        await scene.remove("doomed")
        await asyncio.sleep(DOOM_PAUSE)


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured."""

    changed: list[str]
    """Of the healthy domain, one sentence each."""
    alone: list[Formation]
    beside: list[Formation]
    records: list[AuditRecord]

    def rows(self) -> list[list[object]]:
        """One row for each kind of neighbourhood."""
        alone, beside = (Figure.of(one.seconds for one in found) for found in (self.alone, self.beside))
        asked = [Figure.of(float(one.requests(self.records)) for one in found) for found in (self.alone, self.beside)]
        return [
            ["alone", len(self.alone), alone.text(2), "", asked[0].text(), ""],
            [
                "beside the trouble",
                len(self.beside),
                beside.text(2),
                ratio(beside, alone),
                asked[1].text(),
                ratio(asked[1], asked[0]),
            ],
        ]


async def measure(*, minutes: float, server: str) -> Result:
    """Raises what `run_cluster` raises, and NotReachedError for a domain that does not form."""
    settings = ClusterSettings(
        server="real" if server == "real" else "embedded", nodes=NODES, replicas=1, separate=SEPARATE
    )
    async with run_cluster(settings) as cluster:
        scene = Scene(cluster)
        for name in ("healthy", "third"):
            await scene.namespace(name)
        await scene.start("healthy", count=2)
        await scene.formed("healthy", count=2)
        alone = [await scene.formation("third") for _ in range(ALONE)]
        await asyncio.sleep(REST)
        before = await look(cluster, "healthy", namespace="healthy")
        victim = (await cluster.client.get(ComputeDomain, "healthy", namespace="healthy")).metadata.uid
        beside: list[Formation] = []
        end = time.monotonic() + 60 * minutes
        async with trouble(scene, victim=victim, seconds=60 * minutes):
            while time.monotonic() < end:
                beside.append(await scene.formation("third"))
        after = await look(cluster, "healthy", namespace="healthy")
        records = await asyncio.to_thread(cluster.plane.audit)
        return Result(changed=changes(before, after), alone=alone, beside=beside, records=records)


def main() -> int:
    """Exit code 0 if nothing changed of the healthy domain, else 1."""
    parser = argparse.ArgumentParser(prog="python -m bench.isolation", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--server", choices=("real", "embedded"), default="real")
    options = parser.parse_args()
    configure("error", json=False)
    result = asyncio.run(measure(minutes=options.minutes, server=options.server))
    print(f"API server: {options.server}; nodes and nvidia-imex: simulated; {options.minutes:g} minutes of trouble\n")
    head = ["times", "seconds, median (range)", "to alone", "requests of our components", "to alone"]
    print(table([f"a domain of {SIZE} nodes", *head], result.rows()))
    print("\n".join(result.changed) or "Nothing changed of the healthy domain: no restart, no write, no event.")
    return 1 if result.changed else 0


if __name__ == "__main__":
    sys.exit(main())
