"""``docs/reliability.md``: the fault table with what was measured. Pure.

Invariant: a row without a good result shows no figure and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from bench.faults.row import Row
from bench.faults.runner import Result
from bench.faults.table import FAMILIES, ROWS
from bench.figures import NONE, table

PAGE: Final = Path(__file__).parents[2] / "docs" / "reliability.md"
HEAD: Final = ("fault", "when", "end state", "seconds to it", "what the user saw")
_INTRO: Final = """# Reliability

What fails, and what comes of it. Written by `python -m bench.faults report`; `make faults` plays every row again.

No row that has a figure ended in a state that needs a human; a row without one claims nothing yet. Where the fault
itself lasts until somebody ends it, the row says why, and a condition of the ComputeDomain says what to do.

*Real* rows run on real etcd, kube-apiserver, kube-scheduler and kube-controller-manager, with our components as
processes of their own. *Embedded* rows run on the embedded (simulated) API server, because the fault cannot be made on
a real one. Nodes, kubelets and `nvidia-imex` are simulated in both. After each row everything is deleted, and it fails
unless every node is free again, nothing is prepared, and no `nvidia-imex` and no node map is left.

Seconds are counted from the fault, or from its end where it lasts, to the end state. A dash means that the row has no
figure yet. On which machine a row was played stands in the table at the end.
"""


def page(results: Mapping[str, Result]) -> str:
    """The whole page."""
    known = {row.name for row in ROWS}
    measured = [result for name, result in results.items() if name in known and result.good]
    parts = [_INTRO, f"{len(ROWS)} rows, {len(measured)} of them with a figure.\n"]
    for title, rows in FAMILIES:
        parts += [f"## {title}\n", table(HEAD, (_cells(row, results.get(row.name)) for row in rows))]
    parts += ["## How each is made\n", table(("row", "bed", "how", "measured"), _making(results))]
    humans = [(row.fault, row.human) for row in ROWS if row.human]
    if humans:
        parts += ["## Faults that last until a human ends them\n", table(("fault", "why"), humans)]
    return "\n".join(parts)


def _cells(row: Row, result: Result | None) -> list[str]:
    if result is None or not result.good or result.seconds is None:
        return [row.fault, row.when, row.holds, NONE, NONE]
    lasted = f" (after {result.lasted:.0f} s of it)" if result.lasted is not None else ""
    return [row.fault, row.when, row.holds, f"{result.seconds:.1f}{lasted}", _saw(result)]


def _saw(result: Result) -> str:
    """Conditions in order, then events: reasons, each once."""
    conditions = _once(text.partition(":")[0] for text in result.conditions)
    events = _once(text.partition(":")[0].partition(" ")[2] for text in result.events)
    parts = []
    if conditions:
        parts.append("conditions " + ", ".join(f"`{text}`" for text in conditions))
    if events:
        parts.append("events " + ", ".join(f"`{text}`" for text in events))
    return "; ".join([*parts, *result.notes]).replace("|", "\\|") or "nothing"


def _once(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _making(results: Mapping[str, Result]) -> Iterable[list[str]]:
    for row in ROWS:
        result = results.get(row.name)
        when = f"{result.date[:10]}, {result.cores} cores, load {result.load:g}" if result and result.good else NONE
        yield [f"`{row.name}`", row.bed, row.made, when]
