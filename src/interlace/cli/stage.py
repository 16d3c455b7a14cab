"""What a person sees of a demonstration: lines, and on a terminal a live picture of the trays below them."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import termios
import time
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Self, TextIO

from rich.console import Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from interlace.cli.printing import console_on, echo
from interlace.cli.trays import Tray, draw, state_of

if TYPE_CHECKING:
    from types import TracebackType

    from interlace.sim.cluster import Cluster
    from interlace.sim.demo.scenario import Scenario

START = "Start"
_FRAME = 0.125
"""Seconds between two pictures."""
_WIDEST = 120
_BESIDE = 10
"""Lines of a terminal that the trays leave to the frame, the line on the domain, and the last messages."""


class Show:
    """A ``Stage``: draws on a terminal, prints lines elsewhere.

    Messages stay in the terminal's history; only the picture below them changes. ``acts`` are those to come.
    """

    def __init__(self, *, stream: TextIO, pause: float, acts: Sequence[str], simulated: Sequence[str]) -> None:
        self._stream = stream
        self.console = console_on(stream)
        self._pause = pause if self.console.is_terminal else 0.0
        self._started = time.monotonic()
        self._title = f"{START}: a cluster of simulated nodes"
        self._acts = [START, *acts]
        self._simulated = f"simulated: {', '.join(simulated)}"
        self._cluster: Cluster | None = None
        self._scenario: Scenario | None = None
        self._screen = contextlib.ExitStack()
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._screen.enter_context(_quiet_keys())
            # Not from a thread, as is usual: the picture reads what the event loop changes.
            self._live = Live(get_renderable=self._picture, console=self.console, auto_refresh=False)
            self._screen.enter_context(self._live)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.freeze()

    async def paint(self) -> None:
        """Keep the picture up to date until cancelled."""
        while self._live is not None:
            self._live.refresh()
            await asyncio.sleep(_FRAME)

    def freeze(self) -> None:
        """Leave the last picture as it is; from now on only lines."""
        if self._live is not None:
            self._live.refresh()
            self._live = None
            self._screen.close()

    async def act(self, title: str) -> None:
        """Begin an act; on a terminal there is time to read the last one."""
        await asyncio.sleep(self._pause)
        self._title = title
        self._say(f"— {title}", style="bold")

    def tell(self, line: str) -> None:
        """One step."""
        self._say(f"  {line}")

    def hint(self, *commands: str) -> None:
        """Commands to copy, as they are."""
        self._stream.writelines(f"{command}\n" for command in commands)
        self._stream.flush()

    def done(self) -> None:
        """All acts ended well."""
        self._title = "Done"

    def interrupted(self) -> None:
        """Somebody wants to leave."""
        self.tell("interrupted; taking everything down")

    def watch(self, cluster: Cluster) -> None:
        """From now on the picture shows this cluster's trays."""
        self._cluster = cluster

    def follow(self, scenario: Scenario) -> None:
        """From now on it shows the job too."""
        self._scenario = scenario

    def _say(self, line: str, *, style: str = "") -> None:
        stamp = f"{time.monotonic() - self._started:6.1f} s"
        if self._live is None:
            echo(Text(f"{stamp} {line}", style), stream=self._stream)
        else:
            indent = "" if line.startswith("—") else "  "
            grid = Table.grid(padding=(0, 1, 0, 0))
            grid.add_row(stamp + indent, Text(line.removeprefix("  "), style))
            self.console.print(grid)

    def _picture(self) -> RenderableType:
        width = min(self.console.width, _WIDEST)
        parts: list[RenderableType] = []
        if self._cluster is not None:
            trays = look(self._cluster, self._scenario)
            parts += [draw(trays, width=width - 4, height=self.console.height - _BESIDE), Text()]
            parts.append(Text(self._standing(self._cluster), overflow="ellipsis", no_wrap=True))
        parts.append(_progress(self._acts, self._title))
        return Panel(
            Group(*parts), title=f"[bold]{self._title}", subtitle=self._simulated, width=width, title_align="left"
        )

    def _standing(self, cluster: Cluster) -> str:
        if self._scenario is None:
            return f"installing: {cluster.missing()}"
        name, domain = self._scenario.workload.name, self._scenario.domain
        if domain is None:
            return f"{name}: does not exist"
        nodes = domain.status.nodes if domain.status else []
        pods = self._scenario.pods
        return (
            f"{name}: {domain.status.status if domain.status else 'NotReady'}, "
            f"{self._scenario.nodes_ready()} of {len(nodes)} nodes and "
            f"{self._scenario.pods_ready} of {len(pods)} pods Ready"
        )


def look(cluster: Cluster, scenario: Scenario | None) -> list[Tray]:
    """The trays of a cluster as they are now."""
    domain = scenario.domain if scenario else None
    rows = {node.name: node for node in domain.status.nodes} if domain and domain.status else {}
    pods = {pod.spec.node_name: pod for pod in scenario.pods} if scenario else {}
    ready: dict[str, int] = {}
    for ours in (*cluster.our_pods("agent"), *cluster.our_pods("imex-host")):
        ready[ours.spec.node_name] = ready.get(ours.spec.node_name, 0) + ours.ready
    found = []
    for name in cluster.gpu_nodes:
        row, pod = rows.get(name), pods.get(name)
        state = state_of(
            powered=cluster.fleet.is_on(name),
            installed=ready.get(name, 0) == 2,  # agent and imex-host
            row=row,
            bound=pod is not None,
            pod_ready=pod is not None and pod.ready,
        )
        rack = cluster.fleet.nodes[name].tray.clique
        found.append(Tray(name=name, rack=rack, state=state, index=row.index if row else -1))
    return found


def _progress(acts: Sequence[str], title: str) -> Text:
    """The acts, those behind us marked."""
    now = title.partition(":")[0]
    at = acts.index(now) if now in acts else len(acts)
    words = [
        Text(f"✓ {act}", "green") if i < at else Text(f"▸ {act}", "bold") if i == at else Text(f"  {act}", "dim")
        for i, act in enumerate(acts)
    ]
    return Text("  ").join(words)


@contextlib.contextmanager
def _quiet_keys() -> Generator[None]:
    """Keep the terminal from writing ``^C`` into the picture."""
    try:
        before = termios.tcgetattr(sys.stdin)
    except (termios.error, ValueError, OSError):  # not a terminal, or closed
        yield
        return
    quiet = list(before)
    quiet[3] &= ~termios.ECHOCTL
    termios.tcsetattr(sys.stdin, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, before)
