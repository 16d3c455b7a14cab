"""Writes how claims stand into their status: one apply a change, never inside a kubelet call.

Invariant: at most one write for a claim is on its way; a newer standing replaces one that was not
written yet; after ``forget`` has returned no write for the claim begins. A claim that is gone, replaced
or deallocated is dropped without a word: that is how claims end.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

import msgspec

from interlace.api.computedomain import DRIVER
from interlace.api.resource import ResourceClaim
from interlace.kube.client import Client
from interlace.kube.errors import Conflict, Invalid, NotFound
from interlace.kube.log import get_logger
from interlace.kube.queue import WorkQueue, work
from interlace.node.board import Board
from interlace.node.clock import now
from interlace.node.standing import PEERS, READY, Standing, Verdict, body

WORKERS = 4
FORGET_WAIT = 2.0
"""How long ``forget`` waits for a write that is on its way."""
log = get_logger(__name__)


class Reporter:
    """The wanted standing of each claim, and what was written."""

    def __init__(self, client: Client, *, board: Board | None = None) -> None:
        """``board`` takes what the API server does not keep on claims."""
        self._client = client
        self._board = board
        self._queue: WorkQueue[str] = WorkQueue()
        self._wanted: dict[str, Standing] = {}
        self._written: dict[str, dict[str, tuple[Verdict, str]]] = {}
        self._flying: dict[str, asyncio.Event] = {}

    def want(self, standing: Standing) -> None:
        """Say this of the claim; what was said of its peers before is kept unless it says something itself."""
        uid = standing.claim.uid
        before = self._wanted.get(uid)
        if standing.peers is None and before is not None and standing.ready.good:
            standing = msgspec.structs.replace(standing, peers=before.peers)
        self._want(standing)

    def want_peers(self, uid: str, peers: Verdict | None) -> None:
        """Say this of the claim's peers, if anything was said of the claim."""
        before = self._wanted.get(uid)
        if before is not None:
            self._want(msgspec.structs.replace(before, peers=peers))

    def want_ready(self, uid: str, ready: Verdict) -> None:
        """Say this of a claim whose readiness was said before."""
        before = self._wanted.get(uid)
        if before is not None and before.ready != ready:
            self._want(msgspec.structs.replace(before, ready=ready))

    def ready_of(self, uid: str) -> Verdict | None:
        """What is said of the claim now."""
        before = self._wanted.get(uid)
        return before.ready if before is not None else None

    def peers_of(self, uid: str) -> Verdict | None:
        """What is said of the claim's peers now."""
        before = self._wanted.get(uid)
        return before.peers if before is not None else None

    def adopt(self, standing: Standing, said: Mapping[str, tuple[Verdict, str]]) -> None:
        """Take over what an earlier run of the agent wrote, so that the same is not written again."""
        self._written[standing.claim.uid] = dict(said)
        peers = said.get(PEERS)
        self._want(msgspec.structs.replace(standing, peers=peers[0] if peers is not None else None))

    async def forget(self, uid: str) -> None:
        """Say nothing more of this claim; waits a little for a write that is on its way."""
        self._wanted.pop(uid, None)
        self._written.pop(uid, None)
        if self._board is not None:
            self._board.drop(uid)
        flying = self._flying.get(uid)
        if flying is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FORGET_WAIT):
                    await flying.wait()

    async def run(self) -> None:
        """Write until cancelled."""
        await work(self._queue, self._write, workers=WORKERS)

    def _want(self, standing: Standing) -> None:
        uid = standing.claim.uid
        if self._wanted.get(uid) != standing:
            self._wanted[uid] = standing
            self._queue.add(uid)

    async def _write(self, uid: str) -> None:
        standing = self._wanted.get(uid)
        if standing is None:
            return
        written = self._written.get(uid, {})
        if {kind: verdict for kind, (verdict, _) in written.items()} == standing.conditions:
            return
        since = {kind: _since(written.get(kind), verdict) for kind, verdict in standing.conditions.items()}
        landed = self._flying[uid] = asyncio.Event()
        claim = standing.claim
        wanted = body(standing, since=since)
        try:
            answer = await self._client.apply(
                ResourceClaim,
                wanted,
                name=claim.name,
                namespace=claim.namespace,
                manager=DRIVER,
                subresource="status",
            )
        except (NotFound, Conflict, Invalid) as error:
            level = log.warning if isinstance(error, Invalid) else log.debug
            level("claim status not written", claim=str(claim), cause=str(error))
            if uid in self._wanted:
                self._remember(uid, standing, since)
        else:
            log.debug("claim status written", claim=str(claim), ready=standing.conditions[READY].reason)
            if uid in self._wanted:
                self._remember(uid, standing, since)
                self._post(uid, wanted["status"]["devices"], kept=bool(answer.status.devices))
        finally:
            landed.set()
            del self._flying[uid]

    def _post(self, uid: str, entries: list[dict[str, Any]], *, kept: bool) -> None:
        if self._board is not None and entries:
            if kept:
                self._board.drop(uid)
            else:
                self._board.put(uid, entries)

    def _remember(self, uid: str, standing: Standing, since: Mapping[str, str]) -> None:
        self._written[uid] = {kind: (verdict, since[kind]) for kind, verdict in standing.conditions.items()}


def _since(before: tuple[Verdict, str] | None, verdict: Verdict) -> str:
    return before[1] if before is not None and before[0].good == verdict.good and before[1] else now()
