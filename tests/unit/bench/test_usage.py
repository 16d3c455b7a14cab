"""CPU time and memory of processes."""

from __future__ import annotations

import os
from pathlib import Path

from bench.domains.usage import Sample, difference, read_memory, read_sample, read_usage, total_cpu

TICK = os.sysconf("SC_CLK_TCK")


def _proc(root: Path, pid: int, *, name: str, ticks: tuple[int, int, int, int]) -> None:
    folder = root / str(pid)
    folder.mkdir(parents=True)
    fields = ["S", *["0"] * 10, *map(str, ticks), *["0"] * 20]
    (folder / "stat").write_text(f"{pid} ({name}) {' '.join(fields)}\n")
    (folder / "status").write_text("Name:\tx\nVmHWM:\t   20480 kB\nVmRSS:\t   10240 kB\n")
    (folder / "smaps_rollup").write_text("0-f ---p [rollup]\nRss:   10240 kB\nPss:    5120 kB\n")


def _sample(cpu: float, *, helpers: float = 0.0, peak: float = 1.0) -> Sample:
    return Sample(cpu=cpu, helpers=helpers, peak=peak)


def test_times_are_read_behind_a_name_with_brackets_and_spaces(tmp_path: Path) -> None:
    _proc(tmp_path, 7, name="a) b (c", ticks=(TICK, 2 * TICK, 4 * TICK, 8 * TICK))
    assert read_sample(7, proc=tmp_path) == Sample(cpu=3.0, helpers=12.0, peak=20.0)


def test_a_process_that_is_gone_has_no_sample_and_no_memory(tmp_path: Path) -> None:
    assert read_sample(8, proc=tmp_path) is None
    assert read_memory([8], proc=tmp_path) is None


def test_this_process_has_figures() -> None:
    used = read_usage({"harness": [os.getpid()]})
    assert used["harness"][os.getpid()].peak > 1
    memory = read_memory([os.getpid()])
    assert memory is not None
    assert 0 < memory.pss <= memory.rss


def test_memory_names_the_largest_and_the_sum(tmp_path: Path) -> None:
    for pid in (1, 2):
        _proc(tmp_path, pid, name="x", ticks=(0, 0, 0, 0))
    memory = read_memory([1, 2, 3], proc=tmp_path)
    assert memory is not None
    assert (memory.rss, memory.pss, memory.pss_sum) == (10.0, 5.0, 10.0)


def test_a_process_that_came_meanwhile_counts_from_its_start_and_one_that_went_not_at_all() -> None:
    before = {"agent": {1: _sample(5.0, helpers=1.0), 2: _sample(9.0)}}
    after = {"agent": {1: _sample(5.5, helpers=1.25, peak=30.0), 3: _sample(2.0)}}
    used = difference(before, after)["agent"]
    assert (used.n, used.cpu_s, used.helpers_cpu_s, used.peak_rss_mib) == (2, 2.5, 0.25, 30.0)
    assert total_cpu({"agent": used}) == 2.75


def test_a_kind_without_processes_has_used_nothing() -> None:
    used = difference({}, {"nvidia-imex": {}})["nvidia-imex"]
    assert (used.n, used.cpu_s, used.peak_rss_mib) == (0, 0, 0)
