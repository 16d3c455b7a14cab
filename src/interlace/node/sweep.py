"""Compares what is prepared here with the API server: after a start, and from time to time.

A claim that is gone, was replaced by another of the same name, or is not allocated here any more, is unprepared
at the second look: kubelet may have lost its own record and will never do it. CDI specs that belong to no claim
of the checkpoint are removed.
"""

from __future__ import annotations

import asyncio
import contextlib
import random

from interlace.api.resource import ResourceClaim
from interlace.kube.client import Client
from interlace.kube.errors import KubeError, NotFound
from interlace.kube.log import get_logger
from interlace.node.cdi import SPEC_PREFIX, PreparedClaim, found_specs, remove_spec
from interlace.node.checkpoint import Checkpoint
from interlace.node.demand import our_devices
from interlace.node.errors import AgentError, Refusal
from interlace.node.files import remove_unfinished
from interlace.node.prepare import Preparer, prepared_verdict
from interlace.node.report import Reporter
from interlace.node.settings import AgentSettings
from interlace.node.standing import Standing, reported

RETRY = 5.0
"""Seconds until a claim that could not be judged is looked at again after a start."""
log = get_logger(__name__)


def remove_orphans(checkpoint: Checkpoint, settings: AgentSettings) -> None:
    """Remove claim specs that the checkpoint does not know, and files that an agent was killed in writing.

    Call it before kubelet may call. Never raises.
    """
    remove_unfinished(settings.cdi_root, f"{SPEC_PREFIX}*")
    remove_unfinished(checkpoint.path.parent, checkpoint.path.name)
    for uid, _ in list(found_specs(settings.cdi_root)):
        if checkpoint.get(uid) is None:
            log.warning("removed a CDI spec that belongs to no prepared claim", uid=uid, folder=str(settings.cdi_root))
            with contextlib.suppress(OSError):
                remove_spec(settings.cdi_root, uid)


class Sweeper:
    """One pass after the start, then one each ``sweep_interval``."""

    def __init__(
        self,
        settings: AgentSettings,
        *,
        client: Client,
        checkpoint: Checkpoint,
        preparer: Preparer,
        reporter: Reporter,
    ) -> None:
        self._settings = settings
        self._client = client
        self._checkpoint = checkpoint
        self._preparer = preparer
        self._reporter = reporter
        self._suspects: set[str] = set()

    async def run(self) -> None:
        """Until cancelled."""
        # What was prepared by an earlier run of the agent; only these have a standing to take over.
        inherited = {held.claim.uid: held for held in self._checkpoint}
        while inherited:
            for uid, held in list(inherited.items()):
                if self._checkpoint.get(uid) is not held or await self._look(held, first=True):
                    del inherited[uid]
            if inherited:
                await asyncio.sleep(RETRY)
        while True:
            await asyncio.sleep(self._settings.sweep_interval * random.uniform(0.9, 1.1))
            self._suspects &= {held.claim.uid for held in self._checkpoint}
            for held in list(self._checkpoint):
                await self._look(held, first=False)

    async def _look(self, held: PreparedClaim, *, first: bool) -> bool:
        """Whether the claim could be judged."""
        uid = held.claim.uid
        if not held.claim.name:
            return True  # the driver that prepared it did not write the name down: kubelet will unprepare it
        try:
            claim = await self._client.get(ResourceClaim, held.claim.name, namespace=held.claim.namespace)
        except NotFound:
            claim = None
        except KubeError as error:
            log.warning("a prepared claim cannot be compared", claim=str(held.claim), cause=str(error))
            return False
        if self._checkpoint.get(uid) is not held:
            return True  # kubelet called meanwhile, and knows better
        if claim is not None and claim.metadata.uid == uid and our_devices(claim, node=self._settings.node_name):
            self._suspects.discard(uid)
            if held.completed and not held.inherited and not self._restore(held, claim):
                return False
            if held.inherited:
                pass  # nothing was said of it, and its IMEX is not ours
            elif first and held.completed:
                self._adopt(held, claim)
            elif first:
                self._preparer.resume(held.claim, claim)
            return True
        # A pod deleted by force loses its claim seconds before kubelet unprepares it: one look is not enough.
        if uid not in self._suspects:
            self._suspects.add(uid)
            return False
        self._suspects.discard(uid)
        log.warning("unprepared a claim that this node no longer has", claim=str(held.claim), uid=uid)
        try:
            await self._preparer.unprepare(held.claim)
        except AgentError as error:
            log.warning("a claim that is gone cannot be unprepared", claim=str(held.claim), cause=str(error))
            return False
        return True

    def _restore(self, held: PreparedClaim, claim: ResourceClaim) -> bool:
        try:
            self._preparer.restore(held, claim)
        except Refusal as refusal:
            log.warning("the CDI spec of a prepared claim cannot be written anew", cause=refusal.message)
            return False
        return True

    def _adopt(self, held: PreparedClaim, claim: ResourceClaim) -> None:
        standing = Standing(
            claim=held.claim,
            devices=held.devices,
            domain=held.domain,
            clique=held.clique,
            index=held.index,
            ready=prepared_verdict(held),
        )
        self._reporter.adopt(standing, reported(claim))
