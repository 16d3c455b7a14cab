"""How domains are shown: tables for people, one documented JSON form for programs. No decisions here."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Any

import msgspec
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from interlace.api.computedomain import ComputeDomain
from interlace.api.meta import Condition
from interlace.cli.domain_reader import Picture
from interlace.domains.chain import Chain, Health

_STYLE = {Health.OK: "green", Health.WAITING: "yellow", Health.BROKEN: "red", Health.UNKNOWN: "dim"}


def encode(document: Any) -> str:
    """JSON."""
    return msgspec.json.encode(document).decode()


def echo(renderable: RenderableType) -> None:
    """To stdout; without colour and at full width where it is not a terminal."""
    console = Console(file=sys.stdout, highlight=False)
    if not console.is_terminal:
        console = Console(file=sys.stdout, highlight=False, width=200)
    console.print(renderable)


def is_ready(domain: ComputeDomain) -> bool:
    """The condition ``Ready``, or the status field where no condition was written yet."""
    found = _condition(domain, "Ready")
    if found is not None:
        return found.status == "True"
    return domain.status is not None and domain.status.status == "Ready"


def nodes_ready(domain: ComputeDomain) -> int:
    """How many nodes of the domain are Ready."""
    return sum(node.status == "Ready" for node in domain.status.nodes) if domain.status else 0


def summary(domain: ComputeDomain) -> dict[str, Any]:
    """One domain for programs."""
    ready = _condition(domain, "Ready")
    return {
        "namespace": domain.metadata.namespace,
        "name": domain.metadata.name,
        "uid": domain.metadata.uid,
        "status": domain.status.status if domain.status else "NotReady",
        "ready": is_ready(domain),
        "reason": ready.reason if ready else "",
        "message": ready.message if ready else "",
        "nodes": len(domain.status.nodes) if domain.status else 0,
        "nodes_ready": nodes_ready(domain),
    }


def line(domain: ComputeDomain) -> str:
    """One domain for people."""
    facts = summary(domain)
    word = "Ready" if facts["ready"] else "NotReady"
    return f"{facts['name']}: {word}, {facts['nodes_ready']}/{facts['nodes']} nodes Ready. {facts['message']}".rstrip()


def document(picture: Picture) -> dict[str, Any]:
    """Everything about one domain for programs."""
    status = picture.domain.status
    return summary(picture.domain) | {
        "conditions": status.conditions if status else [],
        "members": status.nodes if status else [],
        "pods": [
            {
                "pod": chain.pod,
                "node": chain.node,
                "waits_for": chain.waits_for.what if chain.waits_for else None,
                "chain": chain.links,
            }
            for chain in picture.chains
        ],
        "events": [
            {"time": event.last_timestamp, "type": event.type, "reason": event.reason, "message": event.message}
            for event in picture.events
        ],
        "unreadable": picture.unreadable,
    }


def table(found: list[ComputeDomain]) -> Table:
    """Domains, one a line."""
    grid = _grid("NAMESPACE", "NAME", "READY", "NODES", "AGE", "REASON")
    for domain in found:
        facts = summary(domain)
        grid.add_row(
            facts["namespace"],
            facts["name"],
            _tint("True" if facts["ready"] else "False"),
            f"{facts['nodes_ready']}/{facts['nodes']}",
            _age(domain.metadata.creation_timestamp),
            facts["reason"],
        )
    return grid


def page(picture: Picture) -> Group:
    """``show``."""
    parts: list[RenderableType] = [Text(line(picture.domain), "bold"), Text()]
    status = picture.domain.status
    pods = {chain.node: chain for chain in picture.chains if chain.node}
    for clique in dict.fromkeys(node.clique_id for node in status.nodes) if status else ():
        parts.append(Text(f"NVLink clique {clique}" if clique else "Nodes without a fabric"))
        grid = _grid("", "NODE", "INDEX", "ADDRESS", "STATUS", "POD", "CHANNEL")
        for node in status.nodes if status else ():
            if node.clique_id == clique:
                chain = pods.get(node.name)
                grid.add_row(
                    "",
                    node.name,
                    str(node.index) if node.index >= 0 else "-",
                    node.ip_address or "-",
                    _tint(node.status),
                    chain.pod if chain else "-",
                    _channel(chain),
                )
        parts += [grid, Text()]
    waiting = [chain for chain in picture.chains if chain.waits_for]
    if waiting:
        parts.append(Text("Waiting"))
        grid = _grid("", "POD", "FOR", "BECAUSE")
        for chain in waiting:
            if chain.waits_for:
                grid.add_row("", chain.pod, chain.waits_for.what, chain.waits_for.detail)
        parts += [grid, Text()]
    parts += _closing(picture)
    return Group(*parts)


def explanation(picture: Picture) -> Group:
    """``explain``."""
    parts: list[RenderableType] = [Text(line(picture.domain), "bold"), Text()]
    if not picture.chains:
        parts += [Text("No Pod uses the domain's claim template."), Text()]
    for chain in picture.chains:
        parts.append(Text(chain.pod, "bold"))
        for link in chain.links:
            mark = {Health.OK: "✓", Health.WAITING: "…", Health.BROKEN: "✗", Health.UNKNOWN: "?"}[link.health]
            parts.append(Text.assemble(("  " + mark + " ", _STYLE[link.health]), f"{link.what}: {link.detail}"))
    parts.append(Text())
    parts += _closing(picture)
    return Group(*parts)


def _closing(picture: Picture) -> list[RenderableType]:
    parts: list[RenderableType] = []
    status = picture.domain.status
    if status and status.conditions:
        grid = _grid("CONDITION", "STATUS", "REASON", "MESSAGE")
        for condition in status.conditions:
            grid.add_row(condition.type, _tint(condition.status), condition.reason, condition.message)
        parts += [grid, Text()]
    if picture.events:
        grid = _grid("EVENT", "LAST", "MESSAGE")
        for event in picture.events:
            grid.add_row(event.reason, _age(event.last_timestamp), event.message)
        parts.append(grid)
    if picture.unreadable:
        parts.append(Text(f"You may not read: {', '.join(picture.unreadable)}.", "dim"))
    return parts


def _channel(chain: Chain | None) -> str:
    found = next((item for item in chain.links if item.what == "IMEX channel"), None) if chain else None
    return found.detail if found else "-"


def _condition(domain: ComputeDomain, kind: str) -> Condition | None:
    return next((item for item in domain.status.conditions if item.type == kind), None) if domain.status else None


def _grid(*columns: str) -> Table:
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        grid.add_column(column, overflow="fold")
    return grid


def _tint(word: str) -> Text:
    return Text(word, {"True": "green", "Ready": "green", "False": "red", "NotReady": "yellow"}.get(word, "default"))


def _age(stamp: str | None) -> str:
    if not stamp:
        return "-"
    seconds = int((datetime.now(UTC) - datetime.fromisoformat(stamp)).total_seconds())
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{max(seconds, 0)}s"
