"""Reports of claims where the API server does not keep them: on the node's ResourceSlice. In virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from interlace.api.meta import ObjectMeta
from interlace.api.resource import REPORTS_ANNOTATION, ResourcePool, ResourceSlice, ResourceSliceSpec
from interlace.kube.client import Client
from interlace.kube.errors import Invalid
from interlace.node.board import Board
from interlace.node.demand import DeviceRef
from interlace.node.report import Reporter
from interlace.node.standing import Standing, Verdict
from tests.unit.node.parts import CLIQUE, DOMAIN, NODE, FakeApi, ref

pytestmark = pytest.mark.looptime

GOOD = Verdict(good=True, reason="Prepared", message="m")
BAD = Verdict(good=False, reason="ImexStarting", message="m")


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
    """A reporter with a board on a server that drops the status of devices."""

    def __init__(self) -> None:
        self.api = FakeApi()
        self.api.keeps_reports = False
        client = cast("Client", self.api)
        self.board = Board(client, slice_name="the-slice")
        self.reporter = Reporter(client, board=self.board)

    @property
    def posted(self) -> list[Any]:
        """What was written to the slice, write by write."""
        notes = [body["metadata"]["annotations"] for body in self.api.applied if body.get("status") is None]
        return [json.loads(note[REPORTS_ANNOTATION]) if note else None for note in notes]


@asynccontextmanager
async def running() -> AsyncIterator[Run]:
    run = Run()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(part.run()) for part in (run.reporter, run.board)]
        try:
            yield run
        finally:
            for task in tasks:
                task.cancel()


async def idle() -> None:
    await asyncio.sleep(0.01)


async def test_what_a_claim_does_not_keep_goes_to_the_slice() -> None:
    async with running() as run:
        run.reporter.want(standing(GOOD))
        await idle()
    [(entry,)] = [list(found.values()) for found in run.posted]
    assert [(item["driver"], item["pool"]) for item in entry] == [("compute-domain.nvidia.com", NODE)]
    assert entry[0]["conditions"][0]["reason"] == "Prepared"


async def test_the_same_is_posted_once_and_a_change_again() -> None:
    async with running() as run:
        for verdict in (BAD, BAD, GOOD):
            run.reporter.want(standing(verdict))
            await idle()
    assert [found["uid-1"][0]["conditions"][0]["status"] for found in run.posted] == ["False", "True"]


async def test_a_server_that_keeps_reports_costs_no_write_to_the_slice() -> None:
    async with running() as run:
        run.api.keeps_reports = True
        run.reporter.want(standing(GOOD))
        await idle()
        await run.reporter.forget("uid-1")
        await idle()
    assert run.posted == []


async def test_once_the_server_keeps_reports_the_slice_is_cleared() -> None:
    async with running() as run:
        run.reporter.want(standing(BAD))
        await idle()
        run.api.keeps_reports = True
        run.reporter.want(standing(GOOD))
        await idle()
    assert run.posted[-1] is None


async def test_the_report_goes_with_its_claim() -> None:
    async with running() as run:
        run.reporter.want(standing(GOOD))
        await idle()
        await run.reporter.forget("uid-1")
        await idle()
    assert run.posted[-1] is None


async def test_a_slice_that_was_made_anew_gets_the_reports_again() -> None:
    async with running() as run:
        run.board.renew()
        await idle()
        assert run.posted == []
        run.reporter.want(standing(GOOD))
        await idle()
        run.board.renew()
        await idle()
    assert len(run.posted) == 2
    assert run.posted[0] == run.posted[1]


async def test_a_slice_that_is_not_there_yet_is_tried_again() -> None:
    async with running() as run:
        run.board.put("uid-1", [{"driver": "d"}])
        run.api.apply_failures = [Invalid("spec.driver: Required value", status=422)]
        await asyncio.sleep(60)
    assert run.posted == [{"uid-1": [{"driver": "d"}]}]


def slice_with(reports: dict[str, Any]) -> ResourceSlice:
    return ResourceSlice(
        metadata=ObjectMeta(name="the-slice", annotations={REPORTS_ANNOTATION: json.dumps(reports)}),
        spec=ResourceSliceSpec(
            driver="compute-domain.nvidia.com", pool=ResourcePool(name=NODE, generation=1, resource_slice_count=1)
        ),
    )


async def test_a_new_run_keeps_what_was_said_of_its_claims_and_removes_the_rest() -> None:
    entry = [{"driver": "compute-domain.nvidia.com", "pool": NODE, "device": "channel-0"}]
    async with running() as run:
        run.board.renew(slice_with({"uid-1": entry, "uid-of-one-that-is-gone": entry}), claims={"uid-1"})
        await idle()
        assert run.posted == [{"uid-1": entry}]
        run.board.renew(slice_with({"uid-1": entry}), claims={"uid-1"})
        await idle()
        assert len(run.posted) == 1
        await run.reporter.forget("uid-1")
        await idle()
    assert run.posted[-1] is None


@pytest.mark.parametrize("text", ["rubbish", "[]", '{"uid": 3}'])
async def test_reports_of_an_earlier_run_that_cannot_be_read_are_removed(text: str) -> None:
    odd = slice_with({})
    odd.metadata.annotations[REPORTS_ANNOTATION] = text
    async with running() as run:
        run.board.renew(odd)
        await idle()
    assert run.posted == [None]
