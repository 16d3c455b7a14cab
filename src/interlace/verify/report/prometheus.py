"""The report as a text exposition of Prometheus, for the textfile collector of a node exporter or a push gateway.

Invariant: few series. Sizes are a fixed list, whatever the sweep was, and no name of a file or a Pod is a label; pairs
have one series each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, get_args

from interlace.verify.curve import MIB, PLACES, Curve, curve
from interlace.verify.report.content import Report, drawn
from interlace.verify.report.text import label
from interlace.verify.verdict import Verdict

SIZES: Final = (1 << 10, 64 << 10, MIB, 16 * MIB, 256 * MIB, 1 << 30, 8 << 30, 16 << 30)
"""Bytes; a size that a sweep lacks has no sample."""
_GB: Final = 1e9


def exposition(report: Report) -> str:
    """The text format, version 0.0.4. Of several runs of the same thing the last one counts."""
    return "".join(f"{line}\n" for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    yield from _head("interlace_verify_verdict", "1 for the verdict of the measurement, 0 for the others.")
    for verdict in get_args(Verdict):
        yield _sample("interlace_verify_verdict", int(verdict == report.verdict), verdict=verdict)
    yield from _head("interlace_verify_simulated", "1 if no hardware was measured.")
    yield _sample("interlace_verify_simulated", int(report.simulated))
    yield from _runs(report)
    yield from _pairs(report)


def _runs(report: Report) -> Iterator[str]:
    bandwidths: dict[str, str] = {}
    times: dict[str, str] = {}
    wrong: dict[str, str] = {}
    for each in report.assessments:
        run = each.run
        own = {"collective": run.collective or "unknown", "ranks": str(run.ranks or "unknown")}
        if run.wrong_total is not None:
            name = "interlace_verify_wrong_elements"
            wrong[str(own)] = _sample(name, run.wrong_total, **own)
        for place in PLACES:
            line = Curve(place=place, points=drawn(curve(run, place)))
            for size in SIZES:
                point = line.at(size)
                if point is not None:
                    labels = own | {"placement": place, "size_bytes": str(size)}
                    key = str(labels)
                    bandwidths[key] = _sample("interlace_verify_busbw_bytes_per_second", point.busbw * _GB, **labels)
                    times[key] = _sample("interlace_verify_time_seconds", point.time_us / 1e6, **labels)
    yield from _family("interlace_verify_busbw_bytes_per_second", "Bus bandwidth as nccl-tests counts it.", bandwidths)
    yield from _family("interlace_verify_time_seconds", "Time of one collective.", times)
    yield from _family("interlace_verify_wrong_elements", "Elements that arrived wrong.", wrong)


def _pairs(report: Report) -> Iterator[str]:
    if report.matrix is None:
        return
    samples: dict[str, str] = {}
    for pair in report.matrix.pairs:
        labels = {"src": pair.a, "dst": pair.b, "rail": "all" if pair.rail is None else str(pair.rail)}
        if pair.outcome == "measured" and pair.busbw is not None:
            samples[str(labels)] = _sample("interlace_verify_pair_busbw_bytes_per_second", pair.busbw * _GB, **labels)
    yield from _family("interlace_verify_pair_busbw_bytes_per_second", "Bus bandwidth of two nodes.", samples)
    name = "interlace_verify_findings"
    yield from _head(name, "Nodes, links and pairs that are named as bad.")
    for kind in ("node", "link", "pair", "uplink", "all"):
        yield _sample(name, sum(each.kind == kind for each in report.matrix.findings), kind=kind)


def _family(name: str, meaning: str, samples: dict[str, str]) -> Iterator[str]:
    if samples:
        yield from _head(name, meaning)
        yield from samples.values()


def _head(name: str, meaning: str) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} gauge"


def _sample(name: str, value: float, **labels: str) -> str:
    told = ",".join(f'{key}="{label(each)}"' for key, each in labels.items())
    return f"{name}{{{told}}} {value:.10g}" if told else f"{name} {value:.10g}"
