"""Where a Pod of a family may run: the machine type, and the taints of its nodes.

Invariant: only what is missing is added; a choice of the user's that is narrower stays.
"""

from __future__ import annotations

from typing import Final

from interlace.fabric.family import Family, Toleration
from interlace.pods.draft import Draft, Json, mappings, room, rows
from interlace.pods.gpus import RESOURCE, Gpus
from interlace.pods.recognition import ACCELERATOR_KEY, MACHINE_KEYS, wishes

_GPU_TAINT: Final = Toleration(source="interlace", key=RESOURCE)


def place(draft: Draft, found: Gpus, *, family: Family) -> None:
    """Add the node selector and the tolerations that are missing. Raises InjectError."""
    if family.node.gke and family.machines and not found.nics_by_claim:
        wanted = wishes(draft)
        shared = bool(family.refused)
        if not any(key in wanted for key in MACHINE_KEYS) and (shared or ACCELERATOR_KEY not in wanted):
            selector = room(draft.spec, "nodeSelector", "spec.nodeSelector")
            selector[MACHINE_KEYS[0]] = family.machines[0]
            reason = "machines without it have the same accelerator label" if shared else "the nodes of the family"
            draft.added(f"spec.nodeSelector[{MACHINE_KEYS[0]}]", family.machines[0], reason)
    if draft.spec.get("nodeName"):
        draft.warn(
            f"spec.nodeName: {draft.spec['nodeName']} goes past the scheduler, and devices that are busy fail the Pod; "
            "select nodes by label"
        )
    wanted_tolerations = (*family.pod.tolerations, *((_GPU_TAINT,) if found.by_claim and family.node.gke else ()))
    for each in wanted_tolerations:
        _tolerate(draft, each)


def _tolerate(draft: Draft, wanted: Toleration) -> None:
    path = "spec.tolerations"
    for entry in mappings(draft.spec, "tolerations", path):
        if _covers(entry, wanted):
            return
    entry = {"key": wanted.key, "operator": wanted.operator, "effect": wanted.effect}
    if wanted.operator == "Equal":
        entry["value"] = wanted.value
    rows(draft.spec, "tolerations", path).append(entry)
    draft.added(f"{path}[{wanted.key}]", wanted.effect, "nodes of the family have this taint")


def _covers(entry: Json, wanted: Toleration) -> bool:
    if entry.get("effect") not in (None, "", wanted.effect):
        return False
    if entry.get("key") in (None, ""):
        return entry.get("operator") == "Exists"
    if entry.get("key") != wanted.key:
        return False
    return entry.get("operator") == "Exists" or entry.get("value", "") == wanted.value
