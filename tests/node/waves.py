"""Many Pods on real nodes: made and deleted wave by wave, with the time that each took to be Ready."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from interlace.api.core import Pod
from interlace.kube.informer import Informer
from interlace.sim.observing import Signal
from tests.node import jobs
from tests.node.world import DEPLOYMENT, WITHIN, World

NAME = "wave"


class Stopwatch:
    """From the moment that a Pod is seen to the moment that it is Ready."""

    def __init__(self) -> None:
        self.signal = Signal()
        self._loop = asyncio.get_running_loop()
        self._seen: dict[str, float] = {}
        self.ready: dict[str, float] = {}
        """Seconds, by uid."""
        self.living: set[str] = set()

    def note(self, _old: Pod | None, new: Pod | None) -> None:
        """Handler of an informer."""
        if new is None and _old is not None:
            self.living.discard(_old.metadata.uid)
        elif new is not None:
            uid, now = new.metadata.uid, self._loop.time()
            self.living.add(uid)
            self._seen.setdefault(uid, now)
            if new.ready:
                self.ready.setdefault(uid, now - self._seen[uid])
        self.signal.fire()


@asynccontextmanager
async def stopwatch(world: World, namespace: str) -> AsyncIterator[Stopwatch]:
    """Watch the Pods of a namespace."""
    watch = Stopwatch()
    informer = Informer(world.client, Pod, namespace=namespace)
    informer.on_change(watch.note)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(informer.run())
        await informer.synced()
        try:
            yield watch
        finally:
            task.cancel()


def wave(namespace: str, *, pods: int, claims: bool) -> dict[str, Any]:
    """A Deployment whose Pods take one GPU each and, with ``claims``, a channel of the example's domain."""
    manifest = jobs.workload(namespace, replicas=pods)
    manifest["metadata"]["name"] = NAME
    spec = manifest["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    container["resources"]["limits"]["nvidia.com/gpu"] = 1
    # With all Pods on nodes of one partition in any case, it would only make the scheduler take them one by one.
    del spec["affinity"]
    spec["terminationGracePeriodSeconds"] = 1
    if not claims:
        del spec["resourceClaims"], container["resources"]["claims"]
    return manifest


async def run_waves(world: World, namespace: str, *, waves: int, pods: int, claims: bool) -> list[float]:
    """Seconds to Ready of each Pod. All Pods of a wave are Ready and gone again before the next one."""
    async with stopwatch(world, namespace) as watch:
        for number in range(1, waves + 1):
            await world.apply(wave(namespace, pods=pods, claims=claims))
            await watch.signal.until(
                f"wave {number} of Pods {'with' if claims else 'without'} claims",
                lambda wanted=number * pods: len(watch.ready) == wanted,  # type: ignore[misc]
                within=WITHIN,
                instead=lambda: f"{len(watch.ready)} were Ready",
            )
            await world.client.delete(DEPLOYMENT, NAME, namespace=namespace, propagation="Background")
            await watch.signal.until("the end of a wave", lambda: not watch.living, within=WITHIN)
    return sorted(watch.ready.values())
