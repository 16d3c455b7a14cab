"""From the fabric information of each GPU to one verdict for the node.

Invariant: any list of GPUs gives a verdict; nothing a GPU says can raise. A node is either
without a multi-node fabric (clique ``""``, healthy), a healthy member of a clique, or unhealthy
with a reason. An unhealthy verdict keeps the clique id where the GPUs still agree on one.

A cluster UUID of zeros has two meanings. On boards whose NVLink ends inside the machine (HGX and
DGX A100, H100, H200, B200, B300) it is what a good node says, so the node counts as one without a
fabric. Everywhere else, a rack system above all, it means that the fabric was never given its
identity, and a pod that was started anyway would fail later and without a reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from interlace.node.facts import ZERO_UUID, FabricHealth, FabricState, GpuFabric

_ONE_MACHINE = re.compile(r"\b(A100|A800|H20|H100|H200|H800|B200|B300)\b")


class Fabric(msgspec.Struct, frozen=True, kw_only=True):
    """The node's verdict."""

    clique: str = ""
    """``<cluster uuid>.<clique number>``; empty: no multi-node fabric, or not known."""
    healthy: bool = True
    settled: bool = True
    """False while the fabric is being set up: read again soon."""
    reason: str = ""
    """Why it is not healthy; short enough for a device attribute (64 characters)."""
    message: str = ""
    """The same as a sentence that names the GPU."""


NO_FABRIC = Fabric()


def judge(gpus: Sequence[GpuFabric]) -> Fabric:
    """The verdict over all GPUs of a node. No GPU at all is a node without a fabric."""
    faults = [fault for gpu in gpus if (fault := _fault(gpu)) is not None]
    members = [gpu for gpu in gpus if not _outside(gpu)]
    cliques = sorted({f"{gpu.cluster_uuid}.{gpu.clique}" for gpu in members if gpu.cluster_uuid != ZERO_UUID})
    clique = cliques[0] if len(cliques) == 1 else ""
    if faults:
        # One that will pass by itself is named last: the others need a person.
        worst = min(faults, key=lambda fault: not fault.settled)
        return msgspec.structs.replace(worst, clique=clique)
    if not members:
        return NO_FABRIC
    if len(members) < len(gpus):
        odd = next(gpu for gpu in gpus if _outside(gpu))
        return Fabric(
            healthy=False,
            clique=clique,
            reason="GpusDisagree",
            message=f"GPU {odd.uuid} is outside the fabric that the other GPUs of this node belong to ({clique}).",
        )
    if len(cliques) > 1:
        return Fabric(
            healthy=False,
            reason="GpusDisagree",
            message=f"The GPUs of this node name {len(cliques)} fabric cliques: {', '.join(cliques)}.",
        )
    return Fabric(clique=clique)


def succeed(before: Fabric, found: Fabric) -> Fabric:
    """``found`` in the light of what the node was: a fabric that vanished while the agent ran is a fault.

    A job that started without its channel there would run, slowly and without a word. A machine that is
    really another one now has been rebooted, and the agent with it.
    """
    if before.clique and found.healthy and not found.clique:
        return Fabric(
            healthy=False,
            clique=before.clique,
            reason="FabricGone",
            message=f"The GPUs of this node belonged to fabric clique {before.clique} and show no fabric any more; "
            "check nvidia-smi and the kernel log, or restart the agent if this is meant.",
        )
    return found


def unreadable(message: str) -> Fabric:
    """The verdict where the GPUs could not be read."""
    return Fabric(healthy=False, settled=False, reason="FactsUnreadable", message=message)


def _outside(gpu: GpuFabric) -> bool:
    """Whether the GPU has no multi-node fabric, as a good state."""
    if gpu.state is FabricState.NOT_SUPPORTED:
        return True
    return gpu.cluster_uuid == ZERO_UUID and _ONE_MACHINE.search(gpu.product) is not None


def _fault(gpu: GpuFabric) -> Fabric | None:
    if _outside(gpu):
        return None
    if gpu.state is not FabricState.COMPLETED:
        phase = "has not started" if gpu.state is FabricState.NOT_STARTED else "is in progress"
        return Fabric(
            healthy=False,
            settled=False,
            reason="FabricInProgress",
            message=f"GPU {gpu.uuid}: the registration with the NVLink fabric {phase}; it is read again every few "
            "seconds.",
        )
    if gpu.status != 0:
        return Fabric(
            healthy=False,
            reason="FabricStatus",
            message=f"GPU {gpu.uuid}: the NVLink fabric reports NVML status {gpu.status}; see the fabric manager's "
            "log, then reset the GPU.",
        )
    if gpu.cluster_uuid == ZERO_UUID:
        return Fabric(
            healthy=False,
            reason="FabricUuidZero",
            message=f"GPU {gpu.uuid} ({gpu.product or 'unknown product'}): the NVLink fabric has no identity (the "
            "cluster UUID is zero); its fabric manager has to give it one.",
        )
    if gpu.health is FabricHealth.UNHEALTHY:
        return Fabric(
            healthy=False,
            reason="FabricUnhealthy",
            message=f"GPU {gpu.uuid}: the driver calls its NVLink fabric unhealthy (health mask "
            f"{gpu.health_mask:#x}); `nvidia-smi -q` names the link.",
        )
    return None
