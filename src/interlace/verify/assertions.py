"""Causes that no message announces, asserted from facts: settings, channel lines, tables, counts.

Invariant: each assertion needs a positive fact (a line that was there); what a log does not say is no cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from interlace.fabric.family import Family
from interlace.verify.events import LogEvent
from interlace.verify.run import Run
from interlace.verify.transport import SOCKET, Transport

SELF_FAILING: Final = "hypercube"
"""The test whose own check fails on good hardware."""
_CRASHING: Final = ((2, 27, 0), (2, 30, 4))
_CRASHING_RANKS: Final = 44
_CHANNELS_COMPLETE: Final = 64
"""Ranks up to which a reader hands on all channel lines."""

_MATRIX_HEAD = "Nodes From\\To"
_MATRIX_ROW = re.compile(r"^\s*(\d+)((?:\s+(?:C|I|N|R|D|A|!V!|!M!))+)\s*$")
_BINDING = re.compile(r"(\w+):([\d,\s-]+)")


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """What is known when a log is searched for causes."""

    transport: Transport
    runs: tuple[Run, ...] = ()
    family: Family | None = None
    nodes: int | None = None
    ranks: int | None = None

    @property
    def between_nodes(self) -> bool:
        """Whether data had to leave a node."""
        return (self.nodes or 1) > 1

    @property
    def measured(self) -> bool:
        """Whether any row is complete."""
        return any(run.rows for run in self.runs)

    def holds(self, circumstance: str) -> bool:
        """Whether a circumstance of the table of signatures holds. Raises KeyError for an unknown name."""
        return {
            "socket-between-nodes": self.socket_between_nodes,
            "no-gdr": self.between_nodes and self.transport.direct is not True,
            "large-mnnvl": bool(self.transport.mnnvl)
            and (self.ranks or self.transport.ranks or 0) >= _CRASHING_RANKS
            and self.transport.version is not None
            and _CRASHING[0] <= self.transport.version <= _CRASHING[1],
            "no-rows": not self.measured,
            "all-types": any(row.type.startswith("f8") for run in self.runs for row in run.rows),
        }[circumstance]

    @property
    def socket_between_nodes(self) -> bool:
        """Whether TCP sockets carried data between nodes of a family that has something better."""
        if self.family is None:
            return False
        if SOCKET in self.transport.carriers:
            return True
        if not self.between_nodes or self.transport.mnnvl:
            return False
        named = self.transport.network
        return named == SOCKET if named is not None else any(_names_socket(run) for run in self.runs)

    @property
    def ran(self) -> str | None:
        """The transport that carried data, from the lines or, in a document without lines, from the runs."""
        return self.transport.ran(self.nodes) or next((run.transport for run in self.runs if run.transport), None)


def _names_socket(run: Run) -> bool:
    return SOCKET in (run.transport or "").split("+")


class Assertion(msgspec.Struct, frozen=True, kw_only=True):
    """A derived signature that holds: its id, the line that shows it, and what was found there."""

    id: str
    event: LogEvent | None = None
    detail: str = ""


def asserted(scene: Scene, events: Sequence[LogEvent]) -> tuple[Assertion, ...]:
    """Every derived signature that holds."""
    tests = (
        _wrong_data(scene),
        _socket(scene),
        _mnnvl_off(scene),
        _nics_unused(scene),
        _bindings(scene),
        _imex_links(events),
        _init_incomplete(scene),
    )
    return tuple(found for found in tests if found is not None)


def _wrong_data(scene: Scene) -> Assertion | None:
    for run in scene.runs:
        wrong, failed = run.wrong_total or 0, run.out_of_bounds or 0
        if (wrong or failed) and run.collective != SELF_FAILING:
            what = f"{wrong} wrong elements" if wrong else f"{failed} failed checks"
            return Assertion(id="wrong-data", detail=f"{what} in {run.collective or 'a run'} ({run.source})")
    return None


def _socket(scene: Scene) -> Assertion | None:
    if not scene.socket_between_nodes:
        return None
    return Assertion(id="socket-fallback", event=scene.transport.first_channel or scene.transport.first_network)


def _mnnvl_off(scene: Scene) -> Assertion | None:
    family, transport = scene.family, scene.transport
    if family is None or not family.node.mnnvl or not scene.between_nodes or transport.mnnvl is not False:
        return None
    if transport.settings.get("NCCL_MNNVL_ENABLE") == "0":  # somebody wanted to measure the NICs
        return None
    return Assertion(id="mnnvl-off", event=transport.first_off)


def _nics_unused(scene: Scene) -> Assertion | None:
    family, transport = scene.family, scene.transport
    ranks = scene.ranks or transport.ranks or 0
    complete = 0 < ranks <= _CHANNELS_COMPLETE and len(transport.completed) == ranks
    if family is None or not scene.between_nodes or not complete or SOCKET in transport.carriers:
        return None
    whole = scene.nodes is not None and ranks == scene.nodes * family.node.gpus
    used = len(transport.net_devices)
    if not whole or not used or used >= family.node.nics:
        return None
    return Assertion(
        id="nics-unused",
        event=transport.first_channel,
        detail=f"{used} of {family.node.nics} NICs: {', '.join(str(each) for each in transport.net_devices)}",
    )


def _bindings(scene: Scene) -> Assertion | None:
    settings = scene.transport.settings
    send, receive = (cores(settings.get(f"NCCL_GPUDIRECTTCPX_{way}_BINDINGS", "")) for way in ("TX", "RX"))
    for nic, own in send.items():
        both = own & receive.get(nic, frozenset())
        if both:
            shared = ", ".join(str(core) for core in sorted(both))
            return Assertion(
                id="tcpx-bindings", event=scene.transport.first_bindings, detail=f"{nic} shares cores {shared}"
            )
    return None


def cores(bindings: str) -> dict[str, frozenset[int]]:
    """CPU cores by NIC of a value such as ``eth1:8-21,112-125;eth2:…``; what cannot be read is left out."""
    found: dict[str, frozenset[int]] = {}
    for nic, ranges in _BINDING.findall(bindings):
        own: set[int] = set()
        for part in ranges.replace(" ", "").split(","):
            first, _, last = part.partition("-")
            if first.isdigit() and (last or first).isdigit() and int(last or first) < 4096:
                own.update(range(int(first), int(last or first) + 1))
        found[nic] = frozenset(own)
    return found


def _imex_links(events: Iterable[LogEvent]) -> Assertion | None:
    inside = False
    for event in events:
        if _MATRIX_HEAD in event.text:
            inside = True
        elif inside:
            row = _MATRIX_ROW.match(event.text)
            if row is None:
                inside = False
                continue
            bad = [(peer, state) for peer, state in enumerate(row[2].split()) if state != "C"]
            if bad:
                links = ", ".join(f"{row[1]} to {peer} is {state}" for peer, state in bad)
                return Assertion(id="imex-links", event=event, detail=links)
    return None


def _init_incomplete(scene: Scene) -> Assertion | None:
    transport = scene.transport
    late = sorted(set(transport.started) - set(transport.completed))
    absent = sorted(set(range(min(transport.ranks or 0, 4096))) - set(transport.started)) if transport.started else []
    if scene.measured or not late:
        return None
    shown = f"ranks {_some(late)} began and did not finish"
    return Assertion(id="init-incomplete", detail=f"{shown}; ranks {_some(absent)} never began" if absent else shown)


def _some(ranks: Sequence[int]) -> str:
    return ", ".join(str(rank) for rank in ranks[:8]) + (f" and {len(ranks) - 8} more" if len(ranks) > 8 else "")
