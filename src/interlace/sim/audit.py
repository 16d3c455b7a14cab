"""Who asked the API server for what: counts by component and kind of request.

Leases are kept apart (not counted), as the budgets say; events count as writes; a watch
counts once, when it starts. ``conflict`` is the part of the writes that was refused with 409,
also because the object was there already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from interlace.sim.plane import AuditRecord

OURS = ("controller", "agent", "imex-host", "webhook")
PLATFORM = ("scheduler", "controller-manager", "kubelet", "apiserver")
READS = ("get", "list", "watch")
KINDS = ("get", "list", "watch", "write", "conflict")


def component(user: str, *, namespace: str) -> str:
    """Which component a user name stands for; the user itself if it is nobody we know."""
    ours = f"system:serviceaccount:{namespace}:"
    if user.startswith(ours):
        return user.removeprefix(ours).removeprefix("interlace-")
    if user == "system:kube-scheduler":
        return "scheduler"
    if user == "system:kube-controller-manager" or user.startswith("system:serviceaccount:kube-system:"):
        return "controller-manager"
    if user.startswith("system:node:"):
        return "kubelet"
    if user in {"system:apiserver", "system:anonymous"}:
        return "apiserver"
    return user


def count(records: Iterable[AuditRecord], *, namespace: str, since: float, until: float) -> dict[str, Counter[str]]:
    """Requests received in [since, until), by component and kind."""
    table: dict[str, Counter[str]] = {}
    for record in records:
        if not since <= record.time < until or record.resource == "leases":
            continue
        counts = table.setdefault(component(record.user, namespace=namespace), Counter())
        if record.verb in READS:
            counts[record.verb] += 1
            continue
        counts["write"] += 1
        if record.code == 409:
            counts["conflict"] += 1
    return table


def total(table: dict[str, Counter[str]], components: Iterable[str]) -> dict[str, int]:
    """Sum over components, every kind present."""
    summed: Counter[str] = Counter()
    for name in components:
        summed.update(table.get(name, Counter()))
    return {kind: summed[kind] for kind in KINDS}
