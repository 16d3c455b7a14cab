"""What 10,000 nodes cost, on paper: straight lines through what was measured, and the periods that settings give.

Pure. Invariant: each figure names where its slope comes from; nothing is added that was neither measured nor set.
"""

from __future__ import annotations

import statistics
from typing import Final

import msgspec

from bench.scale.crowd import Crowd, State
from interlace.domains.settings import ControllerSettings
from interlace.kube.informer import Pace
from interlace.node.settings import AgentSettings

NODES: Final = 10_000
WATCHES: Final = 2
"""Of an agent: the node maps of its clique, the slices of its node."""
JOBS_AN_HOUR: Final = 1.0
"""How often a node changes its job: an assumption, the only one."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the calculation."""

    what: str
    value: float
    unit: str
    how: str


def calculate(crowd: Crowd, *, nodes: int = NODES) -> list[Line]:
    """All rows; ``crowd.states`` are those of `crowd.measure`."""
    alone, empty, full = crowd.states
    a_node = _slope(alone, empty, "controller", by=empty.nodes - alone.nodes)
    members = crowd.domains * crowd.per_domain
    a_member = _slope(empty, full, "controller", by=members)
    base = alone.controller - a_node * alone.nodes
    settings, agents = ControllerSettings(identity="paper"), AgentSettings(node_name="paper")
    sweeps, renewals = at_rest(nodes=nodes, members=nodes)
    requests = statistics.median(one.requests / one.pods for one in full.formed)
    bytes_a_pod = statistics.median([full.clique_bytes]) / full.formed[0].pods
    pods = nodes * JOBS_AN_HOUR / 3600
    return [
        Line(
            what="requests of agents at rest",
            value=sweeps,
            unit="a second",
            how=f"one read of each prepared claim in {agents.sweep_interval:g} s, as set; none without a job",
        ),
        Line(
            what="watches that end and begin anew",
            value=renewals,
            unit="a second",
            how=f"{WATCHES} an agent, each for {Pace().watch:g} to {2 * Pace().watch:g} s, as set",
        ),
        Line(
            what="Lease renewals of the leading controller",
            value=1 / settings.lease_retry_period,
            unit="a second",
            how=f"one in {settings.lease_retry_period:g} s, as set, however many nodes there are",
        ),
        Line(
            what=f"requests while each node changes its job {JOBS_AN_HOUR:g} time an hour",
            value=requests * pods,
            unit="a second",
            how=f"{requests:.2f} a Pod to form, as measured, {pods:.2f} Pods a second",
        ),
        Line(
            what="bytes of node maps to all agents and the controller, for the same",
            value=bytes_a_pod * pods / 1000,
            unit="kB a second",
            how=f"{bytes_a_pod / 1000:.1f} kB a Pod in domains of {full.formed[0].pods}, as measured",
        ),
        Line(
            what="memory of the controller, nodes without a domain",
            value=base + a_node * nodes,
            unit="MB",
            how=f"{base:.1f} MB and {1000 * a_node:.2f} kB a node, between {alone.nodes} and {empty.nodes} nodes",
        ),
        Line(
            what="memory of the controller, all nodes in domains",
            value=base + (a_node + a_member) * nodes,
            unit="MB",
            how=f"{1000 * a_member:.2f} kB more a node that is in a domain of {crowd.per_domain}",
        ),
        Line(
            what="memory of one kube-apiserver, with all that nodes, kubelets and the platform put there",
            value=alone.apiserver + _slope(alone, full, "apiserver", by=full.nodes - alone.nodes) * nodes,
            unit="MB",
            how=f"{alone.apiserver:.0f} MB at {alone.nodes} nodes, {full.apiserver:.0f} MB at {full.nodes} in domains",
        ),
    ]


def at_rest(*, nodes: int, members: int) -> tuple[float, float]:
    """Reads of prepared claims, and watches that begin anew, a second, as the settings give them."""
    sweeps = members / AgentSettings(node_name="paper").sweep_interval
    return sweeps, nodes * WATCHES / (1.5 * Pace().watch)


def _slope(before: State, after: State, figure: str, *, by: int) -> float:
    """Never below 0: less memory with more nodes is noise."""
    grown = float(getattr(after, figure)) - float(getattr(before, figure))
    return max(0.0, grown / by) if by > 0 else 0.0
