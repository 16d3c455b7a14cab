"""From a page to what it asks for: every gcloud command in turn, with loops unrolled and variables filled in.

Invariant: each command gives resources, requests, findings or a refusal; none is passed over unless it only reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from interlace.gke.bodies import requests
from interlace.gke.gcloud import clusters, compute, pools
from interlace.gke.gcloud.call import Call, UnknownCommand, read_call
from interlace.gke.gcloud.changes import CHANGES, NOT_TAKEN
from interlace.gke.gcloud.faults import Faults, finding
from interlace.gke.gcloud.lexer import Lexer
from interlace.gke.gcloud.refusal import PageError
from interlace.gke.gcloud.settings import Settings
from interlace.gke.gcloud.statements import Assignment, Command, Loop, Note, Page, Statement
from interlace.gke.gcloud.words import Unset, Word, expand, sequence
from interlace.gke.request import Request
from interlace.gke.resource import Resource
from interlace.rules.finding import Finding, Severity

MOST: Final = 4096
"""No page has more commands than this."""

CREATES: Final[dict[str, Callable[[Call, Settings, Faults], Resource]]] = {
    "compute firewall-rules create": compute.firewall,
    "compute networks create": compute.network,
    "compute networks subnets create": compute.subnetwork,
    "compute reservations create": compute.reservation,
    "compute resource-policies create group-placement": compute.group_placement,
    "compute resource-policies create workload-policy": compute.workload_policy,
    "container clusters create": clusters.cluster,
    "container node-pools create": pools.pool,
}

HARMLESS: Final = frozenset({"auth", "components", "help", "info", "init", "version", "topic", "survey", "feedback"})
"""First words of commands that make nothing."""

_READS: Final = frozenset({"list", "describe", "get-credentials", "get-iam-policy", "print-access-token"})

_PROPERTIES: Final = {
    "CLOUDSDK_CORE_PROJECT": "core/project",
    "CLOUDSDK_COMPUTE_ZONE": "compute/zone",
    "CLOUDSDK_COMPUTE_REGION": "compute/region",
    "CLOUDSDK_CONTAINER_CLUSTER": "container/cluster",
}


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What one command asks for. ``call``: None for a command that the table has not."""

    line: int
    words: tuple[str, ...]
    call: Call | None = None
    resource: Resource | None = None
    requests: tuple[Request, ...] = ()
    findings: tuple[Finding, ...] = ()
    refusal: PageError | None = None


class Invocation(msgspec.Struct, frozen=True, kw_only=True):
    """A command with its words filled in, and the line where it ends."""

    words: tuple[str, ...]
    line: int
    last: int
    inside: str = ""
    before: tuple[tuple[str, str], ...] = ()
    refusal: PageError | None = None


def invocations(
    page: Page, *, known: Mapping[str, str], project: str, unset: dict[str, int] | None = None
) -> list[Invocation]:
    """The gcloud commands of a page in the order in which a shell would run them.

    ``known``: variables that are set from outside and stay as they are. A command whose words cannot be known has a
    ``refusal``; with ``unset`` a variable without a value stands for its own name, and is put there with the line.
    Raises PageError for loops that cannot be unrolled.
    """
    unrolled = _Unrolled(known, project, unset)
    unrolled.run(page.statements)
    return unrolled.found


class _Unrolled:
    def __init__(self, known: Mapping[str, str], project: str, unset: dict[str, int] | None) -> None:
        self.known = known
        self.unset = unset
        self.project = project
        self.variables: dict[str, str | Unset] = dict(known)
        self.found: list[Invocation] = []
        self.rounds = 0

    def run(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            match statement:
                case Assignment():
                    self._assign(statement)
                case Loop():
                    self._loop(statement)
                case Command():
                    self._command(statement)

    def _assign(self, assignment: Assignment) -> None:
        if assignment.name in self.known:
            return
        try:
            if assignment.word is None:
                raise PageError("it is no plain value")
            if assignment.inside:
                raise PageError(f"it stands inside `{assignment.inside}`")
            value: str | Unset = self._text(assignment.word)
        except PageError as error:
            value = Unset(f"Line {assignment.line} sets it to what is not taken: {error.what}.")
        self.variables[assignment.name] = value

    def _loop(self, loop: Loop) -> None:
        values = [value for word in loop.words for value in self._values(word)]
        for value in values:
            self.rounds += 1
            if max(self.rounds, len(self.found)) > MOST:
                raise PageError(f"the loop goes round more than {MOST} times", line=loop.line, remedy="Say fewer.")
            self.variables[loop.name] = value
            self.run(loop.body)

    def _values(self, word: Word) -> list[str]:
        if len(word.parts) == 1 and word.parts[0].kind == "seq":
            lexer = Lexer(word.parts[0].text)
            arguments: list[str] = []
            while (inner := lexer.word()) is not None:
                arguments += self._expand(inner)
            return sequence(arguments, word)
        return self._expand(word)

    def _command(self, command: Command) -> None:
        words: list[str] = []
        refusal = None
        before: list[tuple[str, str]] = []
        try:
            for word in command.words:
                words += self._expand(word)
            before = [(name, self._text(word)) for name, word in command.before]
        except PageError as error:
            refusal = error
            words = [word.literal for word in command.words]
        self.found.append(
            Invocation(
                words=tuple(words),
                line=command.line,
                last=command.last,
                inside=command.inside,
                before=tuple(before),
                refusal=refusal,
            )
        )

    def _expand(self, word: Word) -> list[str]:
        self._name(word)
        return expand(word, self.variables, project=self.project)

    def _name(self, word: Word) -> None:
        """Let variables without a value stand for their own names, if that is wanted."""
        for part in word.parts if self.unset is not None else ():
            value = self.variables.get(part.text)
            if part.kind == "variable" and part.other is None and not isinstance(value, str) and self.unset is not None:
                self.unset.setdefault(part.text, word.line)
                self.variables[part.text] = part.text

    def _text(self, word: Word) -> str:
        """A value that is not cut at spaces."""
        self._name(word)
        parts = tuple(msgspec.structs.replace(part, quoted=True) for part in word.parts)
        return "".join(expand(Word(parts, word.line), self.variables, project=self.project))


def interpret(found: Sequence[Invocation], *, settings: Settings) -> list[Step]:
    """What each command asks for; those that only read give nothing."""
    steps: list[Step] = []
    for each in found:
        words = each.words
        if words[:2] == ("config", "set") and len(words) == 4 and each.refusal is None:
            try:
                settings = settings.set(words[2], words[3], line=each.line)
            except PageError as error:
                steps.append(Step(line=each.line, words=words, refusal=error))
            continue
        step = _step(each, settings)
        if step is not None:
            steps.append(step)
    return steps


def _step(each: Invocation, settings: Settings) -> Step | None:
    if each.refusal is not None:
        return Step(line=each.line, words=each.words, refusal=each.refusal)
    if not each.words or each.words[0] in HARMLESS or each.words[:2] in {("config", "get"), ("config", "get-value")}:
        return None
    if each.words[:2] == ("config", "list"):
        return None
    call = None
    try:
        for name, value in each.before:
            if name in _PROPERTIES:
                settings = settings.set(_PROPERTIES[name], value, line=each.line)
            elif name.startswith("CLOUDSDK_"):
                raise PageError(f"{name} is not taken", line=each.line, remedy="Write it as a flag of the command.")
        call = read_call(each.words, line=each.line)
        return _understood(each, call, settings)
    except PageError as error:
        if isinstance(error, UnknownCommand) and _reads(each.words):
            return None
        return Step(line=each.line, words=each.words, call=call, refusal=error)


def _understood(each: Invocation, call: Call, settings: Settings) -> Step | None:
    if call.has("--help"):
        return None
    changes = call.command in CREATES or call.command in CHANGES or call.command in NOT_TAKEN
    if not changes:
        return None
    if each.inside:
        call.refuse(
            f"it stands inside `{each.inside}`", cause="Whether it runs is known only where the page is run.",
            remedy="Write the command alone.",
        )  # fmt: skip
    if call.command in NOT_TAKEN:
        call.refuse("it is not taken", cause=NOT_TAKEN[call.command], remedy="Change the resource another way.")
    faults = Faults(call)
    if call.command in CHANGES:
        sent = CHANGES[call.command](call, settings, faults)
        call.finish()
        return Step(line=each.line, words=each.words, call=call, requests=tuple(sent), findings=tuple(faults.found))
    resource = CREATES[call.command](call, settings, faults)
    call.finish()
    return Step(
        line=each.line,
        words=each.words,
        call=call,
        resource=resource,
        requests=(requests.create(resource),),
        findings=tuple(faults.found),
    )


def _reads(words: Sequence[str]) -> bool:
    """Whether an unknown command only shows something."""
    verbs = {
        "list",
        "describe",
        "get-credentials",
        "get-iam-policy",
        "get-server-config",
        "get-value",
        "print-access-token",
    }
    return any(word in verbs for word in words if not word.startswith("-"))


_NOTES: Final = {
    "stray-flag": "{text} stands where a command begins: the line before has lost its backslash",
    "trailing-backslash": "the last line of a command ends with a backslash, and takes in what is pasted after it",
    "swallowed-command": "the line before a command ends with a backslash, and takes the command in",
    "unless-there": "a command runs unless its resource is there; it is taken as if it were not",
    "space-after-backslash": "a space follows the backslash at the end of a line, so the command ends there",
}

_MILD: Final[dict[str, Severity]] = {"trailing-backslash": "warning", "unless-there": "info"}

_REMEDIES: Final = {
    "stray-flag": "End the line before with a backslash",
    "trailing-backslash": "Take the backslash out",
    "swallowed-command": "Take the backslash out",
    "unless-there": "Nothing, if that is meant",
    "space-after-backslash": "Take the space out",
}


def noted(notes: Sequence[Note]) -> list[Finding]:
    """Findings about line ends and stray flags."""
    return [
        finding(
            note.kind,
            note.line,
            _NOTES[note.kind].format(text=note.text),
            _REMEDIES[note.kind],
            severity=_MILD.get(note.kind, "error"),
        )
        for note in notes
    ]
