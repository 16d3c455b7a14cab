"""One run: a ComputeDomain and a Deployment come, rest and go, and everything is measured.

Talks to the API server as a user does. What happens is awaited as an event; what is slept is a rest whose
length is part of the measurement.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import msgspec

from bench.domains import requests, usage
from bench.domains.load import NODES_YIELD, LoadSampler, describe_machine, share_niceness, stalled_seconds
from bench.domains.marks import Marks
from bench.domains.record import Load, Memory, Run, Seconds
from bench.domains.series import Series
from bench.domains.world import Driver, World, plane_processes
from interlace.api.computedomain import DOMAIN_LABEL, ComputeDomain
from interlace.api.meta import Resource
from interlace.kube.untyped import untyped
from interlace.sim import snapshot
from interlace.sim.observing import NotReachedError
from testbed.plane import ControlPlane

NAMESPACE = "default"
ON_NODES = frozenset({"agent", "imex-host", "nvidia-imex (simulated)", "plugin", "daemon"})
"""Kinds of processes that have cores of their own in a cluster."""
SETTLING = 2.0
_DEPLOYMENTS = untyped(Resource("apps", "v1", "deployments", "Deployment", True))
_CLEARING = 10.0
"""How long what the platform collects in its own time may take after teardown."""


class _Reading(msgspec.Struct, frozen=True, kw_only=True):
    """Counters at one moment."""

    time: float
    used: usage.Usage
    stalled: float


class Scenario:
    """Runs on one cluster, one after the other."""

    def __init__(
        self,
        world: World,
        *,
        driver: Driver,
        series: Series,
        nodes: int,
        sampler: LoadSampler,
        tell: Callable[[str], None],
    ) -> None:
        self._world = world
        self._cluster = world.cluster
        plane = world.cluster.plane
        if not isinstance(plane, ControlPlane):
            raise TypeError("this bench measures on a real control plane alone")
        self._plane = plane
        self._driver = driver
        self._series = series
        self._nodes = nodes
        self._pods = nodes * series.pods_per_node
        self._sampler = sampler
        self._tell = tell
        self._marks = Marks(world.cluster)
        self._problems: list[str] = []

    async def run(self, number: int) -> Run:
        """One formation, rest and teardown. What does not happen in time stands in the result's problems."""
        series, name = self._series, f"bench-{number}"
        self._problems = []
        self._marks.begin(namespace=NAMESPACE, name=name)
        machine = describe_machine()
        for kind, pids in self._groups().items():
            share_niceness(pids, more=NODES_YIELD if kind in ON_NODES else 0)
        before = await self._listing()
        await asyncio.sleep(series.pause)
        await self._world.calm()
        bytes_0, start = await self._plane.watch_bytes(), self._read()
        uid = await self._create(name)
        whole = await self._until("all channels prepared", lambda: self._marks.reached("prepared") >= self._pods)
        formed = self._read()
        if whole:
            await self._until("all pods Ready", lambda: self._marks.reached("ready") >= self._pods)
            await self._until("a Ready domain", lambda: self._marks.domain_ready(self._nodes) > 0)
        settled, bytes_1 = time.time(), await self._plane.watch_bytes()
        await asyncio.sleep(SETTLING)
        rest = self._read()
        await asyncio.sleep(series.steady)
        rested, memory = self._read(), self._memory()
        starts = await self._world.imex_starts()
        bytes_2, deletion = await self._plane.watch_bytes(), self._read()
        await self._delete(name)
        await self._until("the domain's end", lambda: "gone" in self._marks.domain)
        await self._until("the end of pods and claims", lambda: self._cleared(uid))
        cleared, bytes_3 = self._read(), await self._plane.watch_bytes()
        left = await self._left_behind(before)
        await asyncio.sleep(series.pause)
        phases = {
            "formation": (start.time, settled),
            "settling": (settled, rest.time),
            "steady": (rest.time, rested.time),
            "teardown": (deletion.time, cleared.time),
            "afterwards": (cleared.time, time.time()),
        }
        records = self._plane.audit()
        counts, details = requests.tabulate(records, component=self._component, phases=phases)
        run = Run(
            driver=self._driver.name,
            tag=series.tag,
            nodes=self._nodes,
            cliques=series.cliques(self._nodes),
            pods_per_node=series.pods_per_node,
            run=number,
            date=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            server_version=self._plane.version,
            settings={
                "imex_start": series.imex_start,
                "volume_wait": series.volume_wait,
                "platform_rate": series.platform_rate,
                "steady": series.steady,
                "nodes_yield": 0 if series.together else NODES_YIELD,
                "together": series.together,
            },
            machine=machine,
            problems=self._problems,
            left_behind=left,
            seconds=Seconds(
                all_bound=self._after(self._marks.last("bound"), start),
                all_prepared=self._after(self._marks.last("prepared"), start),
                all_ready=self._after(self._marks.last("ready"), start),
                domain_ready=self._after(self._marks.domain_ready(self._nodes), start),
                domain_gone=self._after(self._marks.domain.get("gone", 0.0), deletion),
                nothing_left=round(cleared.time - deletion.time, 3),
            ),
            pods=self._marks.pod_times(since=start.time),
            imex_starts=[round(seconds, 3) for seconds in starts],
            steps=self._steps(phases, "formation") | self._steps(phases, "teardown"),
            requests=counts,
            requests_detail=details,
            watch_bytes={"formation": _grown(bytes_0, bytes_1), "teardown": _grown(bytes_2, bytes_3)},
            processes={
                "formation": usage.difference(start.used, formed.used),
                "steady": usage.difference(rest.used, rested.used),
                "teardown": usage.difference(deletion.used, cleared.used),
            },
            memory=memory,
            load={
                "formation": self._load(start, formed),
                "steady": self._load(rest, rested),
                "teardown": self._load(deletion, cleared),
            },
        )
        self._tell(_summary(run, self._driver.components))
        return run

    # what a user does

    async def _create(self, name: str) -> str:
        template, labels = f"{name}-channel", {"app": name}
        channel = {"resourceClaimTemplate": {"name": template}}
        domain = await self._cluster.client.create(
            ComputeDomain,
            {
                "apiVersion": "resource.nvidia.com/v1beta1",
                "kind": "ComputeDomain",
                "metadata": {"name": name, "namespace": NAMESPACE},
                "spec": {"numNodes": 0, "channel": channel},
            },
            namespace=NAMESPACE,
        )
        pod = {
            "containers": [
                {
                    "name": "worker",
                    "image": "registry.k8s.io/pause:3.10",
                    "resources": {"claims": [{"name": "channel"}]},
                }
            ],
            "resourceClaims": [{"name": "channel", "resourceClaimTemplateName": template}],
        }
        await self._cluster.client.create(
            _DEPLOYMENTS,
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
                "spec": {
                    "replicas": self._pods,
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": pod},
                },
            },
            namespace=NAMESPACE,
        )
        return domain.metadata.uid

    async def _delete(self, name: str) -> None:
        await self._cluster.client.delete(_DEPLOYMENTS, name, namespace=NAMESPACE, propagation="Background")
        await self._cluster.client.delete(ComputeDomain, name, namespace=NAMESPACE)

    # what is seen

    async def _until(self, what: str, condition: Callable[[], bool]) -> bool:
        """Whether it came in time; what did not is noted as a problem."""
        try:
            await self._cluster.signal.until(what, condition, within=self._series.limit, instead=self._picture)
        except NotReachedError as error:
            self._problems.append(str(error))
            self._tell(f"  {error}")
            return False
        return True

    def _picture(self) -> str:
        reached = {what: self._marks.reached(what) for what in ("bound", "called", "prepared", "ready")}
        return ", ".join(f"{number}/{self._pods} pods {what}" for what, number in reached.items())

    def _cleared(self, uid: str) -> bool:
        return not any(pod.metadata.uid in self._marks.pods for pod in self._cluster.pods.items()) and not any(
            claim.metadata.labels.get(DOMAIN_LABEL) == uid or claim.metadata.namespace == NAMESPACE
            for claim in self._cluster.claims.items()
        )

    async def _listing(self) -> set[str]:
        return await snapshot.list_objects(self._cluster.client) | snapshot.list_machines(self._cluster.fleet)

    async def _left_behind(self, before: set[str]) -> list[str]:
        deadline = time.monotonic() + _CLEARING
        while True:
            left = sorted(await self._listing() - before)
            if not left or time.monotonic() > deadline:
                return left
            await asyncio.sleep(0.25)  # nothing tells when the platform's garbage collector is done

    def _component(self, user: str) -> str:
        found = self._world.component(user)
        return requests.BENCH if found == "platform-engineer" else found

    def _steps(self, phases: Mapping[str, tuple[float, float]], phase: str) -> dict[str, float]:
        begin, end = phases[phase]
        found = requests.steps(
            self._plane.audit(), component=self._component, who=self._driver.components, begin=begin, end=end
        )
        return {f"{phase}: {what}": moment for what, moment in found.items()}

    # what is measured

    def _groups(self) -> dict[str, list[int]]:
        plane = plane_processes(self._plane.state_dir)
        return {**self._world.processes(), **plane, "harness": [os.getpid()]}

    def _read(self) -> _Reading:
        return _Reading(time=time.time(), used=usage.read_usage(self._groups()), stalled=stalled_seconds())

    def _memory(self) -> dict[str, Memory]:
        found = {kind: usage.read_memory(pids) for kind, pids in self._groups().items()}
        return {kind: memory for kind, memory in found.items() if memory is not None}

    def _load(self, begin: _Reading, end: _Reading) -> Load:
        used = usage.difference(begin.used, end.used)
        return self._sampler.between(
            begin.time, end.time, stalled=end.stalled - begin.stalled, own=usage.total_cpu(used)
        )

    @staticmethod
    def _after(moment: float, reading: _Reading) -> float:
        return round(moment - reading.time, 3) if moment else 0.0


def _grown(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    return {kind: size - before.get(kind, 0) for kind, size in after.items() if size > before.get(kind, 0)}


def _summary(run: Run, components: tuple[str, ...]) -> str:
    seconds, formed, ended = run.seconds, run.sum("formation", components), run.sum("teardown", components)
    return (
        f"  run {run.run}: channels {seconds.all_prepared:.2f} s, domain Ready {seconds.domain_ready:.2f} s, "
        f"{formed.total} requests ({formed.mutating} writes, {formed.conflicts} conflicts); gone "
        f"{seconds.nothing_left:.2f} s, {ended.total} requests; cores busy {run.load['formation'].mean:.0%}, "
        f"ours {run.load['formation'].own:.0%}"
        + "".join(f"; {problem}" for problem in run.problems)
        + (f"; left behind: {', '.join(run.left_behind[:5])}" if run.left_behind else "")
    )
