"""What has to happen so that a cluster is as its file says. Pure.

Invariant: a plan follows from what is wanted, what was observed and whose it is, and from nothing else. What is not
ours is never changed: a resource of a wanted name that somebody else made makes the plan impossible until it is
adopted. A replacement takes everything with it that refers to what is replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal

import msgspec

from interlace.gke.difference import Difference, differences
from interlace.gke.durations import expected_minutes
from interlace.gke.ownership import Owner, is_ours, marked, other_owner
from interlace.gke.picture import Picture, pools_of, references, users_of
from interlace.gke.places import cluster_of
from interlace.gke.resource import Key, Resource

Action = Literal["keep", "create", "update", "replace", "delete", "foreign"]
Verb = Literal["delete", "create", "update"]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to one resource. ``resource`` is None for what the file does not have any more."""

    key: Key
    action: Action
    resource: Resource | None = None
    have: Mapping[str, Any] | None = None
    differences: tuple[Difference, ...] = ()
    note: str = ""
    """Why, or what is wrong with it although nothing differs."""
    trouble: bool = False
    """It exists as it is meant and does not work."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Steps in the order of the file, then what it does not have any more."""

    owner: Owner
    steps: tuple[Step, ...]

    def of(self, *actions: Action) -> tuple[Step, ...]:
        """Steps with one of these actions."""
        return tuple(step for step in self.steps if step.action in actions)

    @property
    def empty(self) -> bool:
        """Whether everything is as it is meant."""
        return all(step.action == "keep" for step in self.steps)

    @property
    def minutes(self) -> int:
        """An estimate for the changes."""
        return expected_minutes(
            {
                step.key: step.resource.after if step.resource else ()
                for step in self.steps
                if step.action not in {"keep", "foreign"}
            }
        )


class Task(msgspec.Struct, frozen=True, order=True):
    """One piece of work of applying a plan."""

    verb: Verb
    key: Key

    def __str__(self) -> str:
        return f"{self.verb} {self.key}"


def make_plan(
    wanted: Sequence[Resource], picture: Picture, owner: Owner, *, adopted: AbstractSet[Key] = frozenset()
) -> Plan:
    """Compare. ``wanted`` without marks, in an order in which each stands after what it refers to."""
    resources = [marked(resource, owner) for resource in _with_pools(wanted, picture)]
    steps = [_step(resource, picture, owner, adopted) for resource in resources]
    steps = _with_dependants(steps)
    names = {resource.key for resource in resources} | _pools_in(wanted)
    gone = [
        Step(key=key, action="delete", have=body, note="the file does not have it any more")
        for key, body in picture.bodies.items()
        if key not in names and (key in adopted or is_ours(key.kind, body, owner))
    ]
    return Plan(owner=owner, steps=(*steps, *sorted(gone, key=lambda step: step.key)))


def tasks(plan: Plan, *, region: str, replace: bool, prune: bool) -> dict[Task, set[Task]]:
    """Work with what each piece waits for; replacements and deletions only where they are allowed."""
    create = {s.key for s in plan.of("create")}
    update = {s.key for s in plan.of("update")}
    again = {s.key for s in plan.of("replace")} if replace else set()
    delete = ({s.key for s in plan.of("delete")} if prune else set()) | again
    work: dict[Task, set[Task]] = {}
    for step in plan.steps:
        after = _after(step, region=region)
        if step.key in delete:
            work.setdefault(Task("delete", step.key), set())
        verb: Verb | None = "create" if step.key in create | again else "update" if step.key in update else None
        if verb is None:
            continue
        needs = work.setdefault(Task(verb, step.key), set())
        if step.key in again:
            needs.add(Task("delete", step.key))
        needs |= {Task("create", key) for key in after if key in create | again}
        needs |= {Task("update", key) for key in after if key in update}
    for step in plan.steps:  # a thing goes before what it refers to, as it is and as it is meant
        if step.key in delete:
            for key in {*_after(step, region=region), *references(step.key, step.have or {}, region=region)}:
                if key in delete:
                    work[Task("delete", key)].add(Task("delete", step.key))
    return work


def strangers(
    keys: AbstractSet[Key], bodies: Mapping[Key, Mapping[str, Any]], *, ours: AbstractSet[Key]
) -> dict[Key, tuple[Key, ...]]:
    """What others put into the networks and clusters among ``keys``: rules, subnets, pools."""
    found: dict[Key, tuple[Key, ...]] = {}
    for key in sorted(keys):
        inside = users_of(key, bodies) if key.kind == "network" else pools_of(key, bodies)
        if users := sorted(user for user in inside if user not in ours):
            found[key] = tuple(users)
    return found


def rules_of_gke(bodies: Iterable[Key]) -> set[Key]:
    """Firewall rules that clusters make and take away themselves."""
    return {key for key in bodies if key.kind == "firewall" and key.name.startswith(("gke-", "k8s-"))}


def in_the_way(
    picture: Picture, plan: Plan, work: Iterable[Task], *, adopted: AbstractSet[Key] = frozenset()
) -> dict[Key, tuple[Key, ...]]:
    """What others put into something that ``work`` deletes. Rules of GKE's own go with their cluster."""
    going = {task.key for task in work if task.verb == "delete"}
    ours = {key for key, body in picture.bodies.items() if key in adopted or is_ours(key.kind, body, plan.owner)}
    return strangers(going, picture.bodies, ours=ours | rules_of_gke(picture.bodies))


def _after(step: Step, *, region: str) -> tuple[Key, ...]:
    if step.resource is not None:
        cluster = cluster_of(step.key) if step.key.kind == "nodePool" else None
        return (*step.resource.after, cluster) if cluster else step.resource.after
    return references(step.key, step.have or {}, region=region)


def _with_pools(wanted: Sequence[Resource], picture: Picture) -> Iterable[Resource]:
    """A cluster that exists is compared without its first pools, which are then resources like all others."""
    for resource in wanted:
        pools = resource.body.get("nodePools") if resource.key.kind == "cluster" else None
        yield resource
        if pools and resource.key in picture.bodies:
            place = f"{resource.key.place}/{resource.key.name}"
            for pool in pools:
                key = Key("nodePool", place, pool["name"])
                yield Resource(
                    key=key, project=resource.project, body=pool, version=resource.version, after=(resource.key,)
                )


def _pools_in(wanted: Sequence[Resource]) -> set[Key]:
    return {
        Key("nodePool", f"{each.key.place}/{each.key.name}", pool["name"])
        for each in wanted
        if each.key.kind == "cluster"
        for pool in each.body.get("nodePools") or ()
    }


def _step(resource: Resource, picture: Picture, owner: Owner, adopted: AbstractSet[Key]) -> Step:
    key = resource.key
    have = picture.bodies.get(key)
    working = picture.working.get(key)
    going = working is not None and working.kind in {"delete", "DELETE_CLUSTER", "DELETE_NODE_POOL"}
    if have is None or going or have.get("status") in {"STOPPING", "DELETING"}:
        note = f"{working.name} is at work on it and is waited for" if working else ""
        return Step(key=key, action="create", resource=resource, have=have, note=note)
    if key not in adopted and not is_ours(key.kind, have, owner):
        other = other_owner(key.kind, have)
        note = f"it belongs to {other}" if other else "it was not made here; `interlace gke adopt` takes it over"
        found = differences(key.kind, want=resource.body, have=have)
        return Step(key=key, action="foreign", resource=resource, have=have, note=note, differences=found)
    making = working is not None and working.kind in {"insert", "CREATE_CLUSTER", "CREATE_NODE_POOL"}
    if making or have.get("status") == "PROVISIONING":
        note = "it is still being made and is waited for"
        return Step(key=key, action="create", resource=resource, have=have, note=note)
    found = differences(key.kind, want=resource.body, have=have)
    if not found:
        return Step(
            key=key, action="keep", resource=resource, have=have, note=trouble(have), trouble=bool(trouble(have))
        )
    action: Action = "replace" if any(each.replaces for each in found) else "update"
    return Step(key=key, action=action, resource=resource, have=have, differences=found)


def _with_dependants(steps: Sequence[Step]) -> list[Step]:
    """Replace what refers to something that is replaced."""
    replaced: set[Key] = {step.key for step in steps if step.action == "replace"}
    result = []
    for step in steps:
        cause = next((key for key in step.resource.after if key in replaced), None) if step.resource else None
        if cause is not None and step.action in {"keep", "update"}:
            replaced.add(step.key)
            note = f"it refers to {cause}, which is replaced"
            result.append(msgspec.structs.replace(step, action="replace", note=note))
        else:
            result.append(step)
    return result


def trouble(body: Mapping[str, Any]) -> str:
    """What a cluster or node pool itself says is wrong with it; empty for nothing."""
    status = str(body.get("status") or "")
    if status not in {"ERROR", "RUNNING_WITH_ERROR", "DEGRADED"}:
        return ""
    said = [f"{each.get('code', '')}: {each.get('message', '')}".strip(": ") for each in body.get("conditions") or ()]
    text = "; ".join(each for each in said if each) or str(body.get("statusMessage") or "")
    return f"{status}: {text}" if text else status
