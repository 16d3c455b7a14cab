"""What changed between a run that was killed and the next one: the file, and what exists."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from interlace.gke.journal import Journal, unfinished
from tests.unit.gke.engine.sky import SMALL, Crash, Run, Sky, apply_on, plan_on

pytestmark = pytest.mark.looptime


async def _killed(sky: Sky, folder: Path, collection: str) -> None:
    """A run that dies when the first POST to ``collection`` was answered."""

    def crash(_: int, moment: str) -> bool:
        last = sky.log[-1] if sky.log else None
        return moment == "after" and last is not None and last.method == "POST" and last.path.endswith(collection)

    sky.crash = crash
    with pytest.raises(BaseExceptionGroup) as caught:
        await apply_on(sky, folder, parallel=1)
    assert caught.group_contains(Crash)
    sky.crash = lambda *_: False


def _reasons(run: Run) -> set[str]:
    return {str(ending.reason) for ending in run.endings.values() if ending.reason}


async def test_what_an_earlier_file_began_is_changed_to_what_this_one_says(tmp_path: Path) -> None:
    sky = Sky(text=SMALL, seconds=0.3, narrow=True)
    await _killed(sky, tmp_path, "/networks")
    sky.read(SMALL.replace("  pools:", "  network: {mtu: 8000}\n  pools:"))
    assert _reasons(await apply_on(sky, tmp_path)) == set()
    assert (await plan_on(sky, tmp_path)).empty


async def test_what_cannot_be_changed_any_more_is_not_called_done(tmp_path: Path) -> None:
    sky = Sky(text=SMALL, seconds=0.3, narrow=True)
    await _killed(sky, tmp_path, "/nodePools")
    sky.read(SMALL.replace("nodes: 2", "nodes: 2\n      maxPods: 64"))
    run = await apply_on(sky, tmp_path)
    assert run.states()["create nodePool/gpu-pool"] == "failed"
    (reason,) = _reasons(run)
    assert "maxPodsConstraint.maxPodsPerNode cannot be changed" in reason


async def test_what_was_deleted_by_hand_after_the_kill_is_made_again(tmp_path: Path) -> None:
    sky = Sky(text=SMALL, seconds=0.3, narrow=True)
    await _killed(sky, tmp_path, "/networks")
    await asyncio.sleep(1)  # its operation ends meanwhile
    await plan_on(sky, tmp_path / "of somebody else")
    (made,) = [path for path in sky.paths() if "/networks/high-" in path]
    del sky.world.store.objects[made]
    assert _reasons(await apply_on(sky, tmp_path)) == set()
    assert made in sky.paths()
    assert (await plan_on(sky, tmp_path)).empty


async def test_what_ended_well_while_nobody_looked_is_not_under_way_any_more(tmp_path: Path) -> None:
    sky = Sky(text=SMALL, seconds=0.3, narrow=True)
    await _killed(sky, tmp_path, "/networks")
    await asyncio.sleep(1)
    with Journal(tmp_path) as journal:
        assert unfinished(journal.entries) != {}
    assert _reasons(await apply_on(sky, tmp_path)) == set()
    with Journal(tmp_path) as journal:
        assert unfinished(journal.entries) == {}
