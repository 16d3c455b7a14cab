"""One leader among replicas, by a Lease.

Invariant: ``main`` runs only while this process holds the Lease, and is cancelled at the latest
``renew_deadline`` seconds after the start of the last renewal that succeeded, while nobody else
takes the Lease before ``duration`` seconds have passed since then. Others' Leases expire by our
own monotonic clock, counted from when we saw them change; the times written in them are never
compared with our clock.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from interlace.api.core import Lease, LeaseSpec
from interlace.kube.client import Client
from interlace.kube.errors import Conflict, KubeError, LeadershipLost, NotFound
from interlace.kube.log import get_logger

log = get_logger(__name__)

SHORTEST = 0.01
"""Seconds below which there is no time left for another attempt."""
RELEASE_LIMIT = 3.0
"""Seconds that giving the Lease back may take at exit."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """The Lease as last read, and when (monotonic) its content was first seen."""

    spec: LeaseSpec
    version: str
    at: float

    def free(self, now: float) -> bool:
        return not self.spec.holder_identity or now >= self.at + (self.spec.lease_duration_seconds or 0)


class Election:
    """A candidate. ``identity`` must be unique among the candidates; times are in seconds."""

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        name: str,
        identity: str,
        duration: float = 15,
        renew_deadline: float = 10,
        retry: float = 2,
    ) -> None:
        if not duration > renew_deadline > retry > 0:
            raise ValueError(
                f"an election needs duration > renew_deadline > retry > 0, not {duration}, {renew_deadline}, {retry}"
            )
        if duration != round(duration):
            raise ValueError(f"a Lease holds whole seconds, not {duration}")
        if not identity:
            raise ValueError("a candidate needs an identity")
        self._client = client
        self._namespace = namespace
        self._name = name
        self.identity = identity
        self._duration = duration
        self._renew_deadline = renew_deadline
        self._retry = retry
        self._seen: _Seen | None = None
        self._renewed = 0.0
        self.leading = False
        """Whether ``main`` runs under the Lease now."""

    @property
    def holder(self) -> str:
        """Who held the Lease when it was last read; empty for nobody or not known."""
        return (self._seen.spec.holder_identity or "") if self._seen is not None else ""

    async def lead(self, main: Callable[[], Awaitable[None]]) -> None:
        """Wait for the Lease, run ``main`` while we hold it, give it back when ``main`` has ended.

        Raises ``LeadershipLost`` when the Lease could not be renewed or went to another, and what
        ``main`` raised otherwise. Cancelling ends ``main`` first, then gives the Lease back.
        """
        await self._acquire()
        log.info("leading", lease=self._lease, identity=self.identity)
        self.leading = True
        try:
            async with asyncio.TaskGroup() as group:
                keeper = group.create_task(self._keep())
                await main()
                keeper.cancel()
        except BaseExceptionGroup as failed:
            lost = [error for error in failed.exceptions if isinstance(error, LeadershipLost)]
            raise (lost or failed.exceptions)[0] from None
        finally:
            self.leading = False
            await self._release()

    @property
    def _lease(self) -> str:
        return f"{self._namespace}/{self._name}"

    async def _acquire(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._renew_deadline):
                    if await self._try():
                        return
            except (KubeError, TimeoutError) as error:
                log.warning("cannot get the lease, will try again", lease=self._lease, why=str(error) or "time-out")
            await asyncio.sleep(self._retry * random.uniform(1.0, 1.2))

    async def _keep(self) -> None:
        """Renew until that fails for too long; ends only by an exception."""
        loop = asyncio.get_running_loop()
        began, why = self._renewed, ""
        while True:
            limit = self._renewed + self._renew_deadline
            await asyncio.sleep(max(0.0, min(began + self._retry, limit) - loop.time()))
            began = loop.time()
            if limit - began < SHORTEST:
                raise LeadershipLost(f"lease {self._lease}: not renewed in {self._renew_deadline:g} s: {why}")
            try:
                # Half the time each, so that one silent connection does not cost the Lease.
                async with asyncio.timeout_at(min(limit, began + self._renew_deadline / 2)):
                    held = await self._try()
            except (KubeError, TimeoutError) as error:
                why = str(error) or "no answer"
                log.warning("cannot renew the lease, will try again", lease=self._lease, why=why)
            else:
                if not held:
                    raise LeadershipLost(f"lease {self._lease}: {self.holder or 'nobody'} holds it")

    async def _try(self) -> bool:
        """Take or renew the Lease; False if another holds it. Raises ``Conflict`` if others write all the time."""
        read = self.holder != self.identity
        while True:
            started = asyncio.get_running_loop().time()
            if read:
                await self._read()
            seen = self._seen
            try:
                if seen is None:
                    lease = await self._create()
                elif seen.spec.holder_identity == self.identity or seen.free(started):
                    lease = await self._write(seen, self._claim(seen.spec))
                else:
                    return False
            except (Conflict, NotFound):  # somebody wrote in between: look at what it was
                if read:
                    raise
                read = True
                continue
            self._observe(lease)
            self._renewed = started
            return True

    async def _read(self) -> None:
        try:
            self._observe(await self._client.get(Lease, self._name, namespace=self._namespace))
        except NotFound:
            self._seen = None

    def _observe(self, lease: Lease) -> None:
        now = asyncio.get_running_loop().time()
        at = self._seen.at if self._seen is not None and self._seen.spec == lease.spec else now
        self._seen = _Seen(lease.spec, lease.metadata.resource_version, at)

    def _claim(self, old: LeaseSpec) -> dict[str, Any]:
        now = _now()
        own = old.holder_identity == self.identity
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": round(self._duration),
            "renewTime": now,
            "acquireTime": old.acquire_time if own and old.acquire_time else now,
            "leaseTransitions": (old.lease_transitions or 0) + (0 if own else 1),
        }

    async def _create(self) -> Lease:
        spec = {**self._claim(LeaseSpec()), "leaseTransitions": 0}
        body = {"metadata": {"name": self._name, "namespace": self._namespace}, "spec": spec}
        return await self._client.create(Lease, body, namespace=self._namespace)

    async def _write(self, seen: _Seen, spec: dict[str, Any]) -> Lease:
        body = {"metadata": {"resourceVersion": seen.version}, "spec": spec}
        return await self._client.merge_patch(Lease, self._name, body, namespace=self._namespace)

    async def _release(self) -> None:
        """Give the Lease back, so that the next leader need not wait for its end; best effort."""
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _now(), "acquireTime": _now()}
        try:
            async with asyncio.timeout(RELEASE_LIMIT):
                await self._read()  # a renewal may have been cut off after it took effect
                if self._seen is not None and self.holder == self.identity:
                    self._observe(await self._write(self._seen, spec))
                    log.info("lease given back", lease=self._lease, identity=self.identity)
        except (KubeError, TimeoutError) as error:
            log.warning("lease not given back", lease=self._lease, why=str(error) or "no answer")


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
