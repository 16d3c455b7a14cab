"""Which imex-host Pods are outdated, and whether one may be replaced now. Pure.

The DaemonSet of the imex-hosts is OnDelete, so that no upgrade ends the IMEX of a running job. Invariant: a host
is replaced only where no claim of a domain has been allocated for a while, and only while few of the new hosts are
not Ready, so that a version which cannot start stops after these few.
"""

from __future__ import annotations

from collections.abc import Iterable

from interlace.api.core import ControllerRevision, Pod

REVISION_LABEL = "controller-revision-hash"
"""Of a ControllerRevision, and of the Pods that were made from it."""
SHARE = 0.1
"""Share of the hosts that may be on their way at a time; one always may."""


def newest_revision(revisions: Iterable[ControllerRevision]) -> str:
    """The label of the DaemonSet's present template; ``""`` while none is known."""
    newest = max(revisions, key=lambda item: item.revision, default=None)
    return newest.metadata.labels.get(REVISION_LABEL, "") if newest else ""


def revision_of(host: Pod) -> str:
    """The label of the template that the Pod was made from."""
    return host.metadata.labels.get(REVISION_LABEL, "")


def is_outdated(host: Pod, *, wanted: str) -> bool:
    """Whether the Pod is of an older template and nobody deletes it yet."""
    return bool(wanted) and host.metadata.deletion_timestamp is None and revision_of(host) != wanted


def places_left(*, hosts: int, on_their_way: int) -> int:
    """How many of ``hosts`` may be replaced now, while ``on_their_way`` of them are new and not Ready, or gone."""
    return max(0, max(1, int(hosts * SHARE)) - on_their_way)
