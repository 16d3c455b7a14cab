"""A gcloud command line as gcloud's own parser sees it: track, command, names and flags with their values.

Invariant: a flag counts as understood only once its value was asked for; ``finish`` refuses a call in which one was
not, so that no flag is ever dropped in silence.
"""

from __future__ import annotations

import difflib
import fnmatch
import re
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Final, NoReturn

from interlace.gke.gcloud.refusal import PageError
from interlace.gke.gcloud.table import ONCE, OPTIONAL_VALUE, TRACKS, Entry, Flag, Track, table

SHORT: Final = {"-q": "--quiet", "-h": "--help"}

WITHOUT_EFFECT: Final = frozenset(
    {"--account", "--billing-project", "--flatten", "--format", "--log-http", "--quiet", "--user-output-enabled",
     "--verbosity", "--async", "--timeout", "--impersonate-service-account", "--trace-token"}
)  # fmt: skip
"""Change how a command is sent, shown or waited for, not what it asks for."""

_NUMBER: Final = re.compile(r"-\d+$|-\d*\.\d+$")


class UnknownCommand(PageError):
    """A gcloud command that is not in the table."""


class Call:
    """One command. ``flags``: name to all its values, in order; True and False for switches."""

    def __init__(self, *, track: Track, command: str, line: int) -> None:
        self.track = track
        self.command = command
        self.line = line
        self.names: list[str] = []
        self.flags: dict[str, list[str | bool]] = {}
        self._taken: set[str] = set(WITHOUT_EFFECT)

    def __str__(self) -> str:
        return " ".join(["gcloud", *([] if self.track == "ga" else [self.track]), self.command])

    @property
    def entry(self) -> Entry:
        return table().commands[self.command]

    def has(self, flag: str) -> bool:
        """Whether the flag stands there; does not take it."""
        return flag in self.flags

    def text(self, flag: str) -> str | None:
        """Its value, the last one if it stands there more than once."""
        values = self.all(flag)
        return values[-1] if values else None

    def all(self, flag: str) -> list[str]:
        """All its values."""
        self._taken.add(flag)
        return [each if isinstance(each, str) else "" for each in self.flags.get(flag, ())]

    def switch(self, flag: str) -> bool | None:
        """On or off; None if it does not stand there."""
        self._taken.add(flag)
        values = self.flags.get(flag, ())
        return bool(values[-1]) if values else None

    def understands(self, flag: str) -> None:
        """Take a flag whether it stands there or not."""
        self._taken.add(flag)

    @property
    def understood(self) -> frozenset[str]:
        """Flags of this command whose values were asked for, or would have been."""
        return frozenset(self._taken) & self.entry.flags.keys()

    def refuse(self, what: str, *, cause: str = "", remedy: str = "") -> NoReturn:
        """Raises PageError about this command."""
        raise PageError(f"{self}: {what}", line=self.line, cause=cause, remedy=remedy)

    def untaken(self) -> list[str]:
        """Flags whose values nobody asked for."""
        return [each for each in self.flags if each not in self._taken]

    def finish(self) -> None:
        """Raises PageError if a flag was not understood."""
        for flag in self.untaken():
            name = f"--no-{flag[2:]}" if self.flags[flag][-1] is False else flag
            self.refuse(
                f"the flag {name} is not taken",
                cause=f"The reason: {why_refused(flag)}.",
                remedy="Leave it out, or make the change another way.",
            )


def why_refused(flag: str) -> str:
    """Why a flag is not taken, one clause."""
    return next(why for pattern, why in _reasons() if fnmatch.fnmatchcase(flag, pattern))


@cache
def _reasons() -> tuple[tuple[str, str], ...]:
    data = resources.files("interlace.gke.gcloud").joinpath("data/refused.toml").read_text(encoding="utf-8")
    return tuple((flag, each["why"]) for each in tomllib.loads(data)["refused"] for flag in each["flags"])


def read_call(words: Sequence[str], *, line: int) -> Call:
    """Read the words behind ``gcloud``. Raises UnknownCommand, and PageError for flags that the command has not."""
    reader = _Reader(list(words), line)
    return reader.read()


class _Reader:
    def __init__(self, words: list[str], line: int) -> None:
        self.words = words
        self.line = line
        self.at = 0
        self.early: list[tuple[str, str | bool]] = []

    def read(self) -> Call:
        call = self._command()
        for name, value in self.early:
            call.flags.setdefault(name, []).append(value)
        while self.at < len(self.words):
            word = self.words[self.at]
            if word == "--":
                call.refuse("what stands behind -- is not taken")
            if word.startswith("-") and len(word) > 1 and not _NUMBER.match(word):
                name, value = self._flag(call, word)
                if name in ONCE and name in call.flags:
                    call.refuse(f"{name} stands there twice", remedy="Write all its values in one.")
                call.flags.setdefault(name, []).append(value)
            else:
                if word.startswith("["):
                    call.refuse(
                        f"{word} begins with a bracket",
                        cause="Brackets mean in a page that flags are optional; a shell hands them to gcloud.",
                        remedy="Take the brackets out, or the flags between them.",
                    )
                call.names.append(word)
                self.at += 1
        for name, flag in call.entry.flags.items():
            if flag.required and call.track in flag.tracks and name not in call.flags and _needed(name, call):
                call.refuse(f"the flag {name} is missing", remedy=f"Add {name}=VALUE.")
        return call

    def _command(self) -> Call:
        path: list[str] = []
        track: Track = "ga"
        while self.at < len(self.words):
            word = self.words[self.at]
            if word.startswith("-") and len(word) > 1:
                name = SHORT.get(word, word).partition("=")[0]
                flag = table().overall(_positive(name))
                if flag is None:
                    raise PageError(
                        f"the flag {name} stands before the command",
                        line=self.line,
                        remedy="Write it behind the command.",
                    )
                self.early.append(self._value(word, flag, who="gcloud"))
                continue
            self.at += 1
            if word in {"beta", "alpha"} and not path:
                track = "beta" if word == "beta" else "alpha"
                continue
            path.append(word)
            command = " ".join(path)
            if command in table().commands:
                if track not in table().commands[command].tracks:
                    raise UnknownCommand(f"gcloud {track} {command} does not exist", line=self.line)
                return Call(track=track, command=command, line=self.line)
            if not table().leads(tuple(path)):
                break
        more = [] if self.at >= len(self.words) or self.words[self.at].startswith("-") else [self.words[self.at]]
        spelled = " ".join(["gcloud", *([] if track == "ga" else [track]), *path, *more])
        raise UnknownCommand(
            f"the command {spelled} is not taken",
            line=self.line,
            cause="It makes none of the resources of a cluster.",
            remedy="Take it out of the page.",
        )

    def _flag(self, call: Call, word: str) -> tuple[str, str | bool]:
        name = SHORT.get(word, word).partition("=")[0]
        flag = call.entry.flags.get(name) or table().overall(name)
        if flag is None and name.startswith("--no-"):
            positive = call.entry.flags.get(_positive(name)) or table().overall(_positive(name))
            flag = positive if positive is not None and positive.negatable else None
        if flag is None:
            near = difflib.get_close_matches(name, call.entry.flags, n=1)
            call.refuse(
                f"the flag {name} is not known",
                cause=f"gcloud {table().gcloud} has no such flag of this command.",
                remedy=f"Did you mean {near[0]}?" if near else "Take it out.",
            )
        if call.track not in flag.tracks:
            call.refuse(
                f"the flag {name} is not known in this release track",
                remedy=f"It is known to gcloud {' and '.join(each for each in TRACKS if each in flag.tracks)}.",
            )
        name, value = self._value(word, flag, who=str(call))
        choices = flag.values(call.track)
        if choices and isinstance(value, str):
            value = _chosen(call, name, value, choices)
        return name, value

    def _value(self, word: str, flag: Flag, *, who: str) -> tuple[str, str | bool]:
        name, equals, value = SHORT.get(word, word).partition("=")
        self.at += 1
        if flag.kind == "bool":
            if equals:
                raise PageError(
                    f"{who}: the flag {name} takes no value", line=self.line, remedy=f"Write {name} or --no-{name[2:]}."
                )
            positive = _positive(name)
            return (name, True) if positive == name or not flag.negatable else (positive, False)
        if equals:
            return name, value
        following = self.words[self.at : self.at + 1]
        if following and (not following[0].startswith("-") or len(following[0]) < 2 or _NUMBER.match(following[0])):
            self.at += 1
            return name, following[0]
        if name in OPTIONAL_VALUE:
            return name, ""
        raise PageError(f"{who}: the flag {name} has no value", line=self.line, remedy=f"Write {name}=VALUE.")


LENIENT: Final = frozenset({"--binauthz-evaluation-mode", "--workload-metadata", "--workload-metadata-from-node"})
"""Flags of ``gcloud container`` whose choices may be written in capitals or not."""

EXACT: Final = frozenset({"--network-firewall-policy-enforcement-order"})
"""Flags of ``gcloud compute`` whose choices may not."""


def _chosen(call: Call, name: str, value: str, choices: Sequence[str]) -> str:
    if value in choices:
        return value
    alike = [each for each in choices if _folded(each) == _folded(value)]
    exact = name not in LENIENT if call.command.startswith("container") else name in EXACT
    if not alike or exact:
        call.refuse(f"{name}={value} is not a choice", remedy=f"Write one of {', '.join(choices)}.")
    return alike[0]


def _folded(choice: str) -> str:
    return choice.lower().replace("_", "-")


def _positive(name: str) -> str:
    return f"--{name[5:]}" if name.startswith("--no-") else name


def _needed(name: str, call: Call) -> bool:
    """Whether a flag that the table calls required is so by itself, and not only within its group of flags."""
    return not call.command.startswith("container") and name != "--enable-l2"
