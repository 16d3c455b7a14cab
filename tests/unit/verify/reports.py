"""Reports for tests: of generated logs, and of pairs that a formula gives; the machines in them do not exist."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any

from interlace.fabric.family import find
from interlace.verify.events import LogEvent
from interlace.verify.judgement import judge
from interlace.verify.reader import read_text
from interlace.verify.report.content import Report
from interlace.verify.report.matrix import Matrix, decode

EVIL = "</script></svg><img/src=x/onerror=alert(1)>$\\frac{"
"""What a host may call itself: the end of any element, an element that runs, and mathematics that does not end."""
EXPECTED = {"inside": {"bound": 200.0, "pass": 160.0, "degraded": 130.0, "source": "8 NICs of 200 Gbit/s"}}


def of_lines(lines: Iterable[str], *, family: str | None = "a3-mega", matrix: Matrix | None = None) -> Report:
    """The report of one log."""
    events: list[LogEvent] = []
    runs = tuple(read_text("\n".join(lines) + "\n", events=events.append))
    judgement = judge(runs, events, family=find(family) if family is not None else None)
    return Report(judgement=judgement, matrix=matrix)


def pairs_document(
    *, nodes: int = 6, slow: str = "", cut: tuple[str, str] | None = None, names: str = "node-", **more: Any
) -> dict[str, Any]:
    """Two racks of nodes that reach 180 GB/s with each other; a slow node reaches 60 % of that with everybody."""
    made = [
        {"name": f"{names}{at:02d}", "rack": f"rack-{at * 2 // nodes}", "clique": f"cluster.{at * 2 // nodes}"}
        for at in range(nodes)
    ]
    pairs: list[dict[str, Any]] = []
    for a, b in combinations([each["name"] for each in made], 2):
        if cut == (a, b):
            pairs.append({"a": a, "b": b, "outcome": "failed", "note": "no answer"})
        else:
            pairs.append({"a": a, "b": b, "busbw": 108.0 if slow in (a, b) else 180.0})
    named = [{"kind": "node", "names": [slow], "text": f"node {slow} reaches 60 % of what it should"}] if slow else []
    return {"nodes": made, "pairs": pairs, "findings": named, "expected": EXPECTED, **more}


def matrix_of(document: dict[str, Any]) -> Matrix:
    """As it is read from a file."""
    import msgspec

    return decode(msgspec.json.encode(document))
