"""The end of a demonstration: what it cost and what came of it. Pure."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text

from interlace.cli.printing import columns
from interlace.sim.audit import OURS, PLATFORM
from interlace.sim.demo.result import Requests, Result


def bill(result: Result) -> Group:
    """Tables for people; the JSON document says the same."""
    return Group(Text(), Text("Requests to the API server, Leases apart", "bold"), _requests(result), _facts(result))


def _requests(result: Result) -> Table:
    table = columns("", "get", "list", "watch", "write", "conflict", "sum")
    for column in table.columns[1:]:
        column.justify = "right"

    def add(name: str, requests: Requests, style: str = "") -> None:
        numbers = (requests.get, requests.list, requests.watch, requests.write, requests.conflict, requests.total)
        table.add_row(name, *(str(number) for number in numbers), style=style)

    def add_some(names: tuple[str, ...]) -> None:
        for name in names:
            if name in result.components:
                add(f"  {name}", result.components[name])

    add("forming: our components", result.requests.ours, "bold")
    add_some(OURS)
    simulated = "simulated" if result.server == "embedded" else "kubelets simulated"
    add(f"forming: Kubernetes ({simulated})", result.requests.platform)
    add_some(PLATFORM)
    if result.teardown.seconds is None:
        return table
    add("deleting: our components", result.teardown.requests.ours, "bold")
    add(f"deleting: Kubernetes ({simulated})", result.teardown.requests.platform)
    return table


def _facts(result: Result) -> Group:
    lines = Table.grid(padding=(0, 2, 0, 0))
    first, last = _seconds(result.first_channel_seconds), _seconds(result.last_channel_seconds)
    lines.add_row("formed", f"{_seconds(result.formation_seconds)}; first channel {first}, last {last}")
    lines.add_row("healed", _seconds(result.heal_seconds))
    lines.add_row("deleted", _seconds(result.teardown.seconds))
    proven = result.teardown.seconds is not None
    lines.add_row("left behind", ", ".join(result.left_behind) or ("nothing" if proven else "not looked for"))
    lines.add_row("simulated", ", ".join(result.simulated))
    if result.good:
        verdict = Text("good", "bold green")
    else:
        verdict = Text("; ".join(result.problems) or "something was left behind", "bold red")
    lines.add_row("verdict", verdict)
    return Group(Text(), lines)


def _seconds(value: float | None) -> str:
    return "not reached" if value is None else f"after {value:.2f} s"
