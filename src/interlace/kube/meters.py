"""Counters, gauges and histograms in memory, and their text for Prometheus.

Invariant: a name is registered once; a registry is handed in, there is no global one; what is counted
from a cache is counted at each scrape. The reference library takes 1.6 MB of each process, most of it
for servers that nobody starts; tests read our text with its parser.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Generic, NamedTuple, TypeVar


class Sample(NamedTuple):
    """One line of the text."""

    name: str
    labels: dict[str, str]
    value: float


class Family(NamedTuple):
    """All samples of one metric; ``kind`` is counter, gauge or histogram."""

    name: str
    kind: str
    help: str
    samples: list[Sample]


class Count:
    """Grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1) -> None:
        self.value += amount

    def samples(self, name: str, labels: dict[str, str]) -> list[Sample]:
        return [Sample(name, labels, self.value)]


class Level:
    """Goes up and down."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def set(self, value: float) -> None:
        self.value = value

    def inc(self) -> None:
        self.value += 1

    def dec(self) -> None:
        self.value -= 1

    def samples(self, name: str, labels: dict[str, str]) -> list[Sample]:
        return [Sample(name, labels, self.value)]


class Spread:
    """How many observations were at most as large as each bound."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = (*sorted(bounds), math.inf)
        self._counts = [0] * len(self._bounds)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def samples(self, name: str, labels: dict[str, str]) -> list[Sample]:
        below = list(accumulate(self._counts))
        buckets = zip(self._bounds, below, strict=True)
        return [
            *(Sample(f"{name}_bucket", {**labels, "le": _number(bound)}, count) for bound, count in buckets),
            Sample(f"{name}_count", labels, below[-1]),
            Sample(f"{name}_sum", labels, self._sum),
        ]


class Registry:
    """The metrics of one process."""

    def __init__(self) -> None:
        self._sources: dict[str, Callable[[], Family]] = {}

    def add(self, name: str, source: Callable[[], Family]) -> None:
        """``source`` is called at each scrape. Raises ``ValueError`` if the name is taken."""
        if name in self._sources:
            raise ValueError(f"metric {name} is registered already; share the object that has it")
        self._sources[name] = source

    def families(self) -> list[Family]:
        """All as they are now."""
        return [source() for source in self._sources.values()]

    def render(self) -> str:
        """The text of /metrics."""
        return render(self.families())

    def value(self, name: str, /, **labels: str) -> float | None:
        """One sample; None if there is none."""
        samples = (sample for family in self.families() for sample in family.samples)
        return next((found.value for found in samples if (found.name, found.labels) == (name, labels)), None)


_Cell = TypeVar("_Cell", Count, Level, Spread)


class Metric(Generic[_Cell]):
    """One cell for each combination of label values; made by ``counter``, ``gauge`` and ``histogram``."""

    def __init__(
        self, name: str, text: str, labels: Sequence[str], *, kind: str, make: Callable[[], _Cell], registry: Registry
    ) -> None:
        self._name, self._text, self._kind, self._names = name, text, kind, tuple(labels)
        self._make: Callable[[], _Cell] = make
        self._cells: dict[tuple[str, ...], _Cell] = {}
        registry.add(name, self._family)

    def labels(self, *values: str) -> _Cell:
        """The cell of these values, in the order of the labels' names; it appears in the text from now on."""
        if len(values) != len(self._names):
            raise ValueError(f"metric {self._name} has the labels {', '.join(self._names)}, not {len(values)} of them")
        cell = self._cells.get(values)
        if cell is None:
            cell = self._cells[values] = self._make()
        return cell

    def _family(self) -> Family:
        samples: list[Sample] = []
        for values, cell in self._cells.items():
            samples += cell.samples(self._name, dict(zip(self._names, values, strict=True)))
        return Family(self._name, self._kind, self._text, samples)


def counter(name: str, text: str, labels: Sequence[str] = (), *, registry: Registry) -> Metric[Count]:
    """``name`` without ``_total``, which is added."""
    return Metric(f"{name}_total", text, labels, kind="counter", make=Count, registry=registry)


def gauge(name: str, text: str, labels: Sequence[str] = (), *, registry: Registry) -> Metric[Level]:
    """A value of now."""
    return Metric(name, text, labels, kind="gauge", make=Level, registry=registry)


def histogram(
    name: str, text: str, labels: Sequence[str] = (), *, buckets: Sequence[float], registry: Registry
) -> Metric[Spread]:
    """``buckets``: upper bounds; infinity is added."""
    return Metric(name, text, labels, kind="histogram", make=lambda: Spread(buckets), registry=registry)


def render(families: Iterable[Family]) -> str:
    """Prometheus' text format, version 0.0.4."""
    lines: list[str] = []
    for name, kind, text, samples in families:
        lines += [f"# HELP {name} {_escape(text)}", f"# TYPE {name} {kind}"]
        for sample in samples:
            inner = ",".join(f'{key}="{_quote(word)}"' for key, word in sample.labels.items())
            lines.append(f"{sample.name}{f'{{{inner}}}' if inner else ''} {_number(sample.value)}")
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return "NaN" if math.isnan(value) else repr(float(value))


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _quote(text: str) -> str:
    return _escape(text).replace('"', r"\"")
