"""From a page of gcloud commands to what it means: the requests that it sends, and what is wrong in it.

Invariant: requests are given only for a page that is taken whole; what gcloud would not notice is found by the rules
about requests, each finding with the line of the page. Nothing is run and nobody is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from interlace.gke.errors import Refused
from interlace.gke.gcloud.annotations import broken_annotations
from interlace.gke.gcloud.call import UnknownCommand
from interlace.gke.gcloud.changes import hold
from interlace.gke.gcloud.defects import defects
from interlace.gke.gcloud.faults import finding
from interlace.gke.gcloud.filling import filled, with_values
from interlace.gke.gcloud.interpreting import Step, interpret, invocations, noted
from interlace.gke.gcloud.page import read_page
from interlace.gke.gcloud.refusal import PageError
from interlace.gke.gcloud.settings import Settings
from interlace.gke.request import Request
from interlace.gke.rules.checking import check_requests
from interlace.rules.finding import Finding, Severity, ordered
from interlace.rules.pointer import pointer

UNNOTICED: Final = frozenset(
    {"firewall.egress-source", "firewall.range", "network.mtu-range", "pool.autoscaling", "pool.labels", "pool.size",
     "request.malformed", "subnet.range"}
)  # fmt: skip
"""Rules for what gcloud sends and the service refuses: with one of these broken no requests are given."""

_OF_RANGES: Final = frozenset({"firewall.open", "firewall.coverage", "subnet.range"})
"""Rules that say nothing new about a command whose range is a word to be replaced."""

_REQUEST: Final = re.compile(r"/requests/(\d+)")


class Errors(Refused):
    """All that stands against a page."""

    def __init__(self, errors: Sequence[str]) -> None:
        super().__init__("\n".join(errors))
        self.errors = tuple(errors)

    def __str__(self) -> str:
        return "\n".join(self.errors)


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster of a page with its pools. ``cluster``: None where the page only adds pools to one."""

    cluster: Step | None
    pools: tuple[Step, ...]


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What a page means, as far as it can be known, and all that was found in it."""

    steps: tuple[Step, ...]
    findings: tuple[Finding, ...]
    unsaid: frozenset[str] = frozenset()
    """Names that stand for words which nobody replaced."""

    @property
    def groups(self) -> tuple[Group, ...]:
        """Clusters in their order; a pool belongs to the latest cluster of its name before it."""
        return _groups(self.steps)


def requests(
    text: str, *, project: str = "", location: str = "", known: Mapping[str, str] | None = None
) -> tuple[tuple[Request, ...], tuple[Finding, ...]]:
    """The requests that a page sends, in order, and warnings about it.

    ``location``: zone or region for commands that name none; ``known``: variables of the page. Raises Errors with all
    that stands against it.
    """
    page = read_page(text)
    settings = Settings(project=project, location=location)
    commands = invocations(page, known=known or {}, project=project)
    if known:
        commands = [msgspec.structs.replace(each, words=with_values(each.words, known)) for each in commands]
    steps = interpret(commands, settings=settings)
    notes = noted(page.notes)
    found = [each for each in notes if each.severity == "error"]
    for step in steps:
        found += step.findings
        if not any(each.rule == "gcloud.placeholder" for each in step.findings):
            found += [each for each in _judged([step]) if each.rule in UNNOTICED and each.severity == "error"]
    errors = [(each.line, str(each.refusal)) for each in steps if each.refusal is not None]
    errors += [(_line(each), _sentence(each)) for each in _by_line(found)]
    if errors:
        raise Errors([text for _, text in sorted(dict.fromkeys(errors), key=lambda error: error[0])])
    return tuple(request for step in steps for request in step.requests), tuple(notes)


def reading(text: str, *, project: str, location: str = "", known: Mapping[str, str] | None = None) -> Reading:
    """What a page means although it may be broken: placeholders are filled in, each with a finding.

    Raises PageError for a page that cannot be read at all.
    """
    page = read_page(text)
    filled_in = filled(page, project=project, location=location, known=known or {})
    settings = Settings(project=project, location=location)
    steps = interpret(filled_in.invocations, settings=settings)
    found = [*noted(page.notes), *filled_in.findings, *broken_annotations(text)]
    for step in steps:
        found += step.findings
        if step.refusal is not None and (step.call is None or hold(step.call) is None):
            mild = isinstance(step.refusal, UnknownCommand)
            remedy = (step.refusal.remedy or "Change it").rstrip(".")
            severity: Severity = "warning" if mild else "error"
            found.append(finding("not-taken", step.line, step.refusal.what, remedy, severity=severity))
    found += defects(filled_in.original, steps)
    shared = [
        step for step in steps if step.resource is not None and step.resource.key.kind not in {"cluster", "nodePool"}
    ]
    for group in _groups(steps) or (Group(cluster=None, pools=()),):
        judged = _judged([*shared, *([] if group.cluster is None else [group.cluster]), *group.pools])
        found += [each for each in judged if each.rule not in _OF_RANGES or _line(each) not in filled_in.incomplete]
    return Reading(steps=tuple(steps), findings=_by_line(found), unsaid=filled_in.unsaid)


def _judged(steps: Iterable[Step]) -> list[Finding]:
    """What the rules say about the requests of some steps, with the lines of the page."""
    pairs = [(request, step) for step in steps for request in step.requests]
    found = []
    for each in check_requests(request for request, _ in pairs):
        match = _REQUEST.match(each.pointer)
        if match is None or int(match[1]) >= len(pairs):
            found.append(each)
            continue
        line = pairs[int(match[1])][1].line
        text = each.text if each.text.startswith("line ") else f"line {line}: {each.text}"
        found.append(msgspec.structs.replace(each, pointer=pointer("lines", line), text=text))
    return found


def _groups(steps: Sequence[Step]) -> tuple[Group, ...]:
    groups: list[tuple[Step | None, list[Step]]] = []
    latest: dict[tuple[str, str], int] = {}
    for step in steps:
        resource = step.resource
        if resource is None:
            continue
        if resource.key.kind == "cluster":
            latest[resource.key.place, resource.key.name] = len(groups)
            groups.append((step, []))
        elif resource.key.kind == "nodePool":
            place, _, name = resource.key.place.partition("/")
            if (place, name) not in latest:
                latest[place, name] = len(groups)
                groups.append((None, []))
            groups[latest[place, name]][1].append(step)
    return tuple(Group(cluster=cluster, pools=tuple(pools)) for cluster, pools in groups)


def _by_line(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each rule once a line, worst first, then in the order of the page."""
    first: dict[tuple[str, str, str], Finding] = {}
    more: dict[tuple[str, str, str], set[str]] = {}
    for each in sorted(dict.fromkeys(found), key=_line):
        word = each.text.partition(" in ")[0] if each.rule == "gcloud.placeholder" else ""
        key = (each.rule, each.pointer, word)
        first.setdefault(key, each)
        more.setdefault(key, set()).add(each.text)
    counts = {key: len(texts) - 1 for key, texts in more.items()}
    return ordered(
        msgspec.structs.replace(each, text=f"{each.text} (and {counts[key]} more)") if counts[key] else each
        for key, each in first.items()
    )


def _line(each: Finding) -> int:
    """Line of the page that a finding is about; 0 for none."""
    last = each.pointer.rpartition("/")[2]
    return int(last) if each.pointer.startswith("/lines/") and last.isdigit() else 0


def _sentence(each: Finding) -> str:
    return f"{each.text} [{each.rule}]. {each.remedy[:1].upper()}{each.remedy[1:]}."


__all__ = ["UNNOTICED", "Errors", "Group", "PageError", "Reading", "reading", "requests"]
