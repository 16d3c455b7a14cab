"""Result files, ours and those of the older harness."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.domains.record import write
from bench.domains.recorded import ResultError, read, read_all
from bench.domains.series import RESULTS, Series
from tests.unit.bench.runs import make_run

UPSTREAM = RESULTS / "upstream"


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    run = make_run()
    write(run, tmp_path / "new" / "interlace-n018-r1.json")
    assert read(tmp_path / "new" / "interlace-n018-r1.json") == run


def test_the_known_drivers_recorded_run_has_the_figures_of_its_file() -> None:
    run = read(UPSTREAM / "upstream-n018-r2.json")
    assert (run.driver, run.nodes, run.cliques, run.run, run.good) == ("upstream", 18, 1, 2, True)
    own = run.sum("formation", ("controller", "plugin", "daemon"))
    assert (own.writes, own.conflicts, own.refused, own.get, own.watch) == (96, 34, 1, 188, 36)
    assert own.total == 355
    assert run.watch_bytes["formation"]["computedomaincliques.resource.nvidia.com"] == 4137069
    assert run.requests["formation"]["controller-manager"].conflicts == 3
    assert len(run.pods) == 18
    assert max(pod.prepared or 0 for pod in run.pods) == 7.639


def test_what_an_old_file_does_not_have_stays_empty() -> None:
    run = read(UPSTREAM / "upstream-n018-r2.json")
    assert run.machine is None
    assert not run.steps
    assert all(memory.rss == 0 for memory in run.memory.values())


def test_all_recorded_runs_can_be_read_and_warm_ups_are_left_out(tmp_path: Path) -> None:
    write(make_run(run=0), tmp_path / "interlace-n018-r0.json")
    runs = read_all([UPSTREAM, tmp_path])
    assert [(run.driver, run.nodes, run.run) for run in runs] == [
        ("upstream", nodes, number) for nodes in (2, 4, 9, 18, 36) for number in (1, 2, 3)
    ]


@pytest.mark.parametrize("content", [b"{", b"[]", b"{}", b'{"driver": "x"}', b'{"driver": "x", "ok": true}'])
def test_a_file_that_is_no_result_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken-n002-r1.json"
    path.write_bytes(content)
    with pytest.raises(ResultError, match=r"broken-n002-r1\.json"):
        read(path)


def test_a_new_series_clears_the_files_of_its_own_name_and_size_alone(tmp_path: Path) -> None:
    series = Series(out=tmp_path)
    tagged = Series(out=tmp_path, tag="two-a-node")
    keep = [tagged.file(driver="interlace", nodes=18, run=1), series.file(driver="interlace", nodes=36, run=1)]
    gone = [series.file(driver="interlace", nodes=18, run=run) for run in (0, 1, 7)]
    for path in (*keep, *gone):
        path.touch()
    series.clear(driver="interlace", nodes=18)
    assert sorted(tmp_path.iterdir()) == sorted(keep)
