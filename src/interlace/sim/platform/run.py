"""All stand-ins together on one control plane (simulated): scheduler and controllers, until cancelled.

Invariant: every handler is registered before the first list comes in, and nobody acts before all lists are in.
"""

from __future__ import annotations

import asyncio

from interlace.kube.client import Client
from interlace.kube.events import Recorder
from interlace.sim.plane import Plane
from interlace.sim.platform.claimkeeper import ClaimKeeper
from interlace.sim.platform.garbage.collector import GarbageCollector
from interlace.sim.platform.garbage.namespaces import Namespaces
from interlace.sim.platform.nodes.eviction import TaintEviction
from interlace.sim.platform.nodes.lifecycle import NodeLifecycle
from interlace.sim.platform.nodes.lost import LostPods
from interlace.sim.platform.scheduling.scheduler import COMPONENT as SCHEDULER
from interlace.sim.platform.scheduling.scheduler import Scheduler
from interlace.sim.platform.views import Views
from interlace.sim.platform.workloads import pods
from interlace.sim.platform.workloads.podmaking import PodMaker
from interlace.sim.platform.workloads.sets import Deployments, ReplicaSets

CONTROLLER_MANAGER = "simulated-controller-manager"
_ADMINS = ("system:masters",)
"""The controllers of the real manager act under accounts of their own with rights of their own; these act as one."""


async def run_platform(plane: Plane, *, node_grace: float = 4.0, toleration: float = 2.0) -> None:
    """Run the stand-ins for kube-scheduler and kube-controller-manager on ``plane`` until cancelled.

    ``node_grace``: seconds without a renewed Lease after which a node counts as unreachable (a real cluster: 40 to
    50). ``toleration``: seconds for which pods bear such a node, rounded up (a real cluster: 300).

    Raises:
        ConfigError: the plane's credentials are not usable.
    """
    scheduling = Client(plane.credentials("system:kube-scheduler", groups=_ADMINS), user_agent=SCHEDULER, qps=0)
    controlling = Client(
        plane.credentials("system:kube-controller-manager", groups=_ADMINS), user_agent=CONTROLLER_MANAGER, qps=0
    )
    async with scheduling, controlling:
        views = Views(controlling)
        scheduler_events = Recorder(scheduling, component=SCHEDULER)
        events = Recorder(controlling, component=CONTROLLER_MANAGER)
        maker = PodMaker(toleration=toleration)
        parts = (
            Scheduler(views, client=scheduling, recorder=scheduler_events),
            ClaimKeeper(views, client=controlling, recorder=events),
            Deployments(views, client=controlling),
            ReplicaSets(views, client=controlling, recorder=events, maker=maker),
            pods.daemon_sets(views, client=controlling, recorder=events, maker=maker),
            pods.stateful_sets(views, client=controlling, recorder=events, maker=maker),
            pods.jobs(views, client=controlling, recorder=events, maker=maker),
            NodeLifecycle(views, client=controlling, recorder=events, grace=node_grace),
            TaintEviction(views, client=controlling, recorder=events),
            LostPods(views, client=controlling),
            GarbageCollector(views, client=controlling),
            Namespaces(views, client=controlling),
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(views.run())
            tasks.create_task(scheduler_events.run())
            tasks.create_task(events.run())
            await views.synced()
            for part in parts:
                tasks.create_task(part.run())
