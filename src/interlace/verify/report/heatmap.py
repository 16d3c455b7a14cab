"""The map of node pairs: one cell a pair, coloured by where its bandwidth stands in the band.

Invariant: the scale is fixed to what pairs should reach, never to what they reached, so that noise does not look like
a fault; a pair that was not measured, that failed and that is slow look different without any colour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from interlace.verify.report.matrix import Finding, Matrix, Node, Pair
from interlace.verify.report.palette import HEAT, ink_on, stand_in
from interlace.verify.report.picture import MOST_ROWS, Picture, element
from interlace.verify.report.plotting import figure, svg_of
from interlace.verify.report.text import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NODES: Final = 96
"""A larger map is no picture that anybody reads."""
_VALUES_UP_TO: Final = 24
_NAME: Final = 28
_NOT_RUN: Final = len(HEAT)
_SIGNS: Final = {"failed": "✕", "wrong data": "≠"}


def heatmap(matrix: Matrix, *, rail: int | None, id: str) -> Picture:
    """The pairs of one rail (None: of all together). Raises PlottingError; at most ``MOST_NODES`` nodes."""
    nodes = matrix.ordered()
    pairs = {(pair.a, pair.b): pair for pair in matrix.pairs if pair.rail == rail}
    pairs |= {(pair.b, pair.a): pair for pair in pairs.values()}
    steps = [[_step(matrix, pairs.get((row.name, column.name))) for column in nodes] for row in nodes]
    on = "" if rail is None else f" on rail {rail}"
    title = f"Bandwidth of each pair of nodes{on}"
    description = _describe(matrix, rail=rail)
    side = min(9.0, max(2.6, 0.45 * len(nodes)))
    with figure(width=side, height=side) as canvas:
        axes = canvas.subplots()
        _draw_cells(axes, steps)
        _write_values(axes, nodes, pairs, matrix)
        _draw_borders(axes, nodes)
        _outline(axes, nodes, [each for each in matrix.findings if each.rail in {None, rail}])
        _write_shares(axes, nodes)
        _name_nodes(axes, nodes)
        _legend(axes, matrix, steps, rail=rail)
        svg = svg_of(canvas)
    titles = [_told(row, column, pairs.get((row.name, column.name))) for row in nodes for column in nodes]
    rows = table(matrix, rail=rail)
    return Picture(
        id=id,
        title=title,
        description=description,
        svg=element(svg, id=id, title=title, description=description, titles=titles),
        head=("node", "node", "GB/s", "share of bound", "stands"),
        rows=rows[:MOST_ROWS],
        left_out=max(0, len(rows) - MOST_ROWS),
    )


def table(matrix: Matrix, *, rail: int | None) -> tuple[tuple[str, ...], ...]:
    """The pairs of a rail, those that gave nothing first, then the slowest first."""
    found = [pair for pair in matrix.pairs if pair.rail == rail]
    found.sort(key=lambda pair: (_share(matrix, pair) if pair.outcome == "measured" else -1.0, pair.a, pair.b))
    return tuple(
        (
            pair.a,
            pair.b,
            f"{pair.busbw:.4g}" if pair.busbw is not None and pair.outcome == "measured" else "-",
            f"{_share(matrix, pair):.0%}" if pair.outcome == "measured" else "-",
            _stands(matrix, pair),
        )
        for pair in found
    )


def _share(matrix: Matrix, pair: Pair) -> float:
    expected = matrix.expectation(pair.level)
    return (pair.busbw or 0.0) / expected.bound if expected is not None else 0.0


def _stands(matrix: Matrix, pair: Pair) -> str:
    if pair.outcome != "measured":
        return f"{pair.outcome}: {pair.note}" if pair.note else pair.outcome
    expected = matrix.expectation(pair.level)
    if expected is None or pair.busbw is None:
        return "unknown"
    if pair.busbw >= expected.passes:
        return "pass"
    return "degraded" if pair.busbw >= expected.degraded else "fail"


def _step(matrix: Matrix, pair: Pair | None) -> int:
    """Index into the scale; ``_NOT_RUN`` where nothing was measured."""
    if pair is None or pair.outcome != "measured" or pair.busbw is None:
        return _NOT_RUN
    expected = matrix.expectation(pair.level)
    if expected is None:
        return _NOT_RUN
    edges = (
        expected.degraded / 2,
        expected.degraded,
        expected.passes,
        (expected.passes + expected.bound) / 2,
    )
    return sum(pair.busbw >= edge for edge in edges)


def _draw_cells(axes: Axes, steps: list[list[int]]) -> None:
    from matplotlib.colors import ListedColormap  # noqa: PLC0415

    colours = ListedColormap([*HEAT, stand_in("none")])
    mesh = axes.pcolormesh(
        steps, cmap=colours, vmin=0, vmax=len(HEAT), edgecolors=stand_in("page"), linewidth=0.5, antialiased=True
    )
    mesh.set_gid("cells")
    axes.set_aspect("equal")
    axes.invert_yaxis()
    for spine in axes.spines.values():
        spine.set_visible(False)


def _write_values(axes: Axes, nodes: tuple[Node, ...], pairs: dict[tuple[str, str], Pair], matrix: Matrix) -> None:
    small = len(nodes) <= _VALUES_UP_TO
    size = 7.5 if len(nodes) <= 16 else 6.0
    for y, row in enumerate(nodes):
        for x, column in enumerate(nodes):
            pair = pairs.get((row.name, column.name))
            if pair is None:
                continue
            step = _step(matrix, pair)
            colour = stand_in("ink") if step == _NOT_RUN else ink_on(HEAT[step])
            text = _SIGNS.get(pair.outcome, f"{pair.busbw:.3g}" if small and pair.busbw is not None else "")
            if text:
                axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=size, color=colour)


def _draw_borders(axes: Axes, nodes: tuple[Node, ...]) -> None:
    """Thick rules where a rack or a clique ends."""
    for at in range(1, len(nodes)):
        before, after = nodes[at - 1], nodes[at]
        if (before.rack, before.clique) != (after.rack, after.clique):
            width = 2.4 if before.rack != after.rack else 1.2
            axes.plot([at, at], [0, len(nodes)], color=stand_in("ink"), linewidth=width)
            axes.plot([0, len(nodes)], [at, at], color=stand_in("ink"), linewidth=width)


def _outline(axes: Axes, nodes: tuple[Node, ...], findings: list[Finding]) -> None:
    """Boxes around what findings name: the row and column of a node, the cells of a pair."""
    from matplotlib.patches import Rectangle  # noqa: PLC0415

    place = {node.name: at for at, node in enumerate(nodes)}
    style = {"fill": False, "edgecolor": stand_in("bad"), "linewidth": 2.2, "clip_on": False}
    for each in findings:
        at = [place[name] for name in each.names if name in place]
        if each.kind == "node" and len(at) == 1:
            axes.add_patch(Rectangle((0, at[0]), len(nodes), 1, **style))  # type: ignore[arg-type]
            axes.add_patch(Rectangle((at[0], 0), 1, len(nodes), **style))  # type: ignore[arg-type]
        elif each.kind in {"link", "pair"} and len(at) == 2:
            axes.add_patch(Rectangle((at[0], at[1]), 1, 1, **style))  # type: ignore[arg-type]
            axes.add_patch(Rectangle((at[1], at[0]), 1, 1, **style))  # type: ignore[arg-type]


def _write_shares(axes: Axes, nodes: tuple[Node, ...]) -> None:
    """Beside each row what its node reaches with all its partners."""
    if all(node.share is None for node in nodes):
        return
    size = 8 if len(nodes) <= _VALUES_UP_TO else 6
    axes.text(len(nodes) + 0.3, -0.3, "node's own share", fontsize=size, rotation=90, va="bottom", ha="left")
    for at, node in enumerate(nodes):
        if node.share is not None:
            axes.text(len(nodes) + 0.3, at + 0.5, f"{node.share:.0%}", fontsize=size, va="center")


def _name_nodes(axes: Axes, nodes: tuple[Node, ...]) -> None:
    from matplotlib.ticker import FixedFormatter, FixedLocator  # noqa: PLC0415

    every = max(1, -(-len(nodes) // 48))
    shown = range(0, len(nodes), every)
    names = [short(nodes[at].name, most=_NAME) for at in shown]
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(FixedLocator([at + 0.5 for at in shown]))
        axis.set_major_formatter(FixedFormatter(names))
    axes.tick_params(length=0, labelsize=8 if len(nodes) <= _VALUES_UP_TO else 6)
    axes.xaxis.tick_top()
    for label in axes.get_xticklabels():
        label.set_rotation(90)


def _legend(axes: Axes, matrix: Matrix, steps: list[list[int]], *, rail: int | None) -> None:
    from matplotlib.patches import Patch  # noqa: PLC0415

    told = _scale(matrix)
    handles = [
        Patch(facecolor=colour, edgecolor=stand_in("quiet"), linewidth=0.6, label=text)
        for colour, text in zip(HEAT, told, strict=True)
    ]
    if any(step == _NOT_RUN for row in steps for step in row):
        handles.append(Patch(facecolor=stand_in("none"), edgecolor=stand_in("quiet"), label="nothing measured"))
    if any(each.kind in {"node", "link", "pair"} and each.rail in {None, rail} for each in matrix.findings):
        handles.append(Patch(fill=False, edgecolor=stand_in("bad"), linewidth=2.2, label="named as bad"))
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=2, fontsize=8.5)


def _scale(matrix: Matrix) -> tuple[str, ...]:
    """What each colour means: in GB/s where all pairs should reach the same, else as shares of the band."""
    levels = sorted({pair.level for pair in matrix.pairs})
    expected = matrix.expectation(levels[0]) if len(levels) == 1 else None
    if expected is None:
        return ("far below", "fail", "degraded", "pass", "pass, upper half")
    low, mid, high = expected.degraded, expected.passes, (expected.passes + expected.bound) / 2
    return (
        f"below {low / 2:.4g} GB/s: far below",
        f"{low / 2:.4g} to {low:.4g}: fail",
        f"{low:.4g} to {mid:.4g}: degraded",
        f"{mid:.4g} to {high:.4g}: pass",
        f"from {high:.4g}: pass, upper half",
    )


def _told(row: Node, column: Node, pair: Pair | None) -> str:
    if row.name == column.name:
        return row.name
    names = f"{row.name} and {column.name}"
    if pair is None:
        return f"{names}: not measured"
    return f"{names}: {pair.busbw:.4g} GB/s" if pair.outcome == "measured" else f"{names}: {pair.outcome}"


def _describe(matrix: Matrix, *, rail: int | None) -> str:
    pairs = [pair for pair in matrix.pairs if pair.rail == rail]
    told = [f"{len(pairs)} of {len(matrix.nodes) * (len(matrix.nodes) - 1) // 2} pairs of {len(matrix.nodes)} nodes,"]
    told.append("sorted by rack, clique and name; the colour scale is fixed to what a pair should reach.")
    for level in sorted({pair.level for pair in pairs}):
        expected = matrix.expectation(level)
        if expected is not None:
            where = "" if level == "inside" else " between cliques"
            source = f" ({expected.source})" if expected.source else ""
            told.append(
                f"A pair{where} passes from {expected.passes:.4g} GB/s and is degraded from"
                f" {expected.degraded:.4g} GB/s; the bound is {expected.bound:.4g} GB/s{source}."
            )
    counted = [_stands(matrix, pair).partition(":")[0] for pair in pairs]
    told.append(", ".join(f"{counted.count(each)} {each}" for each in dict.fromkeys(sorted(counted))) + ".")
    told += [f"{each.text}." for each in matrix.findings if each.rail in {None, rail}]
    return " ".join(told)
