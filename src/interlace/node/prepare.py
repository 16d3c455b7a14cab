"""Prepare and Unprepare of claims.

Prepare reads the claim once, notes in the checkpoint that it began, waits until the gate opens, writes
the CDI spec, completes the checkpoint and answers. It never answers "try again": kubelet would
come back only after a minute. It waits on changes, never by polling, and not beyond its deadline.
Invariant: a claim has at most one such work; an answer without error means that checkpoint and CDI
spec are written; after Unprepare neither is there, and nothing of an earlier Prepare goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from interlace.api.core import ObjectReference
from interlace.api.resource import ResourceClaim
from interlace.kube.client import Client
from interlace.kube.errors import KubeError, NotFound
from interlace.kube.log import get_logger
from interlace.node.cdi import PreparedClaim, is_whole, remove_spec, spec_path, write_spec
from interlace.node.checkpoint import Checkpoint
from interlace.node.clock import age, now
from interlace.node.demand import ClaimRef, Demand, check_uid, consumers, demand, our_devices
from interlace.node.errors import Reason, Refusal, StateError
from interlace.node.gate import Closed, Open, gate
from interlace.node.procfs import read_channel_count, read_channel_major
from interlace.node.report import Reporter
from interlace.node.settings import AgentSettings
from interlace.node.standing import Standing, Verdict
from interlace.node.state import NodeState
from interlace.node.turns import Turns

GET_TIMEOUT = 10.0
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 4.0
"""Between two attempts to read a claim, in seconds."""
log = get_logger(__name__)


class EventSink(Protocol):
    """The part of ``kube.events.Recorder`` in use."""

    def event(self, about: ObjectReference, *, reason: str, message: str, warning: bool = False) -> None: ...


class Preparer:
    """The claims of this node."""

    def __init__(
        self,
        settings: AgentSettings,
        *,
        client: Client,
        checkpoint: Checkpoint,
        state: NodeState,
        reporter: Reporter,
        events: EventSink,
    ) -> None:
        self._settings = settings
        self._client = client
        self._checkpoint = checkpoint
        self._state = state
        self._reporter = reporter
        self._events = events
        self._turns = Turns()
        self._failed: dict[str, Demand] = {}
        self._alarms: dict[str, asyncio.TimerHandle] = {}
        state.on_change(self._recheck)

    async def prepare(self, ref: ClaimRef) -> PreparedClaim:
        """Prepare a claim, or find that it is. Raises ``Refusal``, at the deadline at the latest."""
        check_uid(ref)
        why: list[Closed] = []
        deadline = asyncio.get_running_loop().time() + self._settings.prepare_timeout
        try:
            async with self._turns.prepare(ref, deadline=deadline):
                return await self._prepare(ref, why)
        except TimeoutError:
            last = why[-1] if why else Closed(reason=Reason.API_UNREACHABLE, message="no step of it ended in time.")
            refusal = Refusal(
                last.reason,
                f"{ref}: not prepared within {self._settings.prepare_timeout:g} s: {last.message}",
                permanent=False,
            )
            self._tell(ref, refusal)
            raise refusal from None

    async def unprepare(self, ref: ClaimRef) -> None:
        """Forget a claim, known or not. Raises ``StateError`` if its files cannot be removed."""
        check_uid(ref)
        async with self._turns.unprepare(ref):
            self._failed.pop(ref.uid, None)
            if (alarm := self._alarms.pop(ref.uid, None)) is not None:
                alarm.cancel()
            await self._reporter.forget(ref.uid)
            try:
                remove_spec(self._settings.cdi_root, ref.uid)
            except OSError as error:
                path = spec_path(self._settings.cdi_root, ref.uid)
                raise StateError(f"{ref}: {path} cannot be removed: {error.strerror}.") from error
            await self._checkpoint.drop(ref.uid)
            self._state.poke()

    def resume(self, ref: ClaimRef, claim: ResourceClaim) -> None:
        """A Prepare of an earlier run of the agent ended half-way: when it would succeed, say so."""
        if ref.uid in self._turns:
            return
        try:
            self._failed[ref.uid] = demand(ref, claim, node=self._state.node)
        except Refusal as refusal:
            log.info("a claim that was begun cannot be prepared", claim=str(ref), cause=refusal.message)
            return
        self._recheck()

    def restore(self, held: PreparedClaim, claim: ResourceClaim) -> None:
        """Write the CDI spec of a completed claim anew if it was removed or damaged. Raises ``Refusal``.

        A container that is started again in a living Pod needs it, and kubelet does not call Prepare for that.
        """
        if self._whole(held) or held.claim.uid in self._turns:
            return
        wanted = demand(held.claim, claim, node=self._state.node)
        channels = range(read_channel_count(self._settings.proc_params)) if wanted.all_channels else [held.channel]
        self._write_spec(held, major=read_channel_major(self._settings.proc_devices), channels=channels)
        log.warning("wrote a CDI spec anew", claim=str(held.claim), folder=str(self._settings.cdi_root))

    async def _prepare(self, ref: ClaimRef, why: list[Closed]) -> PreparedClaim:
        held = self._checkpoint.get(ref.uid)
        if held is not None and held.completed and self._whole(held):
            return held
        self._failed.pop(ref.uid, None)
        started = asyncio.get_running_loop().time()
        claim = await self._read(ref, why)
        why.clear()
        try:
            wanted = demand(ref, claim, node=self._state.node)
            begun = self._begun(wanted)
            await self._put(begun)
            with self._called(wanted):
                passed = await self._wait(wanted, why, report_at=started + self._settings.report_after)
                return await self._complete(wanted, begun, passed=passed, why=why)
        except Refusal as refusal:
            self._refused(ref, claim, refusal)
            raise

    def _whole(self, held: PreparedClaim) -> bool:
        """Whether what was completed is still there: somebody may have emptied or damaged the CDI folder."""
        return not held.injected or is_whole(self._settings.cdi_root, held)

    async def _read(self, ref: ClaimRef, why: list[Closed]) -> ResourceClaim:
        """The claim object; tries again while the API server does not answer."""
        pause = FIRST_PAUSE
        while True:
            try:
                async with asyncio.timeout(GET_TIMEOUT):
                    return await self._client.get(ResourceClaim, ref.name, namespace=ref.namespace)
            except NotFound:
                raise Refusal(
                    Reason.CLAIM_NOT_FOUND, f"{ref} does not exist (any more); delete its pod.", permanent=True
                ) from None
            except (KubeError, TimeoutError) as error:
                cause = str(error) or f"no answer within {GET_TIMEOUT:g} s"
                why.append(Closed(reason=Reason.API_UNREACHABLE, message=f"the claim cannot be read: {cause}"))
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _begun(self, wanted: Demand) -> PreparedClaim:
        before = self._checkpoint.get(wanted.claim.uid)
        return PreparedClaim(
            claim=wanted.claim,
            domain=wanted.domain,
            clique=self._state.fabric.clique,
            index=-1,
            devices=wanted.devices,
            injected=False,
            completed=False,
            since=before.since if before is not None and before.since else now(),
        )

    def _waited(self, uid: str) -> float:
        """Seconds since kubelet asked for the claim first, over restarts of the agent."""
        held = self._checkpoint.get(uid)
        return age(held.since) if held is not None and held.since else 0.0

    @contextmanager
    def _called(self, wanted: Demand) -> Iterator[None]:
        """Kubelet calls for the claim, until it is prepared or given up: IMEX is not turned to another domain."""
        uid = wanted.claim.uid
        self._state.waiting[uid] = wanted.domain
        self._state.poke()
        try:
            yield
        finally:
            del self._state.waiting[uid]
            self._state.poke()

    async def _wait(self, wanted: Demand, why: list[Closed], *, report_at: float) -> Open:
        """Wait until the gate opens."""
        uid, told = wanted.claim.uid, False
        try:
            while True:
                changed = self._state.next_change()
                waited = self._waited(uid)
                verdict = gate(wanted, self._state.view(), waited=waited)
                if isinstance(verdict, Open):
                    return verdict
                if verdict.permanent:
                    raise Refusal(verdict.reason, f"{wanted.claim}: {verdict.message}", permanent=True)
                why.append(verdict)
                loop = asyncio.get_running_loop()
                times = [] if told else [report_at]
                times += [] if verdict.until is None else [loop.time() + verdict.until - waited]
                try:
                    async with asyncio.timeout_at(min(times, default=None)):
                        await changed.wait()
                except TimeoutError:
                    if told or loop.time() < report_at:
                        continue
                    told = True
                    self._want(wanted, ready=Verdict(good=False, reason=verdict.reason, message=verdict.message))
        except asyncio.CancelledError:
            # Cancelled or out of time: what it waited for may still come.
            self._failed[uid] = wanted
            raise

    async def _complete(
        self, wanted: Demand, begun: PreparedClaim, *, passed: Open, why: list[Closed]
    ) -> PreparedClaim:
        index = passed.index
        done = PreparedClaim(
            claim=begun.claim,
            domain=begun.domain,
            clique=self._state.fabric.clique,
            index=index,
            devices=begun.devices,
            injected=index >= 0,
            completed=True,
            since=now(),
            imex=passed.imex,
            channel=passed.channel,
        )
        if done.injected:
            major = read_channel_major(self._settings.proc_devices)
            count = read_channel_count(self._settings.proc_params)
            if done.channel >= count:
                raise Refusal(
                    Reason.NO_CHANNEL_DEVICE,
                    f"{done.claim}: it has IMEX channel {done.channel}, and the driver of node {self._state.node} has "
                    f"{count} channels; raise NVreg_ImexChannelCount.",
                    permanent=True,
                )
            self._write_spec(done, major=major, channels=range(count) if wanted.all_channels else [done.channel])
        why.append(Closed(reason=Reason.STATE_NOT_WRITTEN, message=f"{self._checkpoint.path} takes too long to write."))
        await self._put(done)
        ready = prepared_verdict(done)
        if passed.late:
            ready = Verdict(
                good=True,
                reason=Reason.STARTED_WITHOUT_PEERS,
                message=f"The time to wait for the peers is over, so the pod starts without them: {passed.late}.",
            )
            for pod in wanted.pods:
                self._events.event(pod, reason=ready.reason, message=ready.message, warning=True)
        self._want(wanted, ready=ready, index=index)
        return done

    def _write_spec(self, done: PreparedClaim, *, major: int, channels: Iterable[int]) -> None:
        try:
            write_spec(self._settings.cdi_root, done, major=major, channels=channels)
        except OSError as error:
            path = spec_path(self._settings.cdi_root, done.claim.uid)
            raise Refusal(
                Reason.STATE_NOT_WRITTEN,
                f"{done.claim}: the CDI spec {path} cannot be written: {error.strerror}.",
                permanent=False,
            ) from error

    async def _put(self, claim: PreparedClaim) -> None:
        try:
            await self._checkpoint.put(claim)
        except StateError as error:
            raise Refusal(Reason.STATE_NOT_WRITTEN, f"{claim.claim}: {error}", permanent=False) from error

    def _want(self, wanted: Demand, *, ready: Verdict, index: int = -1) -> None:
        self._reporter.want(
            Standing(
                claim=wanted.claim,
                devices=wanted.devices,
                domain=wanted.domain,
                clique=self._state.fabric.clique,
                index=index,
                ready=ready,
            )
        )

    def _refused(self, ref: ClaimRef, claim: ResourceClaim, refusal: Refusal) -> None:
        """Say it in the claim's status, as far as the claim has a device of ours, and on its pods."""
        if claim.metadata.uid != ref.uid:
            return  # another claim of the same name, and other pods
        devices = our_devices(claim, node=self._state.node)
        if devices:
            self._reporter.want(
                Standing(
                    claim=ref,
                    devices=devices,
                    domain="",
                    clique=self._state.fabric.clique,
                    index=-1,
                    ready=Verdict(good=False, reason=refusal.reason, message=refusal.message),
                )
            )
        for pod in consumers(ref, claim):
            self._events.event(pod, reason=refusal.reason, message=refusal.message, warning=True)

    def _tell(self, ref: ClaimRef, refusal: Refusal) -> None:
        """The same at the deadline, when only the demand is known."""
        wanted = self._failed.get(ref.uid)
        if wanted is None:
            return
        self._want(wanted, ready=Verdict(good=False, reason=refusal.reason, message=refusal.message))
        for pod in wanted.pods:
            self._events.event(pod, reason=refusal.reason, message=refusal.message, warning=True)

    def _look_again(self, uid: str, *, after: float) -> None:
        """Time alone will open the gate, and nothing else may happen until then."""
        if uid not in self._alarms:
            self._alarms[uid] = asyncio.get_running_loop().call_later(max(0.0, after), self._ring, uid)

    def _ring(self, uid: str) -> None:
        del self._alarms[uid]
        self._recheck()

    def _recheck(self) -> None:
        """Claims that failed and would succeed now: say so, since kubelet itself calls again only after a minute."""
        if not self._failed:
            return
        view = self._state.view()
        for uid, wanted in list(self._failed.items()):
            verdict = gate(wanted, view, waited=self._waited(uid))
            if isinstance(verdict, Closed) and verdict.until is not None:
                self._look_again(uid, after=verdict.until - self._waited(uid))
            if isinstance(verdict, Open):
                del self._failed[uid]
                self._want(
                    wanted,
                    ready=Verdict(
                        good=False,
                        reason=Reason.WAITING_FOR_KUBELET,
                        message="IMEX is ready now; kubelet has to call again, which it does after about a minute or "
                        "when the pod changes.",
                    ),
                )


def prepared_verdict(done: PreparedClaim) -> Verdict:
    """Condition ``Ready`` of a prepared claim."""
    if not done.injected:
        return Verdict(
            good=True,
            reason=Reason.PREPARED,
            message="This node has no multi-node NVLink fabric: no channel is needed.",
        )
    channel = f", channel {done.channel}" if done.imex else ""
    return Verdict(
        good=True,
        reason=Reason.PREPARED,
        message=f"IMEX is ready at index {done.index} of clique {done.clique}{channel}.",
    )
