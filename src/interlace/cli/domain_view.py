"""How domains are shown to people. No decisions here: what is said is in the objects and in ``domains.chain``."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from interlace.api.computedomain import ComputeDomain
from interlace.cli.domain_document import summary
from interlace.cli.domain_reader import Picture
from interlace.cli.printing import age, columns
from interlace.domains.chain import Chain, Health, Link, Step

_MARKS = {Health.OK: "✓", Health.WAITING: "…", Health.BROKEN: "✗", Health.UNKNOWN: "?"}
_STYLES = {Health.OK: "green", Health.WAITING: "yellow", Health.BROKEN: "red", Health.UNKNOWN: "dim"}


def line(domain: ComputeDomain) -> str:
    """One domain in a sentence or two."""
    facts = summary(domain)
    word = "Ready" if facts.ready else "NotReady"
    return f"{facts.name}: {word}, {facts.nodes_ready}/{facts.nodes} nodes Ready. {facts.message}".rstrip()


def table(found: list[ComputeDomain], *, everywhere: bool) -> Table:
    """``list``: domains, one a line; the namespace where there may be several."""
    grid = columns(*(["NAMESPACE"] if everywhere else []), "NAME", "READY", "NODES", "AGE", "REASON")
    for domain in found:
        facts = summary(domain)
        grid.add_row(
            *([facts.namespace] if everywhere else []),
            facts.name,
            _tint("True" if facts.ready else "False"),
            f"{facts.nodes_ready}/{facts.nodes}",
            age(facts.created),
            facts.reason or "-",
        )
    return grid


def page(picture: Picture) -> Group:
    """``show``: nodes by clique, what waits, conditions, events."""
    waiting = columns("WAITING POD", "FOR", "BECAUSE")
    for chain in picture.chains:
        if link := chain.waits_for:
            waiting.add_row(chain.pod, _thing(chain, link), link.detail)
    return _sections(_headline(picture), *_members(picture), waiting, *_closing(picture))


def explanation(picture: Picture) -> Group:
    """``explain``: the chain of each Pod that waits, link by link; a line for each that has its channel."""
    chains: list[RenderableType] = []
    through = columns("POD", "NODE", "NODE MAP", "CHANNEL", "PEERS")
    for chain in picture.chains:
        if link := chain.waits_for:
            title = Text.assemble((chain.pod, "bold"), " waits for ", _thing(chain, link))
            chains.append(Group(title, *(_link(item) for item in chain.links)))
        else:
            cells = (_cell(chain.link(step)) for step in (Step.MAP, Step.CHANNEL, Step.PEERS))
            through.add_row(chain.pod, chain.node, *cells)
    if not picture.chains:
        chains.append(Text("No Pod uses the domain's claim template."))
    return _sections(_headline(picture), *chains, through, *_closing(picture))


def _sections(*parts: RenderableType) -> Group:
    """With an empty line between them; tables without rows are left out."""
    kept = [part for part in parts if not isinstance(part, Table) or part.row_count]
    return Group(*[item for part in kept for item in (Text(), part)][1:])


def _headline(picture: Picture) -> Text:
    return Text(line(picture.domain), "bold")


def _members(picture: Picture) -> list[RenderableType]:
    parts: list[RenderableType] = []
    nodes = picture.domain.status.nodes if picture.domain.status else []
    pods = {chain.node: chain for chain in picture.chains if chain.node}
    for clique in dict.fromkeys(node.clique_id for node in nodes):
        grid = columns("", "NODE", "INDEX", "ADDRESS", "STATUS", "POD", "CHANNEL")
        for node in nodes:
            if node.clique_id == clique:
                chain = pods.get(node.name)
                grid.add_row(
                    "",
                    node.name,
                    str(node.index) if node.index >= 0 else "-",
                    node.ip_address or "-",
                    _tint(node.status),
                    chain.pod if chain else "-",
                    _cell(chain.link(Step.CHANNEL) if chain else None),
                )
        parts.append(Group(Text(f"NVLink clique {clique}" if clique else "Nodes without a fabric"), grid))
    return parts


def _closing(picture: Picture) -> list[RenderableType]:
    conditions = columns("CONDITION", "STATUS", "SINCE", "REASON", "MESSAGE")
    for condition in picture.domain.status.conditions if picture.domain.status else ():
        since = age(condition.last_transition_time)
        conditions.add_row(condition.type, _tint(condition.status), since, condition.reason, condition.message)
    events = columns("EVENT", "LAST", "MESSAGE")
    for event in picture.events:
        events.add_row(event.reason, age(event.last_timestamp), event.message)
    unhealthy = columns("UNHEALTHY NODE", "REASON")
    if any(chain.waits_for for chain in picture.chains):
        for node, reason in sorted(picture.unhealthy.items()):
            unhealthy.add_row(node, reason)
    parts: list[RenderableType] = [conditions, events, unhealthy]
    if picture.unreadable:
        parts.append(Text(f"You may not read {', '.join(picture.unreadable)}; what they would tell is missing.", "dim"))
    return parts


def _thing(chain: Chain, link: Link) -> str:
    """What a Pod waits for, without its own name a second time."""
    return "a node" if link.step is Step.POD and link.what == f"Pod {chain.pod}" else link.what


def _link(link: Link) -> Text:
    return Text.assemble((f"  {_MARKS[link.health]} ", _STYLES[link.health]), f"{link.what}: {link.detail}")


def _cell(link: Link | None) -> Text:
    if link is None:
        return Text("-")
    if link.since is not None:
        return Text(f"ready for {age(link.since)}", _STYLES[link.health])
    if link.step is Step.PEERS and link.health is Health.OK:
        return Text("connected", _STYLES[link.health])
    return Text("not readable" if link.health is Health.UNKNOWN else link.detail, _STYLES[link.health])


def _tint(word: str) -> Text:
    return Text(word, {"True": "green", "Ready": "green", "False": "red", "NotReady": "yellow"}.get(word, "default"))
