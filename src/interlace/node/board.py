"""Where a node's reports go if the API server does not keep them on claims: an annotation on its ResourceSlice.

Kubernetes 1.32 drops ``ResourceClaim.status.devices`` silently unless a feature gate is on. The agent may write
its own slice anyway and the controller watches slices. Invariant: the annotation is a field of a manager of its
own, so publishing devices and reporting never undo each other; on servers that keep reports nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from interlace.api.resource import REPORTS_ANNOTATION, ResourceSlice
from interlace.kube.client import Client
from interlace.kube.log import get_logger
from interlace.kube.queue import WorkQueue, work

MANAGER: Final = "interlace-device-status"
log = get_logger(__name__)


class Board:
    """The entries of ``status.devices`` of the claims of one node."""

    def __init__(self, client: Client, *, slice_name: str) -> None:
        self._client = client
        self._name = slice_name
        self._entries: dict[str, Sequence[Mapping[str, Any]]] = {}
        self._queue: WorkQueue[str] = WorkQueue()

    def put(self, uid: str, entries: Sequence[Mapping[str, Any]]) -> None:
        """Say this of the claim from now on."""
        if self._entries.get(uid) != entries:
            if not self._entries:
                log.warning("the API server does not keep the status of devices; it goes to the ResourceSlice instead")
            self._entries[uid] = entries
            self._queue.add(self._name)

    def drop(self, uid: str) -> None:
        """Say nothing more of the claim."""
        if self._entries.pop(uid, None) is not None:
            self._queue.add(self._name)

    def renew(self) -> None:
        """The slice was made anew: write what there is once more."""
        if self._entries:
            self._queue.add(self._name)

    async def run(self) -> None:
        """Write until cancelled; a slice that is not there yet is tried again."""
        await work(self._queue, self._write, workers=1)

    async def _write(self, name: str) -> None:
        text = msgspec.json.encode(self._entries).decode() if self._entries else None
        annotations = {REPORTS_ANNOTATION: text} if text is not None else {}
        body = {"metadata": {"name": name, "annotations": annotations}}
        await self._client.apply(ResourceSlice, body, name=name, manager=MANAGER)
