"""What came of a run: a table of what is done, failed, blocked and unknown, or one JSON document, and what to do next.

Invariant: every task stands in it once; what may go on at Google is called unknown, never failed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from interlace.cli.exits import Code

if TYPE_CHECKING:
    from rich.table import Table

    from interlace.gke.plan import Step, Task
    from interlace.gke.scheduling import Ending


class ResultDocument(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """``state``: done, failed, blocked (by ``because``) or unknown (it may go on at Google)."""

    verb: str
    kind: str
    place: str
    name: str
    state: str
    reason: str = ""
    because: str = ""


class RunDocument(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """``apply --json`` and ``destroy --json``. ``troubles``: what exists as it is meant and is not well.

    ``kept``: what was left because others use it. ``objects``: Kubernetes objects that were applied.
    """

    project: str
    location: str
    cluster: str
    simulated: bool
    results: tuple[ResultDocument, ...]
    summary: dict[str, int]
    troubles: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    objects: str = ""
    next: str = ""


class TeardownDocument(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """``destroy --dry-run --json``. ``foreign``: what others put into something of ours, ``other``: not made here."""

    project: str
    location: str
    cluster: str
    simulated: bool
    delete: tuple[str, ...]
    foreign: dict[str, tuple[str, ...]] = {}
    other: tuple[str, ...] = ()


def results(endings: Mapping[Task, Ending[Task]]) -> tuple[ResultDocument, ...]:
    """In the order in which tasks ended."""
    return tuple(
        ResultDocument(
            verb=task.verb,
            kind=task.key.kind,
            place=task.key.place,
            name=task.key.name,
            state=ending.state,
            reason=str(ending.reason or ""),
            because=str(ending.because or ""),
        )
        for task, ending in endings.items()
    )


def summary(found: Collection[ResultDocument]) -> dict[str, int]:
    """How many of each state."""
    counted = dict.fromkeys(("done", "failed", "blocked", "unknown"), 0)
    for each in found:
        counted[each.state] += 1
    return counted


def table(found: Collection[ResultDocument]) -> Table:
    """For people; reasons stand below it, since they are long."""
    from interlace.cli.printing import columns

    rows = columns("RESOURCE", "WHAT", "STATE", "WHY")
    for each in found:
        why = f"waits for {each.because}" if each.because else "see below" if each.reason else ""
        rows.add_row(f"{each.kind}/{each.name}", each.verb, each.state, why)
    return rows


def reasons(found: Collection[ResultDocument]) -> Iterator[str]:
    """Each reason once, with what it happened to."""
    said: dict[str, list[str]] = {}
    for each in found:
        if each.reason:
            said.setdefault(each.reason, []).append(f"{each.kind}/{each.name}")
    for reason, names in said.items():
        yield f"{', '.join(names)}: {reason}"


def troubles(steps: Collection[Step]) -> tuple[str, ...]:
    """What exists as it is meant and is not well, with what can be done."""
    from interlace.gke.remedies import advice

    found = []
    for step in steps:
        if step.trouble:
            cause, remedy = advice("", step.note)
            found.append(". ".join(part for part in (f"{step.key}: {step.note}".rstrip("."), cause, remedy) if part))
    return tuple(found)


def code_of(found: Collection[ResultDocument], *, ill: bool) -> Code:
    """FAILED if something failed or is unknown, BAD if all was done and something is not well."""
    if any(each.state != "done" for each in found):
        return Code.FAILED
    return Code.BAD if ill else Code.GOOD
