"""A plan as people and programs read it: a tree of text, Markdown for a pull request, one JSON document.

Invariant: all three say the same; a replacement is named as one, and so is that something is simulated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TextIO

import msgspec

from interlace.gke.difference import Difference
from interlace.gke.places import cluster_of
from interlace.gke.plan import Plan, Step
from interlace.gke.prices import Price
from interlace.gke.resource import Key

_MARKS: Final = {"keep": " ", "create": "+", "update": "~", "replace": "±", "delete": "-", "foreign": "!"}
_WORDS: Final = (
    ("create", "to create"),
    ("update", "to change"),
    ("replace", "to replace"),
    ("delete", "not in the file any more"),
    ("foreign", "not ours"),
    ("keep", "as they are meant"),
)
_MARK: Final = re.compile(r"[│├└─ ]+ ([+~±!-]) ")
_STYLES: Final = {"+": "green", "~": "yellow", "±": "bold red", "-": "red", "!": "bold magenta"}
_LONGEST: Final = 60
"""Characters of a value in text."""


class DifferenceDocument(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """``how``: an update in place, or ``replace``."""

    path: str
    have: Any
    want: Any
    how: str
    why: str = ""


class StepDocument(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """``action``: keep, create, update, replace, delete (not in the file any more) or foreign (not ours)."""

    action: str
    kind: str
    place: str
    name: str
    differences: tuple[DifferenceDocument, ...] = ()
    note: str = ""
    trouble: bool = False


class PriceDocument(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An hour of the whole cluster. ``unknown``: machines without a known price."""

    amount: float
    currency: str
    date: str
    source: str
    unknown: dict[str, int]


class PlanDocument(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """``interlace gke plan --json`` and ``drift --json``."""

    project: str
    location: str
    cluster: str
    simulated: bool
    empty: bool
    steps: tuple[StepDocument, ...]
    summary: dict[str, int]
    minutes: int
    price_per_hour: PriceDocument


def document(plan: Plan, *, price: Price, simulated: bool) -> PlanDocument:
    """The plan for programs."""
    owner = plan.owner
    return PlanDocument(
        project=owner.project,
        location=owner.location,
        cluster=owner.cluster,
        simulated=simulated,
        empty=plan.empty,
        steps=tuple(_step(step) for step in plan.steps),
        summary=counts(plan),
        minutes=plan.minutes,
        price_per_hour=PriceDocument(
            amount=round(price.amount, 4),
            currency=price.currency,
            date=price.date,
            source=price.source,
            unknown=dict(price.unknown),
        ),
    )


def counts(plan: Plan) -> dict[str, int]:
    """How many steps of each action."""
    return {action: len(plan.of(action)) for action, _ in _WORDS}  # type: ignore[arg-type]


def summary(plan: Plan) -> str:
    """``27 to create, 1 to change``."""
    found = counts(plan)
    return ", ".join(f"{found[action]} {words}" for action, words in _WORDS if found[action]) or "nothing is wanted"


def tree(plan: Plan, *, price: Price | None, simulated: bool, all_steps: bool = False) -> Iterator[str]:
    """Lines: each resource below the one that it lies in; what stays as it is only on request, or where it is ill."""
    yield title(plan, simulated=simulated)
    shown = [step for step in plan.steps if all_steps or step.action != "keep" or step.trouble]
    yield from _branches(_nested(shown), indent="")
    yield from closing(plan, price=price)


def title(plan: Plan, *, simulated: bool) -> str:
    """What the plan is about."""
    owner = plan.owner
    mark = " (simulated)" if simulated else ""
    return f"cluster {owner.cluster} in {owner.location}, project {owner.project}{mark}"


def closing(plan: Plan, *, price: Price | None) -> Iterator[str]:
    """Counts, minutes and price."""
    yield f"{summary(plan)}."
    yield from losses(plan)
    if plan.minutes:
        yield f"Expected time: about {plan.minutes} min (an estimate)."
    if price is not None:
        yield f"Price of the whole cluster: {price}."


def losses(plan: Plan) -> Iterator[str]:
    """What is lost for good when something is replaced or pruned."""
    clusters = {step.key for step in plan.of("replace", "delete") if step.key.kind == "cluster"}
    for step in plan.of("replace", "delete"):
        option = "--replace" if step.action == "replace" else "--prune"
        if step.key.kind == "cluster":
            yield f"{option} deletes {step.key} with all Kubernetes objects, Pods and nodes in it, for good."
        elif step.key.kind == "nodePool" and cluster_of(step.key) not in clusters:
            yield f"{option} deletes {step.key}: the Pods on its nodes end, and what is on the nodes' disks is lost."


def markdown(plan: Plan, *, price: Price, simulated: bool) -> Iterator[str]:
    """For a pull request."""
    owner = plan.owner
    yield f"### Plan for cluster `{owner.cluster}` in `{owner.location}`"
    yield ""
    if simulated:
        yield "**Simulated:** no request went to Google."
        yield ""
    yield f"{summary(plan)}.{f' About {plan.minutes} min (an estimate).' if plan.minutes else ''}"
    yield ""
    yield f"Price of the whole cluster: {price}."
    for line in losses(plan):
        yield ""
        yield f"**Data loss:** {line}"
    changes = [step for step in plan.steps if step.action != "keep" or step.trouble]
    if not changes:
        return
    yield ""
    yield "| | resource | action | what |"
    yield "|---|---|---|---|"
    for step in changes:
        what = "<br>".join(
            _cell(each) for each in (*map(_change, step.differences), *([step.note] if step.note else []))
        )
        yield f"| `{_MARKS[step.action]}` | `{step.key}` | {_word(step)} | {what} |"


def _step(step: Step) -> StepDocument:
    return StepDocument(
        action=step.action,
        kind=step.key.kind,
        place=step.key.place,
        name=step.key.name,
        differences=tuple(
            DifferenceDocument(path=each.path, have=each.have, want=each.want, how=each.how, why=each.why)
            for each in step.differences
        ),
        note=step.note,
        trouble=step.trouble,
    )


class _Branch(msgspec.Struct):
    step: Step
    below: list[_Branch]


def _nested(steps: Sequence[Step]) -> list[_Branch]:
    """Subnets and rules below their network, pools below their cluster, if that is shown too."""
    branches = {step.key: _Branch(step, []) for step in steps}
    top = []
    for step in steps:
        parent = branches.get(_parent(step) or step.key)
        if parent is None or parent.step is step:
            top.append(branches[step.key])
        else:
            parent.below.append(branches[step.key])
    return top


def _parent(step: Step) -> Key | None:
    after = step.resource.after if step.resource is not None else ()
    if step.key.kind in {"subnetwork", "firewall"}:
        return next((key for key in after if key.kind == "network"), None)
    if step.key.kind == "nodePool":
        location, _, cluster = step.key.place.partition("/")
        return Key("cluster", location, cluster)
    return None


def _branches(branches: Sequence[_Branch], *, indent: str) -> Iterator[str]:
    for index, branch in enumerate(branches):
        last = index == len(branches) - 1
        step = branch.step
        yield f"{indent}{'└─' if last else '├─'} {_MARKS[step.action]} {step.key}{_said(step)}"
        inner = indent + ("   " if last else "│  ")
        rail = inner + ("│  " if branch.below else "   ")
        for each in step.differences:
            yield f"{rail}  {_change(each)}"
        yield from _branches(branch.below, indent=inner)


def _said(step: Step) -> str:
    note = f": {step.note}" if step.note else ""
    return f"  {_word(step)}{note}"


def _word(step: Step) -> str:
    words = {
        "keep": "as it is meant",
        "update": "change",
        "replace": "REPLACE (delete, then create)",
        "delete": "not in the file any more",
        "foreign": "not ours",
    }
    return "is not well" if step.trouble else words.get(step.action, step.action)


def _change(difference: Difference) -> str:
    why = f" ({difference.why})" if difference.why else ""
    kind = "cannot be changed: " if difference.replaces else ""
    return f"{kind}{difference.path}: {_value(difference.have)} → {_value(difference.want)}{why}"


def _value(value: Any) -> str:
    if value is None:
        return "absent"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _cell(text: str) -> str:
    """Safe in a cell of a table."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def show(lines: Iterable[str], *, stream: TextIO | None = None) -> None:
    """Print lines; on a terminal the marks have colours, unless NO_COLOR is set."""
    from rich.text import Text

    from interlace.cli.printing import echo

    text = Text()
    for line in lines:
        start = len(text)
        text.append(f"{line}\n")
        if mark := _MARK.match(line):
            text.stylize(_STYLES[mark[1]], start + mark.start(1), start + len(line))
    text.rstrip()
    echo(text, stream=stream)


def text_of(lines: Iterable[str]) -> str:
    """Lines with their ends."""
    return "".join(f"{line}\n" for line in lines)
