"""The report as Markdown, for an issue, a chat or the summary of a CI job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from interlace.verify.report.content import Report
from interlace.verify.report.heatmap import table
from interlace.verify.report.palette import SIGNS
from interlace.verify.report.statement import SIMULATED, facts, measured, sections
from interlace.verify.report.text import markdown as escape

_MOST_ROWS: Final = 60
_MOST_PAIRS: Final = 20


def markdown(report: Report) -> str:
    """The document; every word of a log is escaped, and names nobody."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"## {SIGNS[report.verdict]} {report.verdict}: {escape(report.cause)}"
    if report.simulated:
        yield ""
        yield f"**{SIMULATED}**"
    if report.remedy:
        yield ""
        yield f"**Remedy:** {escape(report.remedy)}"
    yield ""
    yield from (f"* {escape(name)}: {escape(value)}" for name, value in facts(report))
    head, rows = measured(report)
    if rows:
        yield ""
        yield from _table(head, rows, most=_MOST_ROWS)
    matrix = report.matrix
    for rail in matrix.rails() if matrix is not None else ():
        yield ""
        yield f"### Slowest pairs{'' if rail is None else f' on rail {rail}'}"
        yield ""
        found = table(matrix, rail=rail) if matrix is not None else ()
        yield from _table(("node", "node", "GB/s", "share of bound", "stands"), found, most=_MOST_PAIRS)
    for each in sections(report):
        yield ""
        yield f"### {each.title}"
        yield ""
        yield from (f"* {escape(item)}" for item in each.items)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], *, most: int) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows[:most]:
        yield f"| {' | '.join(escape(each) for each in row)} |"
    if len(rows) > most:
        yield ""
        yield f"{len(rows) - most} more rows are left out."
