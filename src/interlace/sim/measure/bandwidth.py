"""How fast simulated nodes are together: a family's healthy bandwidth, made worse by faults and noise.

Pure; the same question has the same answer. Nothing here was measured: the shapes follow published runs, the faults
do what their names say. Invariant: only faults make a measurement worse than the family's pass band; noise alone
seldom does.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from interlace.fabric import bands
from interlace.fabric.bands import Scope
from interlace.fabric.family import Family

SOCKET_GB_S: Final = 4.0
"""What TCP sockets of the Pod network carry, as published for these machines without their plugin."""
_HEALTHY: Final = {"tcpx": 0.71, "tcpxo": 0.92, "rdma": 0.84, "nvlink": 0.93}
"""Share of the bound that published healthy runs reach."""
_NVLINK_GB_S: Final = 900.0
_FLOOR_PART: Final = 0.4
"""Of the family's latency floor."""
_DEFAULT_FLOOR_MS: Final = 0.2


class Faults(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong; nodes by name."""

    slow_nodes: Mapping[str, float] = {}
    """Share of its bandwidth that a node has left."""
    slow_links: Mapping[tuple[str, str], float] = {}
    """The same between two nodes, in either order."""
    slow_rails: Mapping[tuple[str, int], float] = {}
    """The same of one NIC of a node."""
    sockets: frozenset[str] = frozenset()
    """Nodes whose NCCL found no plugin: it falls back to sockets."""
    missing_nics: Mapping[str, int] = {}
    """How many NICs a node lacks."""
    wrong_data: frozenset[str] = frozenset()
    """Nodes that deliver wrong elements."""
    broken: frozenset[str] = frozenset()
    """Nodes on which the SSH server does not start."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement: who, what, and the how many-th time."""

    nodes: tuple[str, ...]
    collective: str = "all_gather"
    least: int = 1 << 20
    most: int = 8 << 30
    rail: int | None = None
    """One GPU and one NIC a node; None: all."""
    attempt: int = 0


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """Two halves of a size, unrounded: microseconds."""

    size: int
    times: tuple[float, float]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a run over these nodes would have shown."""

    rows: tuple[Row, ...]
    ranks: int
    network: str
    """As NCCL names it; empty: NVLink carried everything."""
    nics: tuple[int, ...]
    """Indexes of the NICs that carried data."""
    wrong: int = 0
    """Elements of each row that were wrong."""
    broken: str = ""
    """The node that kept the test from starting."""


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A fabric."""

    family: Family
    faults: Faults = Faults()
    noise: float = 0.02
    """Standard deviation of ln(time) of one run; its tails are heavy."""
    seed: int = 0

    def answer(self, question: Question) -> Answer:
        """Rows at powers of two, or that the test did not start."""
        family, faults, nodes = self.family, self.faults, question.nodes
        each = 1 if question.rail is not None else family.node.gpus
        broken = next((node for node in nodes if node in faults.broken), "")
        over_nvlink = family.node.mnnvl and len(nodes) <= family.node.domain_nodes
        network = "" if over_nvlink else family.node.nccl_network or "IB"
        if any(node in faults.sockets for node in nodes) and len(nodes) > 1:
            network = "Socket"
        ranks = each * len(nodes)
        peak = self._peak(question, network=network)
        factor = 1.0 if network == "Socket" else _ring(nodes, faults, rail=question.rail, nics=family.node.nics)
        dice = random.Random(f"{self.seed} {question}")
        run = math.exp(self.noise * _heavy(dice))
        floor = self._floor_us(over_nvlink=over_nvlink) * (4 if network == "Socket" else 1)
        rows = []
        for size in _sizes(question.least, question.most):
            moved = size * carried(question.collective, ranks) / (peak * factor * 1e3)
            halves = [(floor + moved) * run * math.exp(0.004 * dice.gauss(0, 1)) for _ in range(2)]
            rows.append(Row(size=size, times=(halves[0], halves[1])))
        left = max(0, family.node.nics - max((faults.missing_nics.get(node, 0) for node in nodes), default=0))
        nics = (question.rail % family.node.nics,) if question.rail is not None else tuple(range(left))
        return Answer(
            rows=() if broken else tuple(rows),
            ranks=ranks,
            network=network,
            nics=(0,) if network == "Socket" else nics,
            wrong=dice.randrange(1, 4096) if faults.wrong_data & set(nodes) else 0,
            broken=broken,
        )

    def _peak(self, question: Question, *, network: str) -> float:
        """Bus bandwidth in GB/s that healthy nodes approach."""
        if network == "Socket":
            return SOCKET_GB_S
        scope: Scope = "nodes" if network else "nvlink"
        band = bands.band(self.family.id, scope=scope, collective=question.collective)
        line = _NVLINK_GB_S if not network else self.family.node.nics * self.family.node.nic_gbps / 8
        share = _HEALTHY["nvlink" if not network else self.family.node.transport]
        peak = share * (band.bound_gb_s if band is not None else line)
        if question.rail is None or not network:
            return peak
        return peak / self.family.node.nics

    def _floor_us(self, *, over_nvlink: bool) -> float:
        row = bands.floor(self.family.id, scope="nvlink" if over_nvlink else "nodes")
        return 1e3 * _FLOOR_PART * (row.most_ms if row is not None else _DEFAULT_FLOOR_MS)


def _ring(nodes: Sequence[str], faults: Faults, *, rail: int | None, nics: int) -> float:
    """Share that the slowest part of a ring through the nodes leaves."""
    parts = [1.0]
    for node in nodes:
        own = faults.slow_nodes.get(node, 1.0)
        own *= max(0.0, 1 - faults.missing_nics.get(node, 0) / nics) if rail is None else 1.0
        rails = [share for (name, index), share in faults.slow_rails.items() if name == node and rail in (None, index)]
        parts.append(max(own * min(rails, default=1.0), 1e-3))
    parts += [
        faults.slow_links.get((one, other), faults.slow_links.get((other, one), 1.0)) for one, other in _edges(nodes)
    ]
    return min(parts)


def _edges(nodes: Sequence[str]) -> Iterable[tuple[str, str]]:
    return zip(nodes, [*nodes[1:], *nodes[:1]], strict=True) if len(nodes) > 1 else ()


def carried(collective: str, ranks: int) -> float:
    """Bus bandwidth over algbw."""
    if collective == "all_reduce":
        return 2 * (ranks - 1) / ranks
    if collective in {"broadcast", "reduce", "sendrecv"}:
        return 1.0
    return (ranks - 1) / ranks


def _sizes(least: int, most: int) -> Iterable[int]:
    size = least
    while size <= most:
        yield size
        size *= 2


def _heavy(dice: random.Random) -> float:
    """Student's t with three degrees of freedom, scaled to a standard deviation of 1."""
    return dice.gauss(0, 1) / math.sqrt(sum(dice.gauss(0, 1) ** 2 for _ in range(3)))
