"""How a simulated kubelet behaves: times that were measured on a real one, and what may be changed."""

from __future__ import annotations

import msgspec


class KubeletSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds. Defaults are those of a real kubelet 1.36 with containerd 2.2."""

    volume_wait: float = 0.31
    """From the binding to the first Prepare: kubelet waits for volumes on a 0.3 s grid (310-317 ms measured)."""
    sandbox: float = 0.2
    """From the last Prepare to running containers (200-240 ms measured, images present)."""
    prepare_deadline: float = 45.0
    """kubelet's limit of one call."""
    retry: tuple[float, float] = (64.0, 90.0)
    """When kubelet calls again after a failed Prepare, unless the pod changes (64-88 s measured)."""
    sync_backoff: float = 0.5
    """Until a pod that failed for another reason is tried again."""
    unprepare_retry: float = 1.0
    stop_grace: float = 5.0
    """How long a program of ours may take to end before it is killed; the Pod's own limit if shorter."""
    restart_backoff: float = 1.0
    """First wait before a failed container is started again; doubles up to 32 times this."""
    lease: float = 10.0
    """Renewal of the node's Lease."""
    plugin_scan: float = 0.1
    """How often the registrar folder is read (kubelet uses inotify)."""
    separate: frozenset[str] = frozenset()
    """Components of ours that run as processes of their own instead of in this one."""
