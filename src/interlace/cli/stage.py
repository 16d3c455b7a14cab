"""What a person sees of a demonstration: a live picture of the trays, or plain lines."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Self, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from types import TracebackType

    from interlace.sim.demo.result import Requests, Result
    from interlace.sim.demo.scenario import Scenario

_COLUMNS = 6
_LINES = 9


class Show:
    """A ``Stage``: draws on a terminal, prints lines elsewhere."""

    def __init__(self, *, stream: TextIO, pause: float) -> None:
        self.console = Console(file=stream, highlight=False)
        self._pause = pause if self.console.is_terminal else 0.0
        self._started = time.monotonic()
        self._title = "Interlace"
        self._lines: deque[str] = deque(maxlen=_LINES)
        self._scenario: Scenario | None = None
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._live = Live(get_renderable=self._picture, console=self.console, refresh_per_second=8)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.refresh()
            self._live.stop()
            self._live = None

    async def act(self, title: str) -> None:
        """Begin an act; on a terminal there is time to read the last one."""
        await asyncio.sleep(self._pause)
        self._title = title
        self._say(f"— {title}")

    def tell(self, line: str) -> None:
        """One step."""
        self._say(f"  {line}")

    def draw(self, scenario: Scenario) -> None:
        """From now on the picture shows this scenario's trays."""
        self._scenario = scenario

    def summary(self, result: Result) -> None:
        """The closing table."""
        self.console.print(summarise(result))

    def _say(self, line: str) -> None:
        stamp = f"{time.monotonic() - self._started:6.1f} s"
        if self._live is None:
            self.console.print(f"{stamp} {line}", markup=False, soft_wrap=True)
        else:
            self._lines.append(f"{stamp} {line}")

    def _picture(self) -> Group:
        parts: list[Panel | Table | Text] = []
        if self._scenario is not None:
            parts.append(_trays(self._scenario))
        parts.append(Text("\n".join(self._lines)))
        return Group(Panel(Group(*parts), title=f"[bold]{self._title}", subtitle="simulated nodes, real components"))


def _trays(scenario: Scenario) -> Table:
    grid = Table.grid(padding=(0, 2))
    domain = scenario.domain
    rows = {node.name: node for node in domain.status.nodes} if domain and domain.status else {}
    by_node = {pod.spec.node_name: pod for pod in scenario.pods}
    cells = []
    for name in scenario.cluster.gpu_nodes:
        row, pod = rows.get(name), by_node.get(name)
        if not scenario.cluster.fleet.is_on(name):
            mark, style = "dark", "bold red"
        elif row is not None and row.status == "Ready" and pod is not None and pod.ready:
            mark, style = f"imex {row.index:2d}", "bold green"
        elif row is not None:
            mark, style = "forming", "yellow"
        elif pod is not None:
            mark, style = "pod", "cyan"
        else:
            mark, style = "free", "dim"
        cells.append(Text.assemble((f"{name} ", "default"), (f"{mark:8}", style)))
    for start in range(0, len(cells), _COLUMNS):
        grid.add_row(*cells[start : start + _COLUMNS])
    return grid


def summarise(result: Result) -> Group:
    """What it cost and what came of it."""
    table = Table(title="What it cost", title_justify="left", show_edge=False, pad_edge=False)
    for column in ("", "get", "list", "watch", "write", "conflict", "sum"):
        table.add_column(column, justify="left" if not column else "right")

    def add(name: str, requests: Requests, style: str = "") -> None:
        numbers = (requests.get, requests.list, requests.watch, requests.write, requests.conflict, requests.total)
        table.add_row(name, *(str(number) for number in numbers), style=style)

    add("forming: our components", result.requests.ours, "bold")
    for name, requests in result.components.items():
        add(f"  {name}", requests)
    add("forming: platform", result.requests.platform)
    add("deleting: our components", result.teardown.requests.ours, "bold")
    lines = Table.grid(padding=(0, 2))
    seconds: Callable[[float | None], str] = lambda value: "-" if value is None else f"{value:.2f} s"  # noqa: E731
    lines.add_row("domain formed after", seconds(result.formation_seconds))
    lines.add_row(
        "first / last channel", f"{seconds(result.first_channel_seconds)} / {seconds(result.last_channel_seconds)}"
    )
    lines.add_row("healed after", seconds(result.heal_seconds))
    lines.add_row("deleted after", seconds(result.teardown.seconds))
    lines.add_row("left behind", ", ".join(result.left_behind) or "nothing")
    lines.add_row("simulated", ", ".join(result.simulated))
    verdict = (
        Text("good", "bold green")
        if result.good
        else Text("; ".join(result.problems) or "left something behind", "bold red")
    )
    lines.add_row("verdict", verdict)
    return Group(Text(), table, Text(), lines)
