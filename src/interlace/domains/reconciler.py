"""One pass over one domain: from what is known to the writes that are missing.

A pass reads caches only and writes only what differs, so passing again is free; after each write it
waits until the cache has it, so no pass sees the past. Order of birth: finalizer, template, cliques,
status. Order of death: template, cliques, finalizer; it does not wait for Pods, whose claims keep
their nodes from other domains until they end. Everything is written against the version that was
read: a controller that has lost its Lease without knowing gets a conflict and changes nothing, and
no write meets a new object of an old name. Nothing is swept up before the server has said that the domain is gone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from interlace.api.computedomain import (
    FINALIZER,
    ComputeDomain,
    ComputeDomainClique,
    ComputeDomainStatus,
    PeerBarrier,
)
from interlace.api.core import ObjectReference, Pod
from interlace.api.meta import Condition
from interlace.domains import announce, barrier, channels, cliques, collisions, conditions, debounce, status
from interlace.domains.cliques import Draft, Plan
from interlace.domains.commons import Commons
from interlace.domains.eviction import Evictor
from interlace.domains.maps import MapWriter
from interlace.domains.membership import Membership, membership, pods_of
from interlace.domains.metrics import Metrics
from interlace.domains.places import Place
from interlace.domains.reasons import DomainReason, WaitReason
from interlace.domains.retry import Silence
from interlace.domains.running import Interruptions, Notice, Orphans
from interlace.domains.settings import ControllerSettings
from interlace.domains.sharing import Queueing
from interlace.domains.sources import Sources
from interlace.domains.templates import Refusal, Templates
from interlace.domains.waiting import Patience, Wait, waits
from interlace.kube.client import Client
from interlace.kube.errors import ApiError, Conflict, Invalid, KubeError, NotFound
from interlace.kube.events import Recorder
from interlace.kube.log import get_logger

NOT_FOUND_RETRY: Final = 1.0
"""Seconds until a pass is tried again that missed something on the server."""
HIDDEN_RETRY: Final = 300.0
"""Seconds until a domain that could not be read is looked for again."""
REST: Final = 8.0
"""Times the processor time of planning that a domain rests after a pass: a huge one must not crowd out the others."""

_log = get_logger(__name__)


class Memo(msgspec.Struct):
    """What is remembered of a domain between passes; losing it costs at most one extra write or event."""

    patience: Patience = msgspec.field(default_factory=Patience)
    silence: Silence = msgspec.field(default_factory=Silence)
    interruptions: Interruptions = msgspec.field(default_factory=Interruptions)
    queueing: Queueing = msgspec.field(default_factory=Queueing)
    grace: collisions.Grace = msgspec.field(default_factory=collisions.Grace)
    pending: debounce.Pending | None = None
    map_refusal: str = ""
    """Why the server did not take the node map last, in its own words."""
    status_at: float | None = None
    told_formed: bool = False
    """Whether the status that was written last said that the domain is formed, whatever the server kept of it."""
    template: Refusal = msgspec.field(default_factory=Refusal)
    waits: list[Wait] = []
    forming_since: float | None = None
    maker: tuple[str, str] = ("", "")
    """uid of the Pod that was asked for what makes the Pods one after another, and the answer, ``""`` for nothing."""
    rest_until: float = 0.0


class Reconciler:
    """The passes over all domains during one term of leadership."""

    def __init__(
        self,
        client: Client,
        *,
        sources: Sources,
        settings: ControllerSettings,
        recorder: Recorder,
        metrics: Metrics,
        touch: Callable[[ObjectReference], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._sources = sources
        self._settings = settings
        self._recorder = recorder
        self._metrics = metrics
        self._touch = touch
        self._clock = clock
        self._maps = MapWriter(client, sources=sources, namespace=settings.namespace, metrics=metrics)
        self._commons = Commons(
            self._maps, sources=sources, slots=settings.max_nodes, queued=self._is_queued, clock=clock
        )
        self._templates = Templates(client, sources=sources)
        self._evictor = Evictor(client, recorder=recorder)
        self._memos: dict[str, Memo] = {}
        self._orphans: dict[str, Orphans] = {}

    def waiting(self) -> list[WaitReason]:
        """One reason for each claim that waits, for metrics."""
        return [wait.reason for memo in self._memos.values() for wait in memo.waits]

    async def reconcile(self, uid: str) -> float | None:
        """Pass over the domain, or over a map that domains share; seconds until the next pass that no change will
        cause, None for none.
        """
        if (clique := channels.clique_of(uid)) is not None:
            return await self._commons.reconcile(clique)
        shown = self._sources.domain(uid)
        try:
            domain = shown or await self._hidden(uid)
            if domain is None:
                self._memos.pop(uid, None)
                self._sources.hungry.discard(uid)
                await self._sweep(uid)
                return self._tell_orphans(uid)
            if domain.metadata.deletion_timestamp is not None:
                self._memos.pop(uid, None)
                await self._tear_down(domain)
                self._orphans.setdefault(uid, Orphans(domain=_path_of(domain), now=self._clock()))
                return self._tell_orphans(uid)
            if shown is None:
                meta = domain.metadata
                _log.error("domain left alone: it cannot be read", namespace=meta.namespace, name=meta.name, domain=uid)
                return HIDDEN_RETRY
            memo = self._memos.setdefault(uid, Memo())
            if (rest := memo.rest_until - self._clock()) > 0:
                return rest
            return await self._keep(domain, memo)
        except NotFound as error:
            # Usually the domain itself, deleted while we passed; then the next pass has nothing to do.
            _log.info("not found", domain=uid, why=str(error))
            return NOT_FOUND_RETRY

    async def _hidden(self, uid: str) -> ComputeDomain | None:
        """The domain, metadata alone, if something of it is left and it exists although the cache does not show it.

        The cache leaves out what it cannot read: a newer release may have written it. That is no deletion.
        """
        if not self._sources.templates_of(uid) and not self._sources.cliques_of(uid):
            return None
        listing = await self._client.list(ComputeDomain, metadata_only=True)
        return next((domain for domain in listing.items if domain.metadata.uid == uid), None)

    async def _keep(self, domain: ComputeDomain, memo: Memo) -> float | None:
        uid, spec = domain.metadata.uid, domain.spec
        if spec is None:
            template_state = conditions.template_ready(DomainReason.NO_SPEC, name="", namespace="")
        else:
            if FINALIZER not in domain.metadata.finalizers:
                domain = await self._set_finalizers(domain, [*domain.metadata.finalizers, FINALIZER])
            template_state = await self._templates.keep(domain, spec=spec, memo=memo.template, now=self._clock())
        began = time.thread_time()
        claims = membership(self._sources.claims_of(uid), namespace=domain.metadata.namespace)
        places = {node: self._sources.place(node) for node in claims.members}
        next_share = self._share_in(uid, claims, memo)
        share = next_share is not None and next_share <= 0
        shared = domain.spec is not None and domain.spec.isolation == "Channel"
        slots = self._settings.max_nodes
        touched = {place.clique for place in places.values() if place.clique}
        if shared:
            plan = channels.view(
                claims.members, places=places, shared=self._sources.shared_near(uid, touched), slots=slots
            )
        else:
            plan = cliques.plan(
                claims.members,
                places=places,
                current=self._cliques_of(uid),
                slots=slots,
                share=share,
                wait=domain.spec.wait_for_peers if domain.spec is not None else None,
            )
        memo.rest_until = self._clock() + REST * (time.thread_time() - began)
        if shared:
            self._commons.look(uid, touched=touched)
            memo.map_refusal = self._commons.refusal(touched)
            next_map = self._commons.open(mine=touched) if share else None
        else:
            # What waits once the nodes are opened, with no free node for it, brings no node to the map; unless it has
            # waited long: then nodes come one after another as other domains leave them.
            settled = share and not self._sources.free_nodes and memo.queueing.is_fresh(now=self._clock())
            waiting = bool(claims.unallocated) and not settled
            next_map = await self._keep_cliques(domain, plan, waiting=waiting, memo=memo)
        next_status = await self._keep_status(domain, claims, plan, places, template_state, memo)
        next_collision = await self._end_collisions(domain, claims, memo)
        next_template = memo.template.next_in(now=self._clock())
        next_share = next_share if next_share is not None and next_share > 0 else None
        return _soonest(next_map, next_status, next_template, next_share, next_collision)

    def _share_in(self, uid: str, claims: Membership, memo: Memo) -> float | None:
        """Seconds until the nodes of the domain are opened for more of its Pods, at most 0 for now."""
        now, free_nodes = self._clock(), self._sources.free_nodes
        memo.queueing.observe(claims.unallocated, now=now)
        due = memo.queueing.due_in(free_nodes=free_nodes, forming=not self._cliques_of(uid), now=now)
        if due is not None and free_nodes:
            self._sources.hungry.add(uid)
        return due

    async def _end_collisions(self, domain: ComputeDomain, claims: Membership, memo: Memo) -> float | None:
        """Take Pods of the domain off nodes of others; seconds until there may be more to do."""
        uid, now = domain.metadata.uid, self._clock()
        found = [
            collision
            for node in self._sources.crowded & claims.members.keys()
            for collision in collisions.losers(self._sources.claims_on(node), node=node, group=self._sources.group)
            if collisions.domain_of(collision.claim) == uid
        ]
        for collision in memo.grace.due(found, now=now):
            mine, theirs = _path_of(domain), self._path(collision.holder)
            outcome = await self._evictor.end(collision, mine=mine, theirs=theirs)
            self._metrics.pods_evicted.inc(outcome.evicted)
            (memo.grace.postponed if outcome.blocked else memo.grace.settled)([collision], now=now)
        return memo.grace.next_in(now=now)

    def _path(self, uid: str) -> str:
        """How people call the domain; its uid where it is gone."""
        domain = self._sources.domain(uid)
        return _path_of(domain) if domain is not None else uid

    def _is_queued(self, uid: str) -> bool:
        memo = self._memos.get(uid)
        return memo is not None and memo.queueing.waits

    def _cliques_of(self, uid: str) -> dict[str, ComputeDomainClique]:
        """The maps that hold nodes of the domain, its own and those that it shares."""
        found = [*self._sources.cliques_of(uid), *self._sources.shared_of(uid)]
        return {cliques.clique_id(clique): clique for clique in found}

    async def _set_finalizers(self, domain: ComputeDomain, finalizers: list[str]) -> ComputeDomain:
        meta = domain.metadata
        patch = {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version, "finalizers": finalizers}}
        written = await self._client.merge_patch(ComputeDomain, meta.name, patch, namespace=meta.namespace)
        await self._sources.domains.reached(written.metadata.resource_version)
        return written

    async def _keep_cliques(self, domain: ComputeDomain, plan: Plan, *, waiting: bool, memo: Memo) -> float | None:
        current = self._cliques_of(domain.metadata.uid)
        drafts = {clique: draft for clique, draft in plan.drafts.items() if cliques.changed(draft, current.get(clique))}
        if not drafts:
            memo.pending, memo.map_refusal = None, ""
            return None
        now = self._clock()
        memo.pending = debounce.observe(memo.pending, wanted=drafts, now=now)
        grows = any(cliques.grows(draft, current.get(clique)) for clique, draft in drafts.items())
        opens = any(cliques.opens(draft, current.get(clique)) for clique, draft in drafts.items())
        if not opens and (due := debounce.map_due_in(memo.pending, waiting=waiting, grows=grows, now=now)) > 0:
            return due
        memo.pending = None
        failures: list[KubeError] = []

        async def write(clique: str, draft: Draft) -> None:
            try:
                await self._write_clique(domain, draft, current=current.get(clique))
            except KubeError as error:  # the maps of other cliques are written all the same
                failures.append(error)

        async with asyncio.TaskGroup() as group:
            for clique, draft in drafts.items():
                group.create_task(write(clique, draft))
        refusals = [
            error.message for error in failures if isinstance(error, ApiError) and not isinstance(error, Conflict)
        ]
        if refusals or not failures:
            memo.map_refusal = next(iter(refusals), "")
        if failures:
            raise failures[0]
        return None

    async def _write_clique(self, domain: ComputeDomain, draft: Draft, *, current: ComputeDomainClique | None) -> None:
        if current is not None and not draft.rows:
            await self._maps.delete(current)
            return
        body = cliques.body(draft, domain=domain, namespace=self._settings.namespace, current=current)
        await self._maps.write(body, current=current)

    async def _keep_status(
        self,
        domain: ComputeDomain,
        claims: Membership,
        plan: Plan,
        places: Mapping[str, Place],
        template_state: Condition,
        memo: Memo,
    ) -> float | None:
        meta, now = domain.metadata, self._clock()
        nodes = status.node_rows(
            claims.members,
            cliques=self._cliques_of(meta.uid).values(),
            fabricless=plan.fabricless,
            places=places,
        )
        self._notify(memo.interruptions.due(claim for found in claims.members.values() for claim in found))
        memo.waits = waits(claims, plan=plan, nodes=nodes, domain=_path_of(domain), refusal=memo.map_refusal)
        next_told = self._tell_pods(memo, now=now)
        if memo.waits and memo.forming_since is None:
            memo.forming_since = now
        before = domain.status or ComputeDomainStatus()
        found = [
            conditions.ready(nodes, spec=domain.spec, template=template_state, waits=memo.waits),
            template_state,
            conditions.within_one_clique(nodes),
            conditions.peers_connected(claims.members),
        ]
        if domain.spec is not None and (wanted_peers := domain.spec.wait_for_peers) is not None:
            maker = await self._maker(claims, wanted_peers, memo)
            found.append(barrier.peers_awaited(claims, barrier=wanted_peers, maker=maker))
        if self._sources.reports_elsewhere(claims.members):
            found.append(conditions.device_status_dropped(version=self._client.versions.spoken))
        wanted = ComputeDomainStatus(
            status=status.overall(nodes, num_nodes=domain.spec.num_nodes if domain.spec else 0),
            nodes=nodes,
            ready_nodes=status.ready_of(nodes),
            conditions=conditions.stamp(found, before=before.conditions, generation=meta.generation, now=_timestamp()),
        )
        if wanted == domain.status:
            return next_told
        formed = conditions.is_formed(wanted.conditions)
        due = debounce.status_due_in(written_at=memo.status_at, formed=formed and not memo.told_formed, now=now)
        if due > 0:
            return _soonest(due, next_told)
        await self._write_status(domain, wanted)
        memo.status_at, memo.told_formed = self._clock(), formed
        for event in announce.announcements(domain.status, wanted):
            self._recorder.event(_reference(domain), reason=event.reason, message=event.message, warning=event.warning)
        if not memo.waits and memo.forming_since is not None:
            if nodes:
                self._metrics.formation.observe(now - memo.forming_since)
            memo.forming_since = None
        return next_told

    async def _maker(self, claims: Membership, wanted: PeerBarrier, memo: Memo) -> str:
        """What makes the Pods of the domain one after another; asked of one Pod, where too few of them are there."""
        if not barrier.too_few(claims, barrier=wanted):
            return ""
        held = {pod.uid: pod for claim in barrier.waiting(claims) for pod in pods_of(claim)}
        if held and memo.maker[0] not in held:
            uid, pod = next(iter(held.items()))
            memo.maker = (uid, "")
            with suppress(NotFound):
                found = await self._client.get(Pod, pod.name, namespace=pod.namespace)
                memo.maker = (uid, barrier.maker_of(found) if found.metadata.uid == uid else "")
        return memo.maker[1]

    async def _write_status(self, domain: ComputeDomain, wanted: ComputeDomainStatus) -> None:
        meta = domain.metadata
        patch: dict[str, Any] = {"metadata": {"resourceVersion": meta.resource_version}, "status": wanted}
        try:
            written = await self._client.merge_patch(
                ComputeDomain, meta.name, patch, namespace=meta.namespace, subresource="status"
            )
        except Invalid as error:
            if domain.spec is not None:
                raise
            # A stored object without spec may no longer be written at all; the event has to do.
            _log.warning("status refused", domain=meta.uid, error=str(error))
            return
        await self._sources.domains.reached(written.metadata.resource_version)
        self._metrics.status_writes.inc()

    def _tell_pods(self, memo: Memo, *, now: float) -> float | None:
        """Tell Pods what they wait for and touch those that nobody prepares; seconds until there is more to do."""
        with_pods = [wait for wait in memo.waits if pods_of(wait.claim)]  # a claim without one has nobody to tell yet
        for wait in memo.patience.due(with_pods, now=now):
            for pod in pods_of(wait.claim):
                self._recorder.event(pod, reason=str(wait.reason), message=wait.message, warning=True)
        silent = [wait.claim for wait in memo.waits if wait.reason is WaitReason.PREPARE]
        for pod in memo.silence.due(silent, now=now):
            self._touch(pod)
        return _soonest(memo.patience.next_in(now=now), memo.silence.next_in(now=now))

    def _tell_orphans(self, uid: str) -> float | None:
        """Tell Pods that outlive their domain; seconds until there is more to do."""
        orphans, claims = self._orphans.get(uid), self._sources.claims_of(uid)
        if orphans is None:
            return None
        if not claims:
            del self._orphans[uid]
            return None
        now = self._clock()
        self._notify(orphans.due(claims, now=now))
        return orphans.next_in(claims, now=now)

    def _notify(self, notices: Iterable[Notice]) -> None:
        for notice in notices:
            for pod in pods_of(notice.claim):
                self._recorder.event(pod, reason=notice.reason, message=notice.message, warning=True)

    async def _tear_down(self, domain: ComputeDomain) -> None:
        await self._sweep(domain.metadata.uid)
        if FINALIZER in domain.metadata.finalizers:
            rest = [finalizer for finalizer in domain.metadata.finalizers if finalizer != FINALIZER]
            await self._set_finalizers(domain, rest)
            self._sources.deleted(domain)
            _log.info("domain removed", domain=domain.metadata.uid)

    async def _sweep(self, uid: str) -> None:
        """Remove what carries the domain's label."""
        for old in self._sources.templates_of(uid):
            await self._templates.release(old)
        for clique in self._sources.cliques_of(uid):
            await self._maps.delete(clique)
        self._commons.look(uid, touched=())


def _reference(domain: ComputeDomain) -> ObjectReference:
    resource, meta = ComputeDomain.resource, domain.metadata
    return ObjectReference(
        api_version=resource.api_version, kind=resource.kind, namespace=meta.namespace, name=meta.name, uid=meta.uid
    )


def _path_of(domain: ComputeDomain) -> str:
    return f"{domain.metadata.namespace}/{domain.metadata.name}"


def _soonest(*times: float | None) -> float | None:
    """The least of those that are not None, at least 0."""
    known = [seconds for seconds in times if seconds is not None]
    return max(0.0, min(known)) if known else None


def _timestamp() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
