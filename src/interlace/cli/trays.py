"""The picture of the machines: one cell a tray, or one dot where there are many. Pure.

Invariant: the picture is never wider or higher than what it was given, whatever the number of trays.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from interlace.api.computedomain import ComputeDomainNode

_CELL = 19
"""Columns of ``tray-00 imex 17`` and the gap after it."""
_RACK = 8
"""Columns of ``rack 10 ``."""


class State(StrEnum):
    """What a tray does."""

    DARK = "dark"
    """No power."""
    STARTING = "starting"
    """Our components are not ready there yet."""
    FREE = "free"
    POD = "pod"
    """A Pod of the job is bound to it."""
    FORMING = "forming"
    """It is in the domain, its channel is not ready."""
    READY = "ready"


_LOOKS = {
    State.READY: ("●", "bold green"),
    State.FORMING: ("◐", "yellow"),
    State.POD: ("◔", "cyan"),
    State.FREE: ("○", "dim"),
    State.STARTING: ("·", "dim"),
    State.DARK: ("✗", "bold red"),
}


class Tray(msgspec.Struct, frozen=True, kw_only=True):
    """One tray at one moment."""

    name: str
    rack: str
    """Its NVLink partition."""
    state: State
    index: int = -1
    """In the IMEX domain."""


def state_of(*, powered: bool, installed: bool, row: ComputeDomainNode | None, bound: bool, pod_ready: bool) -> State:
    """``row`` is the tray's in the domain's status; ``bound`` whether a Pod of the job is there."""
    if not powered:
        return State.DARK
    if row is not None:
        return State.READY if row.status == "Ready" and pod_ready else State.FORMING
    if bound:
        return State.POD
    return State.FREE if installed else State.STARTING


def draw(trays: Sequence[Tray], *, width: int, height: int) -> RenderableType:
    """Cells if they fit into ``width`` columns and ``height`` lines, else a line of dots a rack and what they mean."""
    racks: dict[str, list[Tray]] = {}
    for tray in trays:
        racks.setdefault(tray.rack, []).append(tray)
    across = max(1, width // _CELL)
    lines = sum(-(-len(rack) // across) + (len(racks) > 1) for rack in racks.values())
    if lines <= height:
        return _cells(racks, across)
    return _dots(racks, width=width, height=height)


def _cells(racks: dict[str, list[Tray]], across: int) -> Group:
    parts: list[RenderableType] = []
    for number, rack in enumerate(racks.values()):
        if len(racks) > 1:
            parts.append(Text(f"rack {number}", "dim"))
        grid = Table.grid(padding=(0, 2, 0, 0))
        cells = [_cell(tray) for tray in rack]
        for start in range(0, len(cells), across):
            grid.add_row(*cells[start : start + across])
        parts.append(grid)
    return Group(*parts)


def _cell(tray: Tray) -> Text:
    word = f"imex {tray.index}" if tray.state is State.READY and tray.index >= 0 else tray.state.value
    return Text.assemble(f"{tray.name:8}", (f"{word:9}", _LOOKS[tray.state][1]))


def _dots(racks: dict[str, list[Tray]], *, width: int, height: int) -> Group:
    lines: list[Text] = []
    for number, rack in enumerate(racks.values()):
        dots = Text.assemble(*(_LOOKS[tray.state] for tray in rack[: max(1, width - _RACK)]))
        lines.append(Text.assemble((f"rack {number:<{_RACK - 5}}", "dim"), dots))
    room = max(1, height - 1)
    if len(lines) > room:
        lines = [*lines[: room - 1], Text(f"and {len(lines) - room + 1} racks more", "dim")]
    legend = Text("  ").join(Text(f"{mark} {state}", style) for state, (mark, style) in _LOOKS.items())
    legend.truncate(width, overflow="ellipsis")
    return Group(*lines, legend)
