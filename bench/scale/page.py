"""``docs/scale.md`` and what is printed: each figure beside its budget. Pure.

Invariant: a subject that was not measured shows no figure and says so; what holds is decided here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from bench.figures import NONE, Figure, table, verdict
from bench.scale import paper
from bench.scale.crowd import Crowd
from bench.scale.ground import Server
from bench.scale.record import Kept
from bench.scale.roomwatch import SLOW
from bench.scale.shaken import Shaken
from bench.scale.sizes import Size

PAGE: Final = Path(__file__).parents[2] / "docs" / "scale.md"
SERVERS: Final[Sequence[Server]] = ("real", "embedded")
RATIO: Final = 1.5
MEMORY: Final = 150.0
IDLE: Final = 1.0
AFTER_BINDING: Final = 0.25
_HEAD: Final = ("what", "measured", "budget", "")

_INTRO: Final = """# Scale

What much of it costs. Written by `python -m bench.scale report` from `bench/results/scale-*.json`; do not edit.
`python -m bench.scale SUBJECT` measures a subject anew.

Nodes, kubelets and `nvidia-imex` are simulated. *Whole* nodes have real agents and imex-hosts with files, sockets and
connections of their own, in one process with the hollow nodes; each starts a simulated `nvidia-imex`. *Thin* nodes are
what API server, scheduler and controller see of a node: objects, Pods of our DaemonSets, Leases, and the requests and
watches of an agent, all played by one process. The controller is always a process of its own. *Real* is etcd,
kube-apiserver, kube-scheduler and kube-controller-manager; *embedded* is the embedded (simulated) API server with
stand-ins.

Times depend on the machine: everything above shares its cores, where a cluster has some for each node. How busy it
was, with whatever else ran on it, stands beside each subject.
"""


def render(
    *,
    crowds: Sequence[Kept[Crowd]],
    sizes: Sequence[Kept[Size]],
    churns: Sequence[Kept[Shaken]],
    races: Sequence[Kept[Shaken]],
) -> str:
    """The whole page."""
    parts = [_INTRO]
    parts += _section(
        "One more domain among many, and one over all nodes",
        "Three states of one cluster: the domain's own whole nodes alone, with all the thin nodes and no other domain, "
        "and with all domains. Seconds are from creation to the last prepared channel.",
        crowds,
        lambda kept: crowd_table(kept.found[0]),
    )
    parts += _section(
        "Domains over several cliques",
        "All nodes whole. The start of IMEX is what the imex-host of the node measured whose channel came last.",
        sizes,
        lambda kept: sizes_table(kept.found),
    )
    parts += _section(
        "Churn",
        "Jobs are created, scaled and deleted at random, and Pods are deleted, also by force. A checker with its own "
        "client and watches looks at every allocation, every node map and everything that a kubelet prepares. "
        "Memory, tasks and files are medians of the second and of the last quarter of the time.",
        churns,
        lambda kept: churn_table(kept.found[0]),
    )
    parts += _section(
        "Races",
        "Two domains of 18 Pods that start together on nodes that suit both, and are then scaled and hit by deletions, "
        "half of them by force. A Pod waits with room when a node is free of others, or has a place of its own "
        f"domain; the budget is {SLOW:g} s.",
        races,
        lambda kept: races_table(kept.found),
    )
    real = next((kept.found[0] for kept in crowds if kept.server == "real"), None)
    parts.append(f"## {paper.NODES:,} nodes, on paper\n")
    parts.append(paper_table(real) if real is not None else "Not measured yet.\n")
    return "\n".join(parts)


def _section(title: str, text: str, kept: Sequence[Kept[Any]], show: Any) -> list[str]:
    parts = [f"## {title}\n", text + "\n"]
    for one in kept:
        machine = one.machine
        parts.append(
            f"On the {one.server} API server, {one.date[:10]}; {machine.cores} cores, {machine.cpu}, "
            f"{one.busy:.0%} busy.\n"
        )
        parts.append(show(one))
    return parts if kept else [*parts, "Not measured yet.\n"]


# one more domain


def crowd_rows(crowd: Crowd) -> list[list[object]]:
    """Figures of a crowd beside their budgets."""
    alone, full = crowd.states[0], crowd.states[-1]
    rows: list[list[object]] = []
    for state in crowd.states:
        prepared = Figure.of(one.prepared for one in state.formed)
        limit = RATIO * Figure.of(one.prepared for one in alone.formed).median
        rows.append(
            [
                f"{state.formed[0].pods} nodes more, {state.what} ({state.nodes} nodes, {state.domains} domains), s",
                prepared.text(2),
                f"{limit:.2f} ({RATIO:g} × alone)" if state is full else NONE,
                verdict(prepared, limit) if state is full else "",
            ]
        )
        rows.append(
            [
                "of it from the last binding on, s",
                Figure.of(one.after_binding for one in state.formed).text(2),
                NONE,
                "",
            ]
        )
        rows.append(
            [
                "requests of our components for it",
                Figure.of(float(one.requests) for one in state.formed).text(),
                NONE,
                "",
            ]
        )
    for state in crowd.states:
        memory = Figure.of([state.controller])
        budget = [f"{MEMORY:g}", verdict(memory, MEMORY)] if state is full else [NONE, ""]
        rows.append([f"controller, {state.what}, MB of RSS", memory.text(1), *budget])
    rate = Figure.of([sum(crowd.idle.requests.values()) / crowd.idle.seconds])
    rows.append(
        [
            f"requests of all our components in {crowd.idle.seconds:.0f} s of rest, a second",
            rate.text(2),
            f"{IDLE:g}",
            verdict(rate, IDLE),
        ]
    )
    sweeps, renewals = paper.at_rest(nodes=crowd.nodes, members=crowd.domains * crowd.per_domain)
    whole = Figure.of([rate.median + sweeps + renewals])
    rows.append(
        [
            f"the same with {sweeps:.2f} reads of prepared claims and {renewals:.2f} watches anew, which come in hours",
            whole.text(2),
            f"{IDLE:g}",
            verdict(whole, IDLE),
        ]
    )
    for what, count in (("Lease requests of the controller", crowd.idle.leases), ("watches anew", crowd.idle.watches)):
        rows.append([f"beside them {what}, a second", f"{count / crowd.idle.seconds:.2f}", NONE, ""])
    if (wide := crowd.wide) is not None:
        formed = wide.formed
        rows += [
            [
                f"one domain of {formed.pods} nodes, last Pod of the whole nodes bound, s",
                f"{formed.bound:.1f}",
                NONE,
                "",
            ],
            ["the same, their last channel, s", f"{formed.prepared:.1f}", NONE, ""],
            ["the same, all nodes Ready in status, s", f"{formed.ready:.1f}", NONE, ""],
            ["requests of our components for it", formed.requests, NONE, ""],
            ["of them by the controller", formed.controller, NONE, ""],
            ["gone after, s", f"{formed.gone:.1f}", NONE, ""],
            ["node maps, and bytes of the largest", f"{wide.cliques}, {wide.clique_bytes}", NONE, ""],
            ["bytes of the ComputeDomain", wide.domain_bytes, NONE, ""],
            _limited("controller meanwhile, MB of RSS", wide.controller, MEMORY, digits=1),
        ]
    rows.append(
        [f"{crowd.nodes - alone.nodes} thin nodes with our Pods on them, s", f"{crowd.installed:.0f}", NONE, ""]
    )
    return rows


def crowd_table(crowd: Crowd) -> str:
    """As Markdown."""
    return table(_HEAD, crowd_rows(crowd))


def crowd_holds(crowd: Crowd) -> bool:
    """Whether no budget is missed."""
    return _none_missed(crowd_rows(crowd))


# sizes


def sizes_rows(found: Iterable[Size]) -> list[list[object]]:
    """Figures of domains over several cliques."""
    rows: list[list[object]] = []
    for size in found:
        name = f"{size.nodes} nodes, {size.cliques} cliques"
        after = Figure.of(one.after_binding for one in size.formed)
        limit = AFTER_BINDING + Figure.of(one.imex for one in size.formed).median + size.volume_wait
        rows += [
            [f"{name}: last Pod bound, s", Figure.of(one.bound for one in size.formed).text(2), NONE, ""],
            [f"{name}: last channel, s", Figure.of(one.prepared for one in size.formed).text(2), NONE, ""],
            [
                f"{name}: last channel after the last binding, s",
                after.text(2),
                f"{limit:.2f} ({AFTER_BINDING:g} + IMEX + {size.volume_wait:g} of kubelet)",
                verdict(after, limit),
            ],
            [f"{name}: start of IMEX there, s", Figure.of(one.imex for one in size.formed).text(2), NONE, ""],
            [
                f"{name}: start of IMEX, median node, s",
                Figure.of(one.imex_median for one in size.formed).text(2),
                NONE,
                "",
            ],
            [
                f"{name}: requests of our components",
                Figure.of(float(one.requests) for one in size.formed).text(),
                2 * size.nodes + 12 * size.cliques,
                verdict(Figure.of(float(one.requests) for one in size.formed), 2 * size.nodes + 12 * size.cliques),
            ],
        ]
    return rows


def sizes_table(found: Iterable[Size]) -> str:
    """As Markdown."""
    return table(_HEAD, sizes_rows(found))


def sizes_hold(found: Iterable[Size]) -> bool:
    """Whether no budget is missed."""
    return _none_missed(sizes_rows(found))


# churn and races


def churn_rows(churn: Shaken) -> list[list[object]]:
    """Figures of a churn."""
    steps = ", ".join(f"{count} × {step}" for step, count in churn.steps.items())
    rows: list[list[object]] = [
        [f"{churn.seconds:.0f} s on {churn.nodes} nodes, seed {churn.seed}: steps", steps, NONE, ""],
        [
            "allocations, prepared Pods, node maps looked at",
            f"{churn.allocations}, {churn.prepared}, {churn.maps}",
            NONE,
            "",
        ],
        _limited("broken invariants", len(churn.breaches), 0),
        _limited("things left at the end", len(churn.leaks), 0),
        [
            "waits although there was room, median, p99, longest, s",
            f"{churn.waited.median:.2f}, {churn.waited.p99:.2f}, {churn.waited.longest:.2f} of {churn.waited.count}",
            NONE,
            "",
        ],
    ]
    rows += [
        [
            f"{trend.what}, {trend.unit}",
            f"{trend.early:.1f}, at the end {trend.late:.1f}; {trend.slope:+.1f} an hour",
            f"{trend.allowed:+g}",
            "flat" if trend.flat else "**grows**",
        ]
        for trend in churn.trends
    ]
    return rows


def churn_table(churn: Shaken) -> str:
    """As Markdown, with the sentences of what must not be."""
    return table(_HEAD, churn_rows(churn)) + _sentences([*churn.breaches, *churn.leaks])


def churn_holds(churn: Shaken) -> bool:
    """No breach, no leak, nothing that grows."""
    return churn.good and all(trend.flat for trend in churn.trends)


def races_table(races: Sequence[Shaken]) -> str:
    """One row a run."""
    head = (
        "nodes",
        "both formed, s",
        "allocations",
        "on another's node",
        "waits with room: median, p99, longest, s",
        "longer than 5 s",
        "whole again, s",
        "measuring held up, s",
    )
    rows = [
        (
            race.nodes,
            f"{race.together:.1f}",
            race.allocations,
            len(race.breaches),
            f"{race.waited.median:.2f}, {race.waited.p99:.2f}, {race.waited.longest:.2f}",
            f"{len(race.slow)} of {race.waited.count}",
            f"{race.whole_again:.1f}",
            f"{race.late_looks:.2f}",
        )
        for race in races
    ]
    return table(head, rows) + _sentences(sentence for race in races for sentence in race.breaches)


def race_holds(race: Shaken) -> bool:
    """No breach, and no Pod that waited too long."""
    return race.good and race.waited.longest <= SLOW


def paper_table(crowd: Crowd) -> str:
    """The calculation."""
    rows = [(line.what, f"{line.value:.1f} {line.unit}", line.how) for line in paper.calculate(crowd)]
    return table(("what", "10,000 nodes", "from"), rows)


def _limited(what: str, value: float, limit: float, *, digits: int = 0) -> list[object]:
    return [what, f"{value:.{digits}f}", f"{limit:g}", verdict(Figure.of([float(value)]), limit)]


def _none_missed(rows: Iterable[Sequence[object]]) -> bool:
    return not any("missed" in str(row[-1]) for row in rows)


def _sentences(found: Iterable[str]) -> str:
    lines = "".join(f"* {sentence}\n" for sentence in found)
    return f"\n{lines}" if lines else ""
