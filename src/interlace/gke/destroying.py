"""Take away what was made for a cluster: all of it, and nothing else.

Invariant: only what carries our mark, or was adopted, is deleted. What others put into our networks or our cluster is
shown beforehand; while it is there, what it uses stays too, unless its removal is asked for by name. Rules that GKE
leaves in a network belong to this: they are looked for again when the cluster is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from interlace.gke.applying import PARALLEL, Watcher, perform, remove
from interlace.gke.bodies.requests import listing
from interlace.gke.client import Client
from interlace.gke.errors import GkeError
from interlace.gke.journal import Journal
from interlace.gke.observing import observe
from interlace.gke.ownership import Owner, is_ours
from interlace.gke.picture import Picture, Scope, references, users_of
from interlace.gke.places import cluster_of
from interlace.gke.plan import Task, rules_of_gke, strangers
from interlace.gke.resource import Key
from interlace.gke.scheduling import Ending
from interlace.gke.sending import Sender


class InUse(GkeError):
    """Something of ours stays because ``users``, which are not ours, are in it."""

    def __init__(self, key: Key, users: tuple[Key, ...]) -> None:
        super().__init__(
            f"{key} is still used by {', '.join(map(str, users))}",
            cause="That was not made here, so it was left alone, and what it uses with it",
            remedy="Take it away yourself, or have its firewall rules deleted too with --with-foreign-rules",
        )
        self.key = key
        self.users = users


class Teardown(msgspec.Struct, frozen=True, kw_only=True):
    """``ours``: to be deleted, with what each refers to. ``inside``: pools that go with their cluster.

    ``foreign``: what others put into something of ours. ``other``: of a wanted name, but not ours; left alone.
    """

    ours: Mapping[Key, tuple[Key, ...]]
    inside: tuple[Key, ...] = ()
    foreign: Mapping[Key, tuple[Key, ...]] = {}
    other: tuple[Key, ...] = ()

    @property
    def empty(self) -> bool:
        return not self.ours and not self.inside

    def tasks(self) -> dict[Task, set[Task]]:
        """What refers to something goes before it."""
        work: dict[Task, set[Task]] = {Task("delete", key): set() for key in self.ours}
        for key, used in self.ours.items():
            for other in used:
                if other in self.ours:
                    work[Task("delete", other)].add(Task("delete", key))
        return work


def teardown(
    picture: Picture, owner: Owner, *, adopted: AbstractSet[Key] = frozenset(), wanted: AbstractSet[Key] = frozenset()
) -> Teardown:
    """What destroying would delete, and what stands in its way. Pure. ``wanted``: names in the cluster file."""
    bodies, region = picture.bodies, picture.scope.region
    mine = {key for key, body in bodies.items() if key in adopted or is_ours(key.kind, body, owner)}
    clusters = {key for key in mine if key.kind == "cluster"}
    known = mine | rules_of_gke(bodies) if clusters else mine  # without the cluster, they are left over
    foreign = strangers(clusters | {key for key in mine if key.kind == "network"}, bodies, ours=known)
    inside = {key for key in mine if key.kind == "nodePool" and cluster_of(key) in mine - set(foreign)}
    ours = {key: references(key, bodies[key], region=region) for key in sorted(mine - inside)}
    for key in inside:  # what a pool uses waits for its cluster
        cluster = cluster_of(key)
        if cluster is not None:
            ours[cluster] = tuple({*ours[cluster], *references(key, bodies[key], region=region)} - {cluster})
    return Teardown(
        ours=ours,
        inside=tuple(sorted(inside)),
        foreign=foreign,
        other=tuple(sorted(key for key in wanted if key in bodies and key not in mine)),
    )


async def settle(
    client: Client,
    journal: Journal,
    picture: Picture,
    keys: AbstractSet[Key],
    *,
    told: Callable[[Key], None] = lambda _: None,
) -> Picture:
    """Wait for what an earlier run left under way for ``keys`` and look again; ``told`` hears of each before.

    Raises the errors of a client.
    """
    sender = Sender(client, journal, picture)
    busy = {key for key in {*picture.working, *sender.open()} if key in keys}
    if not busy:
        return picture
    for key in sorted(busy):
        told(key)
        try:
            await sender.catch_up(key)
        except GkeError:
            continue  # how it ended shows when one looks again
    return await observe(client, picture.scope)


async def destroy(
    client: Client,
    journal: Journal,
    picture: Picture,
    owner: Owner,
    plan: Teardown,
    *,
    with_foreign_rules: bool = False,
    adopted: AbstractSet[Key] = frozenset(),
    parallel: int = PARALLEL,
    watcher: Watcher | None = None,
) -> dict[Task, Ending[Task]]:
    """Delete what ``plan`` says. Errors of single tasks, InUse among them, are in their endings.

    Raises JournalError. Cancelling stops sending; deletions that were sent go on at Google.
    """
    watcher = watcher or Watcher()
    sender = Sender(client, journal, picture, told=watcher.told)

    async def do(task: Task) -> None:
        async with sender.alone(task.key):
            if task.key.kind == "network":
                await _clear(client, sender, task.key, owner, adopted, with_rules=with_foreign_rules)
            elif users := plan.foreign.get(task.key):
                raise InUse(task.key, users)
            await remove(client, sender, task.key)

    endings = await perform(plan.tasks(), do, sender=sender, parallel=parallel, watcher=watcher)
    if all(ending.state == "done" for ending in endings.values()):
        journal.forget()
    return endings


async def _clear(
    client: Client, sender: Sender, network: Key, owner: Owner, adopted: AbstractSet[Key], *, with_rules: bool
) -> None:
    """Look what is still in a network of ours. Raises InUse."""
    bodies: dict[Key, Mapping[str, Any]] = {}
    for sample in (Key("firewall", "global", "-"), Key("subnetwork", sender.scope.region, "-")):
        bodies |= await _list(client, sender.scope, sample)
    users = tuple(
        sorted(
            key for key in users_of(network, bodies) if key not in adopted and not is_ours(key.kind, bodies[key], owner)
        )
    )
    rules = tuple(key for key in users if key.kind == "firewall")
    if users and not (with_rules and rules == users):
        raise InUse(network, users)
    for key in rules:
        await remove(client, sender, key)


async def _list(client: Client, scope: Scope, sample: Key) -> dict[Key, Mapping[str, Any]]:
    request = listing(sample, project=scope.project_of(sample), version=scope.version_of(sample))
    items = await client.ask_all(request)
    return {Key(sample.kind, sample.place, str(item["name"])): item for item in items}
