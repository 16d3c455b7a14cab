"""The simulated cloud without sockets and in virtual time: what is counted is the cloud's own clock and log."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from interlace.gke.answers import Answer, is_safe
from interlace.gke.applying import apply
from interlace.gke.client import Client, Dropped
from interlace.gke.cluster import FabricCluster
from interlace.gke.desired import desired
from interlace.gke.destroying import destroy, settle, teardown
from interlace.gke.journal import Journal, adopted
from interlace.gke.observing import observe
from interlace.gke.ownership import owner_of
from interlace.gke.picture import scope_of_cluster
from interlace.gke.plan import Plan, Task, make_plan, tasks
from interlace.gke.reading import parse
from interlace.gke.request import Request
from interlace.gke.resource import Key, Resource
from interlace.gke.scheduling import Ending
from interlace.sim.gke.cloud import Cloud
from interlace.sim.gke.faults import Kind
from interlace.sim.gke.preset import furnish
from interlace.sim.gke.world import Durations, World

PROJECT = "example-project"
LATENCY = 0.005
"""Seconds that a request takes, so that requests are really under way together."""

MEGA = f"""\
apiVersion: interlace.dev/v1alpha1
kind: FabricCluster
metadata:
  name: mega
spec:
  project: {PROJECT}
  location: us-central1-a
  family: a3-mega
  version: 1.34.5-gke.1153000
  pools:
    - name: gpu-pool
      nodes: 2
"""
SMALL = MEGA.replace("a3-mega", "a3-high").replace("name: mega", "name: high")


@cache
def cluster_of(text: str) -> FabricCluster:
    """Read a cluster file, each once."""
    return parse(text).cluster


class Sent(NamedTuple):
    """One line of the cloud's log."""

    method: str
    path: str
    query: Mapping[str, str]
    body: Any
    status: int


class Crash(BaseException):
    """What a kill is in this process: nothing of ours catches it."""


class Sky:
    """A cloud with the running loop's clock. ``crash``: whether to die at a moment of the request of a number."""

    def __init__(
        self, *, seconds: float = 1.0, text: str = MEGA, narrow: bool = False, more_projects: tuple[str, ...] = ()
    ) -> None:
        """``narrow``: with one NIC for GPUs instead of all, where the number of resources does not matter."""
        self.narrow = narrow
        self.world = World(
            projects=(PROJECT, *more_projects),
            clock=lambda: asyncio.get_running_loop().time(),
            durations=Durations.every(seconds),
        )
        furnish(self.world, default_network=True)
        self.cloud = Cloud(self.world)
        self.log: list[Sent] = []
        self.file = cluster_of(text)
        self.crash: Callable[[int, str], bool] = lambda *_: False
        self.requests = 0

    def read(self, text: str) -> None:
        """Take another cluster file."""
        self.file = cluster_of(text)

    def wanted(self) -> tuple[Resource, ...]:
        """What should exist."""
        found = desired(self.file)
        return tuple(_narrowed(each) for each in found if not _wide(each.key)) if self.narrow else found

    async def send(self, request: Request, headers: Mapping[str, str]) -> Answer:
        """One request, as a client sends it."""
        number = self.requests
        self.requests += 1
        line = f"{request.method} {request.path}"
        self._may_die(number, "before")
        if self.world.faults.striking(line, (Kind.DROPPED_BEFORE,)):
            raise Dropped("connection reset", sent=True)
        await asyncio.sleep(LATENCY)
        answer = self._answer(request)
        dropped = self.world.faults.striking(line, (Kind.DROPPED_AFTER,))
        while request.path.endswith("/wait") and _runs(answer.body):
            found = self.world.operations.find(request.path.split("/")[-2])
            self._may_die(number, "amid")
            left = min(found.due - asyncio.get_running_loop().time(), 120.0) if found else 0.0
            await asyncio.sleep(max(left, 0.001))
            answer = self._answer(request)
            if left == 120.0:
                break
        self.log.append(Sent(request.method, request.path, request.query, request.body, answer.status))
        await asyncio.sleep(LATENCY)
        self._may_die(number, "after")
        if dropped:
            raise Dropped("connection reset", sent=True)
        return answer

    def _answer(self, request: Request) -> Answer:
        raw = b"" if request.body is None else msgspec.json.encode(request.body)
        found = self.cloud.answer(request.method, request.path, request.query, raw)
        headers = {name.lower(): value for name, value in found.headers.items()}
        return Answer(status=found.status, headers=headers, body=found.body if found.text is None else found.text)

    def _may_die(self, number: int, moment: str) -> None:
        if self.crash(number, moment):
            raise Crash(f"{moment} request {number}")

    def mutations(self, *, taken: bool = False) -> list[str]:
        """Mutations that came (or were taken), in the order of their coming: method, path and what is made."""
        found = []
        for each in self.log:
            if taken and each.status >= 300:
                continue
            if not is_safe(Request(service="", method=each.method, path=each.path)):
                body = each.body or {}
                name = (body.get("cluster") or body.get("nodePool") or body).get("name", "")
                found.append(f"{each.method} {each.path} {name}".rstrip())
        return found

    def twice(self) -> list[str]:
        """Mutations that came more than once."""
        return [line for line, count in Counter(self.mutations()).items() if count > 1]

    def carried_out_twice(self) -> list[str]:
        """Mutations that were taken more than once, under whatever id."""
        return [line for line, count in Counter(self.mutations(taken=True)).items() if count > 1]

    def paths(self) -> list[str]:
        """Paths of everything that exists."""
        return sorted(self.world.store.objects)


def _runs(body: Any) -> bool:
    return isinstance(body, dict) and body.get("status") == "RUNNING"


def _wide(key: Key) -> bool:
    """Whether it belongs to another NIC than the first."""
    return key.name[-1].isdigit() and not key.name.endswith("-1")


def _narrowed(resource: Resource) -> Resource:
    after = tuple(key for key in resource.after if not _wide(key))
    body = dict(resource.body)
    if resource.key.kind == "nodePool":
        networking = body["networkConfig"]
        body["networkConfig"] = {
            **networking,
            "additionalNodeNetworkConfigs": networking["additionalNodeNetworkConfigs"][:1],
        }
    return msgspec.structs.replace(resource, after=after, body=body)


class Run(NamedTuple):
    """What one run had in hand."""

    plan: Plan
    endings: dict[Task, Ending[Task]]

    def states(self) -> dict[str, str]:
        return {str(task): ending.state for task, ending in self.endings.items()}


def _journal(folder: Path, sync: Callable[[int], None] = lambda _: None) -> Journal:
    """Without waiting for a disk, unless told to: what a kill leaves of a file does not depend on that."""
    return Journal(folder, sync=sync)


async def plan_on(sky: Sky, folder: Path) -> Plan:
    """Look and compare."""
    wanted = sky.wanted()
    with _journal(folder) as journal:
        picture = await observe(Client(sky.send), scope_of_cluster(sky.file, wanted))
        return make_plan(wanted, picture, owner_of(sky.file), adopted=adopted(journal.entries))


async def apply_on(
    sky: Sky,
    folder: Path,
    *,
    replace: bool = False,
    prune: bool = False,
    parallel: int = 16,
    patience: float = 60,
    sync: Callable[[int], None] = lambda _: None,
) -> Run:
    """Look, compare, do."""
    wanted = sky.wanted()
    with _journal(folder, sync) as journal:
        client = Client(sky.send, patience=patience)
        picture = await observe(client, scope_of_cluster(sky.file, wanted))
        plan = make_plan(wanted, picture, owner_of(sky.file), adopted=adopted(journal.entries))
        work = tasks(plan, region=sky.file.region, replace=replace, prune=prune)
        return Run(plan, await apply(client, journal, picture, plan, work, parallel=parallel))


async def destroy_on(sky: Sky, folder: Path, *, with_foreign_rules: bool = False) -> dict[Task, Ending[Task]]:
    """Look, and take away."""
    wanted = sky.wanted()
    keys = {resource.key for resource in wanted}
    with _journal(folder) as journal:
        client, ours = Client(sky.send, patience=60), adopted(journal.entries)
        picture = await observe(client, scope_of_cluster(sky.file, wanted))
        picture = await settle(client, journal, picture, keys)
        plan = teardown(picture, owner_of(sky.file), adopted=ours, wanted=keys)
        return await destroy(
            client, journal, picture, owner_of(sky.file), plan, with_foreign_rules=with_foreign_rules, adopted=ours
        )
