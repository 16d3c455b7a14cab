"""Building once, whoever asks, and leaving nothing half done."""

import asyncio
import fcntl
import io
import os
from pathlib import Path

import pytest

from testbed import build, programs
from testbed.errors import BedError
from testbed.progress import Progress
from tests.unit.testbed.conftest import FakeGo
from tests.waiting import eventually

PROGRAMS = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"]


def silent() -> Progress:
    return Progress(stream=io.StringIO())


async def get(cache: Path, *, progress: Progress | None = None) -> programs.Programs:
    """Build a control plane; what nodes need as well depends on the system."""
    return await build.get(cache, progress=progress or silent(), wanted=programs.CONTROL_PLANE)


async def test_each_program_is_built_once_in_the_folder_of_its_pins(fake_go: FakeGo, tmp_path: Path) -> None:
    built = await get(tmp_path / "cache")
    assert built.missing(programs.CONTROL_PLANE) == []
    assert sorted(call.split()[0].rsplit("/", 1)[1] for call in fake_go.calls) == [
        "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "v3",
    ]  # fmt: skip
    assert {call.rsplit("/", 1)[1] for call in fake_go.calls} == {"etcd", "kubernetes"}


async def test_a_second_run_builds_nothing(fake_go: FakeGo, tmp_path: Path) -> None:
    await get(tmp_path)
    await get(tmp_path)
    assert len(fake_go.calls) == len(PROGRAMS)


async def test_runs_side_by_side_share_one_build_and_the_later_one_says_that_it_waits(
    fake_go: FakeGo, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    fake_go.install(behave=f"cat {gate} > /dev/null")
    told = io.StringIO()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        first = group.create_task(get(tmp_path / "cache"))
        await eventually(lambda: fake_go.calls, within=10)
        second = group.create_task(get(tmp_path / "cache", progress=Progress(stream=told)))
        await eventually(lambda: "waiting: another run builds" in told.getvalue(), within=10)
        fake_go.install()
        gate.write_bytes(b"go on")
    assert first.result() == second.result()
    assert len(fake_go.calls) == len(PROGRAMS)


async def test_a_lock_file_left_by_a_dead_run_holds_nobody_up(fake_go: FakeGo, tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        "python3", "-c", f"import fcntl,sys; f = open({str(tmp_path / 'lock')!r},'w'); fcntl.flock(f, fcntl.LOCK_EX); "
        "print('locked', flush=True); sys.stdin.read()",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert await process.stdout.readline() == b"locked\n"
    with (tmp_path / "lock").open("w") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    process.kill()
    await process.communicate()
    async with asyncio.timeout(10):
        assert (await get(tmp_path)).missing(programs.CONTROL_PLANE) == []


async def test_what_a_failing_build_says_is_told_and_nothing_is_left(fake_go: FakeGo, tmp_path: Path) -> None:
    fake_go.install(behave='echo half > "$out"; echo "server.go:7:2: undefined: frobnicate" >&2; exit 1')
    with pytest.raises(BedError, match=r"go\.etcd\.io/etcd/server/v3 failed: server\.go:7:2: undefined: frobnicate"):
        await get(tmp_path / "cache")
    assert [path for path in (tmp_path / "cache").rglob("*") if path.name != "lock"] == []


async def test_a_run_goes_on_where_a_failed_one_stopped(fake_go: FakeGo, tmp_path: Path) -> None:
    fake_go.install(behave='case "$1" in */kube-scheduler) exit 1;; esac')
    with pytest.raises(BedError, match="kube-scheduler failed"):
        await get(tmp_path / "cache")
    fake_go.install()
    await get(tmp_path / "cache")
    assert sum("kube-apiserver" in call for call in fake_go.calls) == 1
    assert sum("kube-scheduler" in call for call in fake_go.calls) == 2


async def test_a_cancelled_build_ends_its_compiler_and_frees_the_lock(fake_go: FakeGo, tmp_path: Path) -> None:
    compiler = tmp_path / "compiler"
    fake_go.install(behave=f"echo $$ > {compiler}; exec sleep 60")
    limit = asyncio.timeout(20)

    async def end_once_it_compiles() -> None:
        await eventually(lambda: compiler.exists() and compiler.read_text(), within=10)
        limit.reschedule(0)

    async def build_under_the_limit() -> None:
        async with limit, asyncio.TaskGroup() as group:
            group.create_task(end_once_it_compiles())
            await get(tmp_path / "cache")

    with pytest.raises(TimeoutError):
        await build_under_the_limit()
    pid = int(compiler.read_text())
    await eventually(lambda: not Path(f"/proc/{pid}").exists(), within=5)
    fake_go.install()
    async with asyncio.timeout(10):
        assert (await get(tmp_path / "cache")).missing(programs.CONTROL_PLANE) == []
    assert list((tmp_path / "cache").glob(".build-*")) == []


async def test_scratch_of_a_killed_build_is_removed_by_the_next_one(fake_go: FakeGo, tmp_path: Path) -> None:
    (tmp_path / ".build-dead").mkdir()
    (tmp_path / ".build-dead" / "etcd").touch()
    await get(tmp_path)
    assert list(tmp_path.glob(".build-*")) == []


async def test_without_a_terminal_each_program_is_one_line_with_its_seconds(fake_go: FakeGo, tmp_path: Path) -> None:
    fake_go.install(behave='echo "runtime/internal" >&2; echo "net/http" >&2')
    told = io.StringIO()
    await get(tmp_path, progress=Progress(stream=told))
    lines = told.getvalue().splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager", "kubectl",
    ]  # fmt: skip
    assert all(line.endswith(" s, 2 packages compiled") for line in lines)


async def test_using_programs_that_were_never_built_says_how_to_build_them(fake_go: FakeGo, tmp_path: Path) -> None:
    with pytest.raises(BedError, match=r"etcd, kube-apiserver, .* not built in .*; run `python -m testbed get`"):
        await build.built(tmp_path)


async def test_what_runc_needs_is_looked_for_before_anything_is_built(
    fake_go: FakeGo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A machine with a compiler, whose pkg-config knows no library.
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, code in (("gcc", 0), ("pkg-config", 1)):
        (tools / name).write_text(f"#!/bin/sh\nexit {code}\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake_go.folder / 'bin'}:{tools}:/usr/bin:/bin")
    with pytest.raises(BedError, match=r"^runc cannot be built: this system lacks libseccomp-dev; install") as caught:
        await build.get(tmp_path / "cache", progress=silent())
    assert "\n" not in str(caught.value)
    assert fake_go.calls == []


async def test_a_compiler_that_is_missing_is_named_too(
    fake_go: FakeGo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(fake_go.folder / "bin"))
    with pytest.raises(BedError, match="lacks gcc, pkg-config, libseccomp-dev;"):
        await build.require_c()
