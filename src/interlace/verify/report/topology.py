"""The picture of racks and cliques: which nodes stand where, which share NVLink, and which are named as bad.

Pure. Invariant: a clique has a colour and a letter, a bad node a thick outline and a word: nothing is told by colour
alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from interlace.verify.report.content import Report
from interlace.verify.report.matrix import Finding, Node
from interlace.verify.report.palette import CLIQUES
from interlace.verify.report.picture import MOST_ROWS, Picture, wrap
from interlace.verify.report.text import html, short

MOST_NODES: Final = 1200
_WIDE, _HIGH, _GAP, _HEAD = 190, 24, 6, 26
_ACROSS: Final = 4
_TALL: Final = 18
"""Nodes of a rack one below the other; then a rack gets a second column."""
_NAME: Final = 20
_MARKS: Final = {"slow": "✕ slow", "fails": "✕ fails", "wrong data": "≠ data"}


class _Box(msgspec.Struct, frozen=True, kw_only=True):
    """A rack and where it is drawn."""

    title: str
    nodes: tuple[Node, ...]
    x: int
    y: int
    width: int
    height: int


def topology(report: Report, *, id: str) -> Picture | None:
    """Nodes by rack, with cliques and findings; None where no node is known by name."""
    nodes, findings = nodes_of(report), report.matrix.findings if report.matrix is not None else ()
    if not nodes or len(nodes) > MOST_NODES:
        return None
    cliques = {name: at for at, name in enumerate(sorted({node.clique for node in nodes if node.clique}))}
    boxes, width, height = _place(nodes)
    marks = {each.names[0]: _MARKS[each.fault] for each in findings if each.kind == "node" and each.names}
    centres: dict[str, tuple[int, int]] = {}
    shapes = [_rack(box, cliques, marks, centres) for box in boxes]
    links = [_link(each, centres) for each in findings if each.kind in {"link", "pair"}]
    legend, below = _legend(cliques, top=height)
    title = "Racks and cliques of the nodes"
    description = _describe(boxes, cliques, findings)
    rows = tuple(
        (
            node.name,
            node.rack or "not known",
            node.clique or "not known",
            f"{node.share:.0%}" if node.share is not None else "-",
            marks.get(node.name, ""),
        )
        for node in nodes
    )
    return Picture(
        id=id,
        title=title,
        description=description,
        svg=wrap(
            "".join([*shapes, *links, legend]),
            view=f"0 0 {width} {below}",
            id=id,
            title=title,
            description=description,
        ),
        head=("node", "rack", "clique", "share of typical", "named as bad"),
        rows=rows[:MOST_ROWS],
        left_out=max(0, len(rows) - MOST_ROWS),
    )


def nodes_of(report: Report) -> tuple[Node, ...]:
    """The nodes of the pairs, else the hosts that the largest run names."""
    if report.matrix is not None:
        return report.matrix.ordered()
    hosts = max((each.run.hosts for each in report.assessments), key=lambda each: len(set(each)), default=())
    return tuple(Node(name=name) for name in dict.fromkeys(hosts))


def _place(nodes: Sequence[Node]) -> tuple[list[_Box], int, int]:
    """Racks from left to right, as many in a row as are easily read; the size of all."""
    racks: dict[str, list[Node]] = {}
    for node in nodes:
        racks.setdefault(node.rack, []).append(node)
    boxes: list[_Box] = []
    x = y = tallest = width = 0
    for name, members in racks.items():
        columns = -(-len(members) // _TALL)
        wide = columns * (_WIDE + _GAP) + 3 * _GAP
        high = min(len(members), _TALL) * (_HIGH + _GAP) + _HEAD + 2 * _GAP
        if x and x + wide > _ACROSS * (_WIDE + 4 * _GAP):
            x, y, tallest = 0, y + tallest + 2 * _GAP, 0
        title = f"rack {name}" if name else "rack not known"
        boxes.append(_Box(title=title, nodes=tuple(members), x=x, y=y, width=wide, height=high))
        x, tallest = x + wide + 2 * _GAP, max(tallest, high)
        width = max(width, x - 2 * _GAP)
    return boxes, max(width, 2 * _WIDE), y + tallest


def _rack(box: _Box, cliques: dict[str, int], marks: dict[str, str], centres: dict[str, tuple[int, int]]) -> str:
    drawn = [
        (
            f'<rect x="{box.x + 1}" y="{box.y + 1}" width="{box.width - 2}" height="{box.height - 2}" rx="6"'
            ' fill="var(--panel)" stroke="var(--quiet)"/>'
            f'<text x="{box.x + 2 * _GAP}" y="{box.y + 19}" class="strong">{html(box.title, most=_NAME + 5)}</text>'
        )
    ]
    for at, node in enumerate(box.nodes):
        x = box.x + 2 * _GAP + at // _TALL * (_WIDE + _GAP)
        y = box.y + _HEAD + _GAP + at % _TALL * (_HIGH + _GAP)
        centres[node.name] = (x + _WIDE // 2, y + _HIGH // 2)
        drawn.append(_node(node, x=x, y=y, clique=cliques.get(node.clique), mark=marks.get(node.name, "")))
    return "".join(drawn)


def _node(node: Node, *, x: int, y: int, clique: int | None, mark: str) -> str:
    edge = 'stroke="var(--bad)" stroke-width="3"' if mark else 'stroke="var(--quiet)"'
    told = f"{node.name}, rack {node.rack or 'not known'}, clique {node.clique or 'not known'}"
    shown = short(node.name, most=_NAME - (8 if mark else 0))
    parts = [
        f"<g><title>{html(told)}{f', {mark}' if mark else ''}</title>",
        f'<rect x="{x}" y="{y}" width="{_WIDE}" height="{_HIGH}" rx="3" fill="var(--page)" {edge}/>',
    ]
    if clique is not None:
        colour = CLIQUES[clique % len(CLIQUES)]
        parts.append(f'<rect x="{x + 2}" y="{y + 2}" width="7" height="{_HIGH - 4}" fill="var(--{colour})"/>')
        parts.append(f'<text x="{x + 14}" y="{y + 16}" class="small">{_letter(clique)}</text>')
    parts.append(f'<text x="{x + 34}" y="{y + 16}">{html(shown)}</text>')
    if mark:
        parts.append(f'<text x="{x + _WIDE - 6}" y="{y + 16}" class="mark">{mark}</text>')
    return "".join([*parts, "</g>"])


def _link(finding: Finding, centres: dict[str, tuple[int, int]]) -> str:
    ends = [centres[name] for name in finding.names if name in centres]
    if len(ends) != 2:
        return ""
    (x1, y1), (x2, y2) = sorted(ends)
    x1 += _WIDE // 2  # from the right side of the left one to the near side of the other
    x2 += _WIDE // 2 if x2 + _WIDE // 2 == x1 else -_WIDE // 2
    bend = x1 + 16 if x1 == x2 else (x1 + x2) // 2
    return (
        f'<path d="M{x1} {y1} C{bend} {y1} {bend} {y2} {x2} {y2}" fill="none" stroke="var(--bad)" stroke-width="2.5"'
        f' stroke-dasharray="6 3"><title>{html(finding.text)}</title></path>'
    )


def _legend(cliques: dict[str, int], *, top: int) -> tuple[str, int]:
    drawn = []
    for at, (name, number) in enumerate(cliques.items()):
        y = top + 12 + at * 20
        colour = CLIQUES[number % len(CLIQUES)]
        drawn.append(f'<rect x="4" y="{y}" width="7" height="14" fill="var(--{colour})"/>')
        drawn.append(f'<text x="18" y="{y + 12}">{_letter(number)}: clique {html(name, most=60)}</text>')
    return "".join(drawn), top + 12 + len(cliques) * 20


def _letter(number: int) -> str:
    """A to Z, then AA, AB …"""
    return (_letter(number // 26 - 1) if number >= 26 else "") + chr(ord("A") + number % 26)


def _describe(boxes: Sequence[_Box], cliques: dict[str, int], findings: Sequence[Finding]) -> str:
    known = [box for box in boxes if box.nodes[0].rack]
    count = sum(len(box.nodes) for box in boxes)
    told = [f"{count} nodes in {len(known)} racks." if known else f"{count} nodes; nobody said in which racks."]
    told += [f"{box.title}: {len(box.nodes)} nodes." for box in known[:64]]
    told.append(f"{len(cliques)} cliques." if cliques else "No clique is known.")
    told += [f"{each.text}." for each in findings]
    return " ".join(told)
