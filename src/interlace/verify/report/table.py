"""Every number of a report: as CSV for spreadsheets, and as one JSON document for programs.

Invariant: nothing is left out for its length; no cell begins as a formula does.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any, Final

from interlace.verify import statement
from interlace.verify.report.content import Report
from interlace.verify.report.text import cell
from interlace.verify.run import document as run_document

SCHEMA: Final = "interlace.dev/verify-report/v1"
HEAD: Final = (
    "kind", "source", "line", "collective", "ranks", "size_bytes", "count", "type", "redop", "root", "placement",
    "a", "b", "rail", "time_us", "algbw_gb_s", "busbw_gb_s", "wrong", "outcome",
)  # fmt: skip


def csv_text(report: Report) -> str:
    """Rows of all runs, one line a placement, then all pairs."""
    out = io.StringIO()
    writer = csv.DictWriter(out, HEAD, restval="", lineterminator="\n")
    writer.writeheader()
    for line in _lines(report):
        # Numbers are ours; only words can be a formula.
        writer.writerow({key: cell(each) if isinstance(each, str) else each for key, each in line.items()})
    return out.getvalue()


def document(report: Report) -> dict[str, Any]:
    """The documented JSON (docs/reports.md): the answer, then what ``verify judge`` and ``verify parse`` print."""
    judgement, matrix = report.judgement, report.matrix
    return {
        "schema": SCHEMA,
        "verdict": report.verdict,
        "cause": report.cause,
        "remedy": report.remedy,
        "simulated": report.simulated,
        "judgement": statement.document(judgement) if judgement is not None else None,
        "runs": [run_document(each.run) for each in report.assessments],
        "pairs": matrix,
    }


def _lines(report: Report) -> Iterator[dict[str, str | int | float | None]]:
    for each in report.assessments:
        run = each.run
        for row in run.rows:
            for place, half in row.halves():
                yield {
                    "kind": "row",
                    "source": "stdin" if run.source == "-" else run.source,
                    "line": row.line or None,
                    "collective": run.collective,
                    "ranks": run.ranks,
                    "size_bytes": row.size,
                    "count": row.count,
                    "type": row.type,
                    "redop": row.redop,
                    "root": row.root,
                    "placement": place,
                    "time_us": half.time_us,
                    "algbw_gb_s": half.algbw,
                    "busbw_gb_s": half.busbw,
                    "wrong": half.wrong,
                }
    for pair in report.matrix.pairs if report.matrix is not None else ():
        yield {
            "kind": "pair",
            "a": pair.a,
            "b": pair.b,
            "rail": pair.rail,
            "busbw_gb_s": pair.busbw,
            "outcome": pair.outcome,
        }
