"""The report as one HTML page that stands alone: no script, no network, no clock.

Invariant: the same report gives the same bytes; every word that a log or a file holds is escaped; the page's policy
(``Content-Security-Policy``) allows its own style and nothing else, so that even a mistake here could load nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from interlace import __version__
from interlace.verify.report import figures, heatmap
from interlace.verify.report.content import Report, groups
from interlace.verify.report.palette import SIGNS
from interlace.verify.report.picture import Picture
from interlace.verify.report.statement import SIMULATED, facts, measured, sections, wrong_data
from interlace.verify.report.style import style
from interlace.verify.report.text import html
from interlace.verify.report.topology import topology
from interlace.verify.run import Half, Run

MOST_GROUPS: Final = 24
"""Pairs of curves that are drawn; the others stand in the tables."""
MOST_LINES: Final = 2000
"""Rows of all runs that the page holds; ``--csv`` holds all."""
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(report: Report) -> str:
    """The whole document. Raises PlottingError where figures cannot be drawn."""
    title = html(f"{report.verdict}: {report.cause}", most=120)
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{html(_POLICY)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">',
        f"<title>{title}</title>",
        f"<style>{style()}</style></head><body><main>",
        *_head(report),
        *_curves(report),
        *_pairs(report),
        *_topology(report),
        *_words(report),
        *_rows(report),
        "</main><footer>",
        (
            "Bandwidths are bus bandwidths as nccl-tests prints them, in GB/s of 10^9 bytes; sizes of messages are"
            " binary (1 MiB = 1048576 bytes). Colours: Okabe and Ito for lines, cividis for the map of pairs."
            f" Written by interlace {html(__version__)}."
        ),
        "</footer></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _head(report: Report) -> Iterator[str]:
    verdict = report.verdict
    yield f'<header><h1><span class="verdict {verdict.replace(" ", "-")}">{SIGNS[verdict]} {verdict}</span>'
    yield f"{html(report.cause)}.</h1>"
    if report.simulated:
        yield f'<p class="label">{SIMULATED}</p>'
    if report.remedy:
        yield f'<p class="remedy">Remedy: {html(report.remedy)}</p>'
    yield "<dl>"
    yield from (f"<dt>{html(name)}</dt><dd>{html(value)}</dd>" for name, value in facts(report))
    yield "</dl></header>"
    head, rows = measured(report)
    if rows:
        yield "<section><h2>Expected and measured</h2>"
        yield _table(head, rows[:200], caption="Latency, the first size at half of the best bandwidth, and the peak")
        yield "</section>"


def _curves(report: Report) -> Iterator[str]:
    yield '<section id="curves"><h2>Curves</h2>'
    found = groups(report)
    if not found:
        yield '<p class="quiet">No run has a size to draw.</p>'
    for number, group in enumerate(found[:MOST_GROUPS], 1):
        yield f"<h3>{html(group.name)}</h3>"
        yield '<div class="beside">'
        yield _figure(figures.bandwidth(group, id=f"busbw-{number}"), kind="curve")
        yield _figure(figures.times(group, id=f"time-{number}"), kind="curve")
        yield "</div>"
    if len(found) > MOST_GROUPS:
        yield f'<p class="quiet">{len(found) - MOST_GROUPS} more collectives or numbers of ranks are not drawn.</p>'
    yield "</section>"


def _pairs(report: Report) -> Iterator[str]:
    yield '<section id="pairs"><h2>Pairs of nodes</h2>'
    matrix = report.matrix
    if matrix is None or not matrix.pairs:
        yield '<p class="quiet">No pairs were measured: see interlace verify pairs.</p>'
    elif len(matrix.nodes) > heatmap.MOST_NODES:
        yield (
            f'<p class="quiet">{len(matrix.nodes)} nodes are too many for a map (at most {heatmap.MOST_NODES});'
            " the pairs that reach least stand here, all of them in --csv.</p>"
        )
        head = ("node", "node", "GB/s", "share of bound", "stands")
        for rail in matrix.rails():
            yield _table(head, heatmap.table(matrix, rail=rail)[:100], caption=_rail(rail))
    else:
        for number, rail in enumerate(matrix.rails()):
            if len(matrix.rails()) > 1:
                yield f"<h3>{_rail(rail)}</h3>"
            yield _figure(heatmap.heatmap(matrix, rail=rail, id=f"pairs-{number}"), kind="heatmap")
    yield "</section>"


def _rail(rail: int | None) -> str:
    return "All rails together" if rail is None else f"Rail {rail}"


def _topology(report: Report) -> Iterator[str]:
    yield '<section id="topology"><h2>Racks and cliques</h2>'
    picture = topology(report, id="topology-0")
    if picture is None:
        yield '<p class="quiet">No node is known by name, or there are too many to draw.</p>'
    else:
        yield _figure(picture, kind="topology")
    yield "</section>"


def _words(report: Report) -> Iterator[str]:
    for each in sections(report):
        yield f"<section><h2>{html(each.title)}</h2><ul>"
        yield from (f"<li>{html(item)}</li>" for item in each.items)
        yield "</ul></section>"


def _rows(report: Report) -> Iterator[str]:
    """The rows as they were read, run by run."""
    left = MOST_LINES
    if report.assessments:
        yield '<section class="rows"><h2>Rows</h2>'
    for each in report.assessments:
        run = each.run
        shown = run.rows[: max(left, 0)]
        left -= len(run.rows)
        yield f"<details><summary>{html(each.name)}, {html(_source(run))}: {html(each.verdict)}</summary>"
        yield f"<p>Data: {html(wrong_data(run))}. Verdict of this run: {html(each.cause)}.</p>"
        head = ("bytes", "count", "type", "redop", "root",
                *(f"{name}, {place}" for place in ("out of place", "in place")
                  for name in ("us", "algbw", "busbw", "wrong")))  # fmt: skip
        yield _table(head, [_row(run, at) for at in range(len(shown))], caption="As printed, in us and GB/s")
        if len(shown) < len(run.rows):
            yield f"<p>{len(run.rows) - len(shown)} more rows are in --csv.</p>"
        yield "</details>"
    if report.assessments:
        yield "</section>"


def _source(run: Run) -> str:
    name = "stdin" if run.source == "-" else run.source
    return f"{name}:{run.line}" if run.line else name


def _row(run: Run, at: int) -> tuple[str, ...]:
    row = run.rows[at]
    first = (str(row.size), str(row.count), row.type, row.redop or "-", "-" if row.root is None else str(row.root))
    return (*first, *_half(row.oop), *_half(row.ip))


def _half(half: Half | None) -> tuple[str, ...]:
    if half is None:
        return ("-",) * 4
    wrong = "-" if half.wrong is None else str(half.wrong)
    return (f"{half.time_us:g}", f"{half.algbw:g}", f"{half.busbw:g}", wrong)


def _figure(picture: Picture, *, kind: str) -> str:
    more = f"<p>{picture.left_out} more rows are in --csv.</p>" if picture.left_out else ""
    return (
        f'<figure class="{kind}" id="{picture.id}"><div class="scroll">{picture.svg}</div>'
        f"<figcaption>{html(picture.title)}</figcaption>"
        f"<details><summary>Numbers of this figure</summary><p>{html(picture.description, most=5000)}</p>"
        f"{_table(picture.head, picture.rows, caption=picture.title)}{more}</details></figure>"
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str) -> str:
    first = "".join(f'<th scope="col">{html(each)}</th>' for each in head)
    body = "".join(f"<tr>{''.join(f'<td>{html(each)}</td>' for each in row)}</tr>" for row in rows)
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="{html(caption)}">'
        f"<table><caption>{html(caption)}</caption>"
        f"<thead><tr>{first}</tr></thead><tbody>{body}</tbody></table></div>"
    )
