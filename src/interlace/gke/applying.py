"""Make it so: the tasks of a plan in their order, as many at once as allowed, each known at its end.

Invariant: a task that fails holds up only what needs it, and what exists already when its turn comes is not made again.
Clusters and node pools count as done when they themselves say that they run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from interlace.gke.bodies.requests import create, delete
from interlace.gke.client import Client
from interlace.gke.difference import differences
from interlace.gke.durations import limit
from interlace.gke.errors import GkeError
from interlace.gke.failures import Late, OperationFailed
from interlace.gke.journal import Journal
from interlace.gke.observing import observe_one
from interlace.gke.operations import Operation
from interlace.gke.ownership import Owner, is_ours
from interlace.gke.picture import Picture
from interlace.gke.plan import Plan, Step, Task, trouble
from interlace.gke.resource import Key, Resource
from interlace.gke.scheduling import Ending, Failure, run_in_order
from interlace.gke.sending import Mutation, Sender
from interlace.gke.updates import covers, updates

PARALLEL: Final = 16
_LOOK: Final = 5.0
"""Seconds between looks at a cluster or pool that is still being made although its operation has ended."""


class Watcher:
    """What somebody who looks on is told; does nothing by itself."""

    def began(self, task: Task) -> None:
        """``task`` has begun."""

    def told(self, key: Key, operation: Operation) -> None:
        """What Google says about an operation on ``key``."""

    def ended(self, ending: Ending[Task]) -> None:
        """A task has ended, or will never begin."""


async def apply(
    client: Client,
    journal: Journal,
    picture: Picture,
    plan: Plan,
    work: Mapping[Task, AbstractSet[Task]],
    *,
    parallel: int = PARALLEL,
    watcher: Watcher | None = None,
) -> dict[Task, Ending[Task]]:
    """Carry out ``work``. Errors of single tasks are in their endings.

    Raises JournalError, after which nothing more is sent. Cancelling stops sending; operations go on at Google, and
    the journal knows them.
    """
    watcher = watcher or Watcher()
    sender = Sender(client, journal, picture, told=watcher.told)
    for step in plan.of("keep"):
        sender.settled(step.key)
    steps = {step.key: step for step in plan.steps}
    return await perform(
        work,
        lambda task: _do(client, sender, task, steps[task.key], plan.owner),
        sender=sender,
        parallel=parallel,
        watcher=watcher,
    )


async def perform(
    work: Mapping[Task, AbstractSet[Task]],
    do: Callable[[Task], Awaitable[None]],
    *,
    sender: Sender,
    parallel: int,
    watcher: Watcher,
) -> dict[Task, Ending[Task]]:
    """Run tasks; what may still be under way when its error came counts as unknown."""

    async def one(task: Task) -> None:
        watcher.began(task)
        try:
            await do(task)
        except GkeError as error:
            raise Failure(error, state="unknown" if task.key in sender.open() else "failed") from None

    return await run_in_order(work, one, parallel=parallel, ended=watcher.ended)


async def _do(client: Client, sender: Sender, task: Task, step: Step, owner: Owner) -> None:
    async with sender.alone(task.key):
        if task.verb == "delete":
            await remove(client, sender, task.key)
        elif step.resource is not None and task.verb == "create":
            await _create(client, sender, step.resource, owner, seen=step.have is not None)
        elif step.resource is not None:
            await _update(client, sender, step.resource, step)


async def _create(client: Client, sender: Sender, resource: Resource, owner: Owner, *, seen: bool) -> None:
    """Make it. ``seen``: it was there already, still being made or still being deleted."""
    key = resource.key

    async def reached() -> bool:
        body = await observe_one(client, sender.scope, key)
        if body is not None and not is_ours(key.kind, body, owner):
            raise GkeError(
                f"{key}: somebody else has made one of this name meanwhile",
                remedy="Rename it in the file, or take it over with `interlace gke adopt`",
            )
        return body is not None

    caught_up = await sender.catch_up(key)
    earlier = (caught_up or seen) and await reached()
    if not earlier:
        mutation = Mutation(key=key, verb="create", request=create(resource))
        await sender.carry_out(mutation, reached=reached)
    if key.kind in {"cluster", "nodePool"}:
        await _until_it_runs(client, sender, key)
    if earlier:  # the file may have changed since it was sent
        await _change(client, sender, resource, await observe_one(client, sender.scope, key) or {})


async def _update(client: Client, sender: Sender, resource: Resource, step: Step) -> None:
    key, have = resource.key, step.have or {}
    if await sender.catch_up(key):
        have = await observe_one(client, sender.scope, key) or have
    await _change(client, sender, resource, have)


async def _change(client: Client, sender: Sender, resource: Resource, have: Mapping[str, Any]) -> None:
    """Take ``have`` to what is meant, in place. Raises GkeErrors, also where that cannot be done."""
    key = resource.key
    found = differences(key.kind, want=resource.body, have=have)
    if stays := [each.path for each in found if each.replaces]:
        raise GkeError(
            f"{key}: it was made as an earlier run meant it, and {', '.join(stays)} cannot be changed",
            remedy="`interlace gke plan` shows what differs from the file",
        )
    version = sender.scope.version_of(key)
    for each in updates(resource, have, found, version=version):

        async def reached(name: str = each.name) -> bool:
            now = await observe_one(client, sender.scope, key) or {}
            return not any(covers(name, left) for left in differences(key.kind, want=resource.body, have=now))

        await sender.carry_out(Mutation(key=key, verb=each.name, request=each.request), reached=reached)


async def remove(client: Client, sender: Sender, key: Key) -> None:
    """Delete one resource; that it is gone already is good. To be called within ``alone``. Raises GkeErrors."""

    async def gone() -> bool:
        return await observe_one(client, sender.scope, key) is None

    if await sender.catch_up(key) and await gone():
        return
    scope = sender.scope
    request = delete(key, project=scope.project_of(key), version=scope.version_of(key))
    await sender.carry_out(Mutation(key=key, verb="delete", request=request), reached=gone)


async def _until_it_runs(client: Client, sender: Sender, key: Key) -> None:
    """Look at what a cluster or pool says about itself. Raises OperationFailed and Late."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + limit(key.kind)
    while True:
        body = await observe_one(client, sender.scope, key)
        if body is None:
            raise GkeError(f"{key}: it is gone again", remedy="Run the same command again")
        if body.get("status") not in {"PROVISIONING", "STOPPING"}:
            break
        if loop.time() >= deadline:
            raise Late(f"create {key}", name="(none listed)", seconds=limit(key.kind))
        await asyncio.sleep(_LOOK)
    if bad := trouble(body):
        code = next((str(each.get("code")) for each in body.get("conditions") or () if each.get("code")), "")
        raise OperationFailed(str(key), code=code, message=bad)
