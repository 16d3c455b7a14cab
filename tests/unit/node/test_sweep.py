"""The look at prepared claims after a start of the agent, and from time to time. In virtual time."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import msgspec
import pytest

from interlace.api.resource import ResourceClaimStatus
from interlace.kube.client import Client
from interlace.node.cdi import PreparedClaim, spec_path
from interlace.node.demand import DeviceRef
from interlace.node.sweep import Sweeper, remove_orphans
from tests.unit.node.parts import CLIQUE, DOMAIN, NODE, Bench, a_claim, ref

pytestmark = pytest.mark.looptime

SWEEP = 600.0


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, sweep_interval=SWEEP)


@asynccontextmanager
async def sweeping(bench: Bench) -> AsyncIterator[None]:
    """The sweeper and the reporter run."""
    sweeper = Sweeper(
        bench.settings,
        client=cast("Client", bench.api),
        checkpoint=bench.checkpoint,
        preparer=bench.preparer,
        reporter=bench.reporter,
    )
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(part.run()) for part in (sweeper, bench.reporter)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


async def begun(bench: Bench) -> None:
    """A Prepare that an earlier run of the agent began."""
    await bench.checkpoint.put(
        PreparedClaim(
            claim=ref(),
            domain=DOMAIN,
            clique=CLIQUE,
            index=-1,
            devices=(DeviceRef(request="channel", pool=NODE, device="channel-0"),),
            injected=False,
            completed=False,
        )
    )


async def test_a_claim_that_was_begun_and_would_succeed_now_is_told(bench: Bench) -> None:
    bench.api.add(a_claim())
    await begun(bench)
    bench.join()
    async with sweeping(bench):
        await asyncio.sleep(1)
        assert bench.api.conditions() == {"Ready": ("False", "WaitingForKubelet")}


async def test_a_claim_that_kubelet_prepares_during_the_look_stays_ready(bench: Bench) -> None:
    bench.api.add(a_claim())
    await begun(bench)
    bench.join()
    bench.api.hold_get = asyncio.Event()
    async with sweeping(bench):
        await asyncio.sleep(0.01)
        looking, bench.api.hold_get = bench.api.hold_get, None
        await bench.preparer.prepare(ref())
        looking.set()
        await asyncio.sleep(1)
        assert bench.api.conditions() == {"Ready": ("True", "Prepared")}


async def test_a_claim_that_kubelet_is_calling_for_is_left_to_that_call(bench: Bench) -> None:
    bench.api.add(a_claim())
    await begun(bench)
    bench.join()
    bench.api.hold_get = asyncio.Event()
    async with sweeping(bench), asyncio.TaskGroup() as group:
        await asyncio.sleep(0.01)
        looking, bench.api.hold_get = bench.api.hold_get, asyncio.Event()
        group.create_task(bench.preparer.prepare(ref()))
        await asyncio.sleep(0.01)
        looking.set()
        await asyncio.sleep(1)
        bench.api.hold_get.set()
        await asyncio.sleep(1)
        assert [bench.api.conditions(write) for write in range(len(bench.api.applied))] == [
            {"Ready": ("True", "Prepared")}
        ]


async def test_nothing_is_said_of_a_claim_that_kubelet_unprepares_during_the_look(bench: Bench) -> None:
    bench.api.add(a_claim())
    bench.join()
    await asyncio.sleep(0.01)
    await bench.preparer.prepare(ref())
    await bench.reporter.forget(ref().uid)
    bench.api.hold_get = asyncio.Event()
    async with sweeping(bench):
        await asyncio.sleep(0.01)
        await bench.preparer.unprepare(ref())
        bench.api.hold_get.set()
        await asyncio.sleep(1)
    assert bench.api.applied == []


async def test_a_claim_that_was_given_to_another_node_frees_this_one_at_the_second_look(bench: Bench) -> None:
    bench.api.add(a_claim())
    bench.join()
    await asyncio.sleep(0.01)
    await bench.preparer.prepare(ref())
    async with sweeping(bench):
        await asyncio.sleep(1)
        bench.api.add(a_claim(node="tray-2"))
        await asyncio.sleep(1.2 * SWEEP)
        assert len(bench.checkpoint) == 1
        await asyncio.sleep(1.2 * SWEEP)
        assert len(bench.checkpoint) == 0
        assert bench.specs() == []


async def test_a_claim_that_is_allocated_nowhere_frees_the_node_as_well(bench: Bench) -> None:
    bench.api.add(a_claim())
    bench.join()
    await asyncio.sleep(0.01)
    await bench.preparer.prepare(ref())
    async with sweeping(bench):
        await asyncio.sleep(1)
        bench.api.add(msgspec.structs.replace(a_claim(), status=ResourceClaimStatus()))
        await asyncio.sleep(2.4 * SWEEP)
        assert len(bench.checkpoint) == 0


@pytest.mark.parametrize("content", [None, b"", b'{"devices":[]}'])
async def test_a_spec_that_was_removed_or_damaged_is_written_anew_for_containers_that_restart(
    bench: Bench, content: bytes | None
) -> None:
    bench.api.add(a_claim())
    bench.join()
    await bench.preparer.prepare(ref())
    path = spec_path(bench.settings.cdi_root, ref().uid)
    before = path.read_bytes()
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    async with sweeping(bench):
        await asyncio.sleep(1)
        assert path.read_bytes() == before
        path.unlink()
        await asyncio.sleep(1.2 * SWEEP)
        assert path.read_bytes() == before


async def test_a_spec_that_cannot_be_written_anew_is_tried_again_at_a_start(bench: Bench) -> None:
    bench.api.add(a_claim())
    bench.join()
    await bench.preparer.prepare(ref())
    path = spec_path(bench.settings.cdi_root, ref().uid)
    before = path.read_bytes()
    shutil.rmtree(bench.settings.cdi_root)
    bench.settings.cdi_root.write_text("a file in the place of the folder")
    async with sweeping(bench):
        await asyncio.sleep(1)
        bench.settings.cdi_root.unlink()
        await asyncio.sleep(10)
        assert path.read_bytes() == before


def test_what_a_killed_agent_was_writing_is_removed_at_the_next_start_and_nothing_else(bench: Bench) -> None:
    spec, checkpoint = spec_path(bench.settings.cdi_root, "uid-1"), bench.checkpoint.path
    half = [path.with_name(f".{path.name}.7.0.tmp") for path in (spec, checkpoint)]
    others = [bench.settings.cdi_root / ".nvidia.yaml.7.0.tmp", checkpoint.with_name("notes.tmp")]
    for path in (*half, *others):
        path.parent.mkdir(exist_ok=True)
        path.touch()
    remove_orphans(bench.checkpoint, bench.settings)
    assert [path.exists() for path in half] == [False, False]
    assert all(path.exists() for path in others)
