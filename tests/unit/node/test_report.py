"""Claim status: what is written, what is not, and what ends quietly. In virtual time."""

from __future__ import annotations

import asyncio
from typing import Self, cast

import msgspec
import pytest

from interlace.kube.client import Client
from interlace.kube.errors import Conflict, Invalid, KubeError, NotFound, Unreachable
from interlace.node.demand import DeviceRef
from interlace.node.report import FORGET_WAIT, Reporter
from interlace.node.standing import Standing, Verdict
from tests.unit.node.parts import CLIQUE, DOMAIN, NODE, FakeApi, ref

pytestmark = pytest.mark.looptime

GOOD = Verdict(good=True, reason="Prepared", message="m")
BAD = Verdict(good=False, reason="ImexStarting", message="m")
AWAY = Verdict(good=False, reason="Disconnected", message="m")
BACK = Verdict(good=True, reason="Connected", message="m")


def standing(ready: Verdict) -> Standing:
    return Standing(
        claim=ref(),
        devices=(DeviceRef(request="channel", pool=NODE, device="channel-0"),),
        domain=DOMAIN,
        clique=CLIQUE,
        index=0,
        ready=ready,
    )


class Run:
    """A reporter that writes."""

    def __init__(self) -> None:
        self.api = FakeApi()
        self.reporter = Reporter(cast("Client", self.api))

    async def __aenter__(self) -> Self:
        self.group = await asyncio.TaskGroup().__aenter__()
        self.task = self.group.create_task(self.reporter.run())
        return self

    async def __aexit__(self, *error: object) -> None:
        self.task.cancel()
        await self.group.__aexit__(None, None, None)

    async def idle(self) -> None:
        await asyncio.sleep(0.01)


async def test_the_same_is_written_once() -> None:
    async with Run() as run:
        for _ in range(3):
            run.reporter.want(standing(GOOD))
            await run.idle()
    assert len(run.api.applied) == 1


async def test_a_newer_standing_replaces_one_that_was_not_written_yet() -> None:
    async with Run() as run:
        run.reporter.want(standing(BAD))
        run.reporter.want(standing(GOOD))
        await run.idle()
    assert [run.api.conditions()] == [{"Ready": ("True", "Prepared")}]
    assert len(run.api.applied) == 1


async def test_what_was_said_of_peers_stays_and_can_be_taken_back() -> None:
    async with Run() as run:
        run.reporter.want_peers("uid-1", AWAY)
        await run.idle()
        assert run.api.applied == []
        run.reporter.want(standing(GOOD))
        run.reporter.want_peers("uid-1", AWAY)
        run.reporter.want(standing(GOOD))
        await run.idle()
        assert run.api.conditions() == {"Ready": ("True", "Prepared"), "PeersConnected": ("False", "Disconnected")}
        run.reporter.want_peers("uid-1", BACK)
        await run.idle()
        assert run.api.conditions()["PeersConnected"] == ("True", "Connected")


async def test_the_time_of_a_condition_changes_with_its_status_alone() -> None:
    async with Run() as run:
        said = {"Ready": (GOOD, "2020-01-01T00:00:00Z"), "PeersConnected": (BACK, "2020-01-02T00:00:00Z")}
        run.reporter.adopt(standing(GOOD), said)
        await run.idle()
        assert run.api.applied == [], "the same as an earlier run of the agent wrote"
        run.reporter.want_peers("uid-1", AWAY)
        await run.idle()
    times = {c["type"]: c["lastTransitionTime"] for c in run.api.applied[0]["status"]["devices"][0]["conditions"]}
    assert times["Ready"] == "2020-01-01T00:00:00Z"
    assert times["PeersConnected"] > "2026"


@pytest.mark.parametrize(
    "error",
    [
        NotFound("gone", status=404),
        Conflict("another uid", status=409),
        Invalid("deallocated", status=422),
    ],
    ids=["gone", "replaced", "deallocated"],
)
async def test_a_claim_that_ended_is_dropped(error: KubeError) -> None:
    async with Run() as run:
        run.api.apply_failures = [error]
        run.reporter.want(standing(GOOD))
        await asyncio.sleep(600)
    assert run.api.applied == []


async def test_a_server_that_is_away_is_tried_again() -> None:
    async with Run() as run:
        run.api.apply_failures = [Unreachable("no", url="u"), Unreachable("no", url="u")]
        run.reporter.want(standing(GOOD))
        await asyncio.sleep(60)
    assert len(run.api.applied) == 1


async def test_forget_waits_for_a_write_on_its_way_but_not_for_ever() -> None:
    async with Run() as run:
        run.api.hold_apply = asyncio.Event()
        run.reporter.want(standing(GOOD))
        await run.idle()
        began = asyncio.get_running_loop().time()
        await run.reporter.forget("uid-1")
        assert asyncio.get_running_loop().time() - began == pytest.approx(FORGET_WAIT)
        run.api.hold_apply.set()
        await run.idle()
        run.reporter.want(msgspec.structs.replace(standing(GOOD), index=4))
        await run.idle()
        assert len(run.api.applied) == 2, "a later Prepare of the claim is told again"
