"""Commands and flags that gcloud knows, by release track: the table that command lines are read with.

Recorded from gcloud 528 (``data/flags.json``). Invariant: the table says how a flag is spelled and what kind of value
it has; what it means is said by ``meanings``.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any, Final, Literal, get_args

import msgspec

Track = Literal["ga", "beta", "alpha"]
TRACKS: Final[tuple[Track, ...]] = get_args(Track)

OPTIONAL_VALUE: Final = frozenset({"--ephemeral-storage", "--ephemeral-storage-local-ssd", "--local-nvme-ssd-block"})
"""May stand without a value."""

ONCE: Final = frozenset({"--metadata"})
"""May stand once only; of other flags the last one counts."""

HIDDEN_SWITCHES: Final = frozenset({"--quiet", "--log-http", "--user-output-enabled"})


class Flag(msgspec.Struct, frozen=True, kw_only=True):
    """A flag of a command. ``kind``: ``bool``, ``value`` or ``choices``; ``keys``: of a value that is a dictionary."""

    kind: str
    choices: tuple[str, ...] = ()
    by_track: dict[str, tuple[str, ...]] = {}
    tracks: tuple[str, ...] = TRACKS
    negatable: bool = False
    required: bool = False
    keys: tuple[str, ...] = ()
    keys_by_track: dict[str, tuple[str, ...]] = {}
    required_keys: tuple[str, ...] = ()

    def values(self, track: Track) -> tuple[str, ...]:
        """What it may be set to; none if anything goes."""
        return self.by_track.get(track, ()) or self.choices

    def members(self, track: Track) -> tuple[str, ...]:
        """Keys that its dictionary may have."""
        return self.keys_by_track.get(track, ()) or self.keys


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A command."""

    tracks: tuple[str, ...]
    flags: dict[str, Flag]


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """All of them. ``global_flags``: flag to kind, or to its choices."""

    gcloud: str
    global_flags: dict[str, Any]
    commands: dict[str, Entry]

    def overall(self, name: str) -> Flag | None:
        """A flag that every command has."""
        kind = self.global_flags.get(name)
        if kind is None:
            return None
        switch = kind == "bool" or name in HIDDEN_SWITCHES
        return Flag(kind="bool", negatable=True) if switch else Flag(kind="value")

    def takes_value(self, name: str) -> bool:
        """Whether a flag of this name has a value, whatever the command."""
        flag = self.overall(name)
        kinds = {entry.flags[name].kind for entry in self.commands.values() if name in entry.flags}
        return bool(kinds - {"bool"}) or (flag is not None and flag.kind != "bool")

    def leads(self, path: tuple[str, ...]) -> bool:
        """Whether some command begins with these words."""
        return any(tuple(each.split()[: len(path)]) == path for each in self.commands)


@cache
def table() -> Table:
    """The table, read once."""
    data = resources.files("interlace.gke.gcloud").joinpath("data/flags.json").read_bytes()
    return msgspec.json.decode(data, type=Table)
