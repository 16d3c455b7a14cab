"""Take over what exists under the names of a cluster file, so that plans may change it and destroying removes it.

Invariant: only what was named or agreed to is taken over, never what carries the mark of another cluster. It is written
into the journal first; where Google lets marks be written (firewall rules, clusters, pools), the mark follows, so that
a lost journal loses little.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from interlace.gke.bodies.requests import change
from interlace.gke.client import Client
from interlace.gke.journal import Entry, Journal
from interlace.gke.observing import observe_one
from interlace.gke.ownership import Owner, can_be_marked, is_ours, marked, other_owner
from interlace.gke.picture import Picture
from interlace.gke.plan import Plan, Step
from interlace.gke.request import Request
from interlace.gke.resource import Resource
from interlace.gke.sending import Mutation, Sender
from interlace.gke.updates import updates_named


def adoptable(plan: Plan) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """Steps that can be taken over, and those that belong to another cluster. Pure.

    What an ended run took over without coming to its mark can be taken over once more.
    """
    foreign = plan.of("foreign")
    others = tuple(step for step in foreign if other_owner(step.key.kind, step.have or {}))
    bare = tuple(
        step
        for step in plan.of("keep", "update", "replace")
        if can_be_marked(step.key.kind) and not is_ours(step.key.kind, step.have or {}, plan.owner)
    )
    return (*(step for step in foreign if step not in others), *bare), others


async def adopt(client: Client, journal: Journal, picture: Picture, steps: Iterable[Step], owner: Owner) -> None:
    """Take over ``steps``, one after the other. Raises GkeErrors and JournalError; what was done stays done."""
    sender = Sender(client, journal, picture)
    for step in steps:
        journal.append(Entry(event="adopted", key=step.key))
        if step.resource is None or not can_be_marked(step.key.kind):
            continue
        request = _mark(step.resource, step.have or {}, owner, version=picture.scope.version_of(step.key))

        async def reached(step: Step = step) -> bool:
            now = await observe_one(client, picture.scope, step.key)
            return now is not None and is_ours(step.key.kind, now, owner)

        async with sender.alone(step.key):
            await sender.catch_up(step.key)
            await sender.carry_out(Mutation(key=step.key, verb="mark", request=request), reached=reached)


def _mark(resource: Resource, have: Mapping[str, Any], owner: Owner, *, version: str) -> Request:
    """The request that writes the mark onto what exists, and changes nothing else."""
    key = resource.key
    if key.kind == "firewall":
        said = str(have.get("description") or "")
        text = f"{said} ({owner.description})" if said else owner.description
        return change(key, {"name": key.name, "description": text}, project=resource.project, version=version)
    bare = Resource(key=key, project=resource.project, body=_labels_alone(key.kind, have), version=version)
    name = "cluster labels" if key.kind == "cluster" else "resource labels"
    return updates_named(marked(bare, owner), have, name, version=version)


def _labels_alone(kind: str, have: Mapping[str, Any]) -> dict[str, Any]:
    if kind == "cluster":
        return {"resourceLabels": dict(have.get("resourceLabels") or {})}
    return {"config": {"resourceLabels": dict((have.get("config") or {}).get("resourceLabels") or {})}}
