"""Which way the data took: what NCCL's own INFO lines assert about a run.

The worst failures are silent (sockets instead of the fabric, NVLink across nodes off), so nothing here is concluded
from the absence of an error: every field is what a line said, or None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from interlace.verify.events import LogEvent

SOCKET: Final = "Socket"
MNNVL: Final = "MNNVL"

_NETWORK = re.compile(r"Using network (\S+)")
_CHANNEL = re.compile(
    r"(?:Channel|Ring) \d+(?:/\d+)? ?: (\d+)\[[^\]]*\] -> (\d+)\[[^\]]*\](?: \[(?:send|receive)\])? via (\S+)"
)
_COMM = re.compile(r"rank (\d+) nRanks (\d+) nNodes (\d+) localRanks (\d+) localRank \d+ MNNVL (\d)")
_INIT = re.compile(r"comm (0x[0-9a-f]+) rank (\d+) n[rR]anks (\d+).* - Init (START|COMPLETE)")
_NVLS = re.compile(r"\b(\d+) nvls channels")
_VERSION = re.compile(r"NCCL version (\d+)\.(\d+)\.(\d+)")
_SET = re.compile(r"(NCCL_\w+) set by environment to (\S.*?)\.?$")
_NET = re.compile(r"NET/([^/\s]+)(?:/(\d+))?")


class Transport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that INFO lines said; empty where there were none."""

    networks: tuple[str, ...] = ()
    """Names behind ``Using network``, each once, the most frequent first."""
    carriers: tuple[str, ...] = ()
    """Networks of the channel lines (``via NET/X/…``): what really carried data between nodes."""
    net_devices: tuple[int, ...] = ()
    """Numbers of the NICs in the channel lines."""
    direct: bool | None = None
    """Whether all channels over a NIC reached GPU memory directly (``/GDRDMA``); None without such lines."""
    local: tuple[str, ...] = ()
    """How GPUs of a node or of an NVLink domain were joined: ``P2P``, ``SHM``, ``MNNVL``."""
    ranks: int | None = None
    nodes: int | None = None
    local_ranks: int | None = None
    mnnvl: bool | None = None
    """Whether NVLink across nodes was on for every rank that said so."""
    multicast: int | None = None
    """Channels of NVLink SHARP (``nvls channels``)."""
    started: tuple[int, ...] = ()
    completed: tuple[int, ...] = ()
    """Ranks that began, and that finished, the start of their communicator."""
    version: tuple[int, int, int] | None = None
    """Of NCCL."""
    settings: Mapping[str, str] = {}
    """NCCL variables that the log says were set."""
    first_network: LogEvent | None = None
    first_comm: LogEvent | None = None
    first_off: LogEvent | None = None
    """First line that says ``MNNVL 0``."""
    first_channel: LogEvent | None = None
    first_bindings: LogEvent | None = None

    @property
    def network(self) -> str | None:
        """What carried, or was to carry, data between nodes."""
        return self.carriers[0] if self.carriers else self.networks[0] if self.networks else None

    def ran(self, nodes: int | None) -> str | None:
        """The transport in a word that people use: ``NVLink``, ``FasTrak``, ``GPUDirectTCPX``, ``IB``, ``Socket`` …

        None where no line tells. On one node the network that NCCL names is not used.
        """
        if self.carriers:
            return self.carriers[0]
        if MNNVL in self.local or (self.mnnvl and (nodes or self.nodes or 1) > 1):
            return "NVLink"
        if (nodes or self.nodes) == 1:
            return {"P2P": "NVLink or PCIe inside the node", "SHM": "shared memory"}.get((*self.local, "")[0])
        return self.network


class _Watch:
    """Collects while the lines pass."""

    def __init__(self) -> None:
        self.networks: dict[str, int] = {}
        self.carriers: dict[str, int] = {}
        self.devices: set[int] = set()
        self.direct: list[bool] = []
        self.local: dict[str, int] = {}
        self.facts: dict[str, Any] = {}
        self.started: set[tuple[str, int]] = set()
        self.completed: set[tuple[str, int]] = set()
        self.settings: dict[str, str] = {}

    def network(self, event: LogEvent, found: re.Match[str]) -> None:
        name = network_name(found[1])
        self.networks[name] = self.networks.get(name, 0) + 1
        self.facts.setdefault("first_network", event)

    def channel(self, event: LogEvent, found: re.Match[str]) -> None:
        via = found[3]
        if net := _NET.match(via):
            name = network_name(net[1])
            self.carriers[name] = self.carriers.get(name, 0) + 1
            if net[2]:
                self.devices.add(int(net[2]))
            self.direct.append("GDRDMA" in via or "GDR" in via.split("/")[3:])
            self.facts.setdefault("first_channel", event)
        else:
            kind = MNNVL if MNNVL in via else via.split("/")[0]
            self.local[kind] = self.local.get(kind, 0) + 1

    def comm(self, event: LogEvent, found: re.Match[str]) -> None:
        self.facts["ranks"] = max(self.facts.get("ranks", 0), int(found[2]))
        self.facts["nodes"] = max(self.facts.get("nodes", 0), int(found[3]))
        self.facts["local_ranks"] = max(self.facts.get("local_ranks", 0), int(found[4]))
        on = found[5] == "1"
        self.facts["mnnvl"] = on and self.facts.get("mnnvl", True)
        self.facts.setdefault("first_comm", event)
        if not on:
            self.facts.setdefault("first_off", event)

    def init(self, _: LogEvent, found: re.Match[str]) -> None:
        # Pids and addresses of communicators repeat between nodes; a rank of a size does not.
        (self.started if found[4] == "START" else self.completed).add((found[3], int(found[2])))
        self.facts["ranks"] = max(self.facts.get("ranks", 0), int(found[3]))

    def multicast(self, _: LogEvent, found: re.Match[str]) -> None:
        self.facts["multicast"] = max(self.facts.get("multicast", 0), int(found[1]))

    def version(self, _: LogEvent, found: re.Match[str]) -> None:
        self.facts.setdefault("version", (int(found[1]), int(found[2]), int(found[3])))

    def setting(self, event: LogEvent, found: re.Match[str]) -> None:
        self.settings.setdefault(found[1], found[2].strip())
        if found[1].endswith("X_BINDINGS"):
            self.facts.setdefault("first_bindings", event)

    def result(self) -> Transport:
        size = max((int(size) for size, _ in self.started | self.completed), default=0)
        return Transport(
            networks=_by_count(self.networks),
            carriers=_by_count(self.carriers),
            net_devices=tuple(sorted(self.devices)),
            direct=all(self.direct) if self.direct else None,
            local=_by_count(self.local),
            started=tuple(sorted(rank for of, rank in self.started if int(of) == size)),
            completed=tuple(sorted(rank for of, rank in self.completed if int(of) == size)),
            settings=self.settings,
            **self.facts,
        )


_RULES: Final[tuple[tuple[str, re.Pattern[str], Callable[[_Watch, LogEvent, re.Match[str]], None]], ...]] = (
    (" via ", _CHANNEL, _Watch.channel),
    ("Using network ", _NETWORK, _Watch.network),
    (" MNNVL ", _COMM, _Watch.comm),
    (" - Init ", _INIT, _Watch.init),
    (" nvls channels", _NVLS, _Watch.multicast),
    ("NCCL version ", _VERSION, _Watch.version),
    (" set by environment to ", _SET, _Watch.setting),
)
"""Words that a line must have before its pattern is tried, the pattern, and what it means."""


def observe(events: Iterable[LogEvent]) -> Transport:
    """What these events say about the way the data took."""
    watch = _Watch()
    for event in events:
        for words, pattern, take in _RULES:
            if words in event.text and (found := pattern.search(event.text)) is not None:
                take(watch, event, found)
                break
    return watch.result()


def network_name(name: str) -> str:
    """A network's name without its version: ``GPUDirectTCPX_v7`` is ``GPUDirectTCPX``."""
    return re.sub(r"_v\d+$", "", name.rstrip(".,:"))


def _by_count(counts: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(sorted(counts, key=lambda name: (-counts[name], name)))
