"""Boxes: whatever happens to who made them, nothing of them stays."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from testbed import build
from testbed.box import BIN, box, hierarchies, sweep
from testbed.errors import BedError
from testbed.process import Identity
from testbed.programs import NODE, cache_root
from tests.waiting import eventually

MAKER = """
import asyncio, sys
from pathlib import Path
from testbed.box import BIN, box

async def main():
    async with box("victim", folder=Path(sys.argv[1]), programs={"helper": Path(sys.argv[2])}) as made:
        program = await made.start("sleeper", [f"{BIN}/helper", "pause"])
        (hierarchy,) = sys.argv[3:]
        group = Path(hierarchy) / made.cgroup / "pods"
        group.mkdir()
        (group / "cgroup.procs").write_text(str(program.pid))
        print(made.init, program.pid, made.cgroup, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def helper() -> Path:
    programs = asyncio.run(build.built(cache_root(), wanted=NODE))
    return programs.path("helper")


def groups(name: str) -> list[Path]:
    return [root / name for root in hierarchies() if (root / name).exists()]


async def test_a_box_ends_with_all_that_runs_in_it(helper: Path, tmp_path: Path) -> None:
    async with box("one", folder=tmp_path, programs={"helper": helper}) as made:
        program = await made.start("sleeper", [f"{BIN}/helper", "pause"])
        assert Identity.of(program.pid) == program.identity
        assert await made.run("helper", "list", BIN) == "L helper\n"
        made.path("/var/lib/kubelet/left").touch()
        assert groups(made.cgroup)
    assert Identity.of(program.pid) is None
    assert Identity.of(made.init) is None
    assert groups(made.cgroup) == []
    assert not Path("/var/lib/kubelet/left").exists()


async def test_boxes_side_by_side_share_no_process_no_network_and_no_file(helper: Path, tmp_path: Path) -> None:
    async with (
        box("one", folder=tmp_path / "1", programs={"helper": helper}) as one,
        box("two", folder=tmp_path / "2", programs={"helper": helper}) as two,
    ):
        one.path("/run/mark").write_text("one")
        two.path("/run/mark").write_text("two")
        assert await one.run("helper", "cat", "/run/mark") == "one"
        assert one.network.readlink() != two.network.readlink()
        assert one.cgroup != two.cgroup
        with pytest.raises(BedError, match="in box two: `helper cat /run/nothing` failed"):
            await two.run("helper", "cat", "/run/nothing")


async def test_boxes_of_one_name_have_cgroups_of_their_own(helper: Path, tmp_path: Path) -> None:
    async with box("one", folder=tmp_path / "1", programs={"helper": helper}) as first:
        async with box("one", folder=tmp_path / "2", programs={"helper": helper}) as second:
            assert first.cgroup != second.cgroup
        assert groups(second.cgroup) == []
        assert groups(first.cgroup)


async def test_a_program_of_a_box_is_ended_alone(helper: Path, tmp_path: Path) -> None:
    async with box("one", folder=tmp_path, programs={"helper": helper}) as made:
        first = await made.start("first", [f"{BIN}/helper", "pause"])
        second = await made.start("second", [f"{BIN}/helper", "pause"])
        await first.stop()
        assert not first.running
        assert second.running
        await second.stop(kill=True)
        assert not second.running


async def test_a_maker_that_is_killed_leaves_nothing_that_the_next_one_does_not_remove(
    helper: Path, tmp_path: Path
) -> None:
    maker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", MAKER, str(tmp_path), str(helper), str(hierarchies()[0]), stdout=asyncio.subprocess.PIPE
    )
    assert maker.stdout is not None
    async with asyncio.timeout(60):
        init, program, cgroup = (await maker.stdout.readline()).decode().split()
    assert groups(cgroup)
    sweep()
    assert groups(cgroup), "the groups of a living maker stay"
    maker.send_signal(signal.SIGKILL)
    await maker.wait()
    await eventually(lambda: Identity.of(int(init)) is Identity.of(int(program)) is None, within=60)

    def swept() -> bool:
        sweep()
        return not groups(cgroup)

    await eventually(swept, within=60, what="the end of its cgroups")
