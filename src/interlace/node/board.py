"""Where a node's reports go if the API server does not keep them on claims: an annotation on its ResourceSlice.

Kubernetes 1.32 drops ``ResourceClaim.status.devices`` silently unless a feature gate is on. The agent may write
its own slice anyway and the controller watches slices. Invariant: the annotation is a field of a manager of its
own, so publishing devices and reporting never undo each other; on servers that keep reports nothing is written.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, Final

import msgspec

from interlace.api.resource import REPORTS_ANNOTATION, ResourceSlice
from interlace.kube.client import Client
from interlace.kube.log import get_logger
from interlace.kube.queue import WorkQueue, work

MANAGER: Final = "interlace-device-status"
log = get_logger(__name__)
_said = msgspec.json.Decoder(dict[str, list[dict[str, Any]]])


class Board:
    """The entries of ``status.devices`` of the claims of one node."""

    def __init__(self, client: Client, *, slice_name: str) -> None:
        self._client = client
        self._name = slice_name
        self._entries: dict[str, Sequence[Mapping[str, Any]]] = {}
        self._began = False
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

    def renew(self, found: ResourceSlice | None = None, *, claims: Container[str] = ()) -> None:
        """The slice stands: write what there is if ``found``, its present content, says something else.

        The first time, what an earlier run of the agent said there of ``claims`` still holds; the rest goes.
        """
        said = _entries_of(found)
        if not self._began:
            self._began = True
            self._entries = {uid: entries for uid, entries in said.items() if uid in claims} | self._entries
        if said != self._entries:
            self._queue.add(self._name)

    async def run(self) -> None:
        """Write until cancelled; a slice that is not there yet is tried again."""
        await work(self._queue, self._write, workers=1)

    async def _write(self, name: str) -> None:
        text = msgspec.json.encode(self._entries).decode() if self._entries else None
        annotations = {REPORTS_ANNOTATION: text} if text is not None else {}
        body = {"metadata": {"name": name, "annotations": annotations}}
        await self._client.apply(ResourceSlice, body, name=name, manager=MANAGER)


def _entries_of(found: ResourceSlice | None) -> dict[str, Sequence[Mapping[str, Any]]]:
    """The reports on a slice; one that cannot be read is to be replaced."""
    text = found.metadata.annotations.get(REPORTS_ANNOTATION) if found is not None else None
    if text is None:
        return {}
    try:
        return {**_said.decode(text)}
    except msgspec.MsgspecError:
        return {"": []}
