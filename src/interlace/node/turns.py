"""One claim, one work: calls for the same claim take turns, and Unprepare ends a Prepare that waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from interlace.node.demand import ClaimRef
from interlace.node.errors import Reason, Refusal


class _Turn:
    """What the calls for one claim share."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0
        self.withdrawals = 0
        self.scope: asyncio.Timeout | None = None


class Turns:
    """The turns of all claims; a claim without a call takes no memory."""

    def __init__(self) -> None:
        self._turns: dict[str, _Turn] = {}

    def __len__(self) -> int:
        return len(self._turns)

    def __contains__(self, uid: object) -> bool:
        """Whether a call for the claim is in progress."""
        return uid in self._turns

    @asynccontextmanager
    async def prepare(self, claim: ClaimRef, *, deadline: float) -> AsyncGenerator[None]:
        """Hold the turn until ``deadline`` (loop time): then ``TimeoutError``.

        An Unprepare of the claim ends it at once, with a ``Refusal`` of reason ``Withdrawn``.
        """
        turn = self._enter(claim.uid)
        try:
            async with asyncio.timeout_at(deadline), turn.lock:
                if turn.withdrawals:
                    raise TimeoutError
                async with asyncio.timeout_at(deadline) as scope:
                    turn.scope = scope
                    try:
                        yield
                    finally:
                        turn.scope = None
        except TimeoutError:
            if turn.withdrawals:
                raise Refusal(
                    Reason.WITHDRAWN, f"{claim}: kubelet unprepared it while it was being prepared.", permanent=True
                ) from None
            raise
        finally:
            self._leave(claim.uid, turn)

    @asynccontextmanager
    async def unprepare(self, claim: ClaimRef) -> AsyncGenerator[None]:
        """Hold the turn; a Prepare of the same claim that is in progress ends at its next wait."""
        turn = self._enter(claim.uid)
        turn.withdrawals += 1
        try:
            if turn.scope is not None and not turn.scope.expired():
                turn.scope.reschedule(asyncio.get_running_loop().time())
            async with turn.lock:
                yield
        finally:
            turn.withdrawals -= 1
            self._leave(claim.uid, turn)

    def _enter(self, uid: str) -> _Turn:
        turn = self._turns.setdefault(uid, _Turn())
        turn.users += 1
        return turn

    def _leave(self, uid: str, turn: _Turn) -> None:
        turn.users -= 1
        if not turn.users:
            del self._turns[uid]
