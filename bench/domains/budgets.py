"""What forming and ending a domain may cost: the project's budgets, each beside the figure that it limits.

Budgets hold for the median of the runs of one size. Times are given plus the start of IMEX, which is the
simulator's and not ours: as it was set, and as it was measured in the same run, where many share few cores. A
limit of None: no budget was set for that size.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import msgspec

from bench.domains.record import Run

CLIQUES = "computedomaincliques.resource.nvidia.com"
_WRITES = ("create", "update", "patch", "delete", "deletecollection")


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """One limit."""

    what: str
    digits: int = 0
    limit: Callable[[Run], float | None]
    """For runs of this size and with these settings."""
    measure: Callable[[Run, Sequence[str]], float]
    """The figure of one run; the second argument names the driver's components."""


def imex_start(run: Run) -> float:
    """Seconds that IMEX took to start: the median of the nodes as measured, else what was set."""
    return statistics.median(run.imex_starts) if run.imex_starts else _set_start(run)


def _set_start(run: Run) -> float:
    return float(run.settings.get("imex_start") or 0.0)


def _requests(run: Run) -> float | None:
    """Two a pod and twelve a domain and clique; for pods that share nodes there is one figure of its own."""
    if run.pods_per_node > 1:
        return 110 if (run.nodes, run.pods_per_node) == (18, 2) else None
    return 2 * run.nodes + 12 * run.cliques


def _writes(run: Run) -> float | None:
    return run.nodes + 12 * run.cliques if run.pods_per_node == 1 else None


def _teardown(run: Run) -> float | None:
    if run.pods_per_node > 1:
        return 8 + 2 * run.nodes
    return 8 if run.cliques == 1 else None


def _two_each(run: Run) -> float | None:
    return 2.5 if (run.nodes, run.pods_per_node) == (18, 2) else None


def _channels(run: Run) -> float | None:
    return 1.0 + imex_start(run) if run.nodes <= 18 and run.pods_per_node == 1 else None


def _after_binding(run: Run) -> float | None:
    return 0.25 + imex_start(run) + float(run.settings.get("volume_wait") or 0.0) if run.nodes == 36 else None


def _clique_bytes(run: Run) -> float | None:
    if run.cliques == 1:
        return 0.15 if run.nodes <= 18 else None
    return 0.5 if run.nodes == 36 and run.cliques == 2 else None


BUDGETS = (
    Budget(
        what="requests of our components to form",
        limit=_requests,
        measure=lambda run, ours: run.sum("formation", ours).total,
    ),
    Budget(what="writes among them", limit=_writes, measure=lambda run, ours: run.sum("formation", ours).mutating),
    Budget(
        what="conflicts among them",
        limit=lambda _run: 0,
        measure=lambda run, ours: run.sum("formation", ours).conflicts,
    ),
    Budget(
        what="ResourceSlice writes",
        limit=lambda run: 0 if run.pods_per_node == 1 else run.nodes,
        measure=lambda run, ours: run.count("formation", ours, resource="resourceslices", verbs=_WRITES),
    ),
    Budget(
        what="requests to tear down",
        limit=_teardown,
        measure=lambda run, ours: run.sum("teardown", ours).total,
    ),
    Budget(
        what="of them by agents",
        limit=lambda run: 0 if run.pods_per_node == 1 else None,
        measure=lambda run, _ours: run.sum("teardown", ("agent", "plugin")).total,
    ),
    Budget(
        what="creation to last channel prepared, s (1.0 + start of IMEX as set)",
        digits=2,
        limit=lambda run: 1.0 + _set_start(run) if _channels(run) is not None else None,
        measure=lambda run, _ours: run.seconds.all_prepared,
    ),
    Budget(
        what="the same (1.0 + start of IMEX as measured)",
        digits=2,
        limit=_channels,
        measure=lambda run, _ours: run.seconds.all_prepared,
    ),
    Budget(
        what="creation to last channel prepared of two pods a node, s",
        digits=2,
        limit=_two_each,
        measure=lambda run, _ours: run.seconds.all_prepared,
    ),
    Budget(
        what="last pod bound to last channel prepared, s (0.25 + start of IMEX as measured)",
        digits=2,
        limit=_after_binding,
        measure=lambda run, _ours: run.seconds.all_prepared - run.seconds.all_bound,
    ),
    Budget(
        what="clique watch traffic to form, MB",
        digits=3,
        limit=_clique_bytes,
        measure=lambda run, _ours: run.watch_bytes.get("formation", {}).get(CLIQUES, 0) / 1e6,
    ),
)
