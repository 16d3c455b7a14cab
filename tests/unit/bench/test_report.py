"""The page of measurements."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench import cli, footprint
from bench.domains import page, report
from bench.domains.__main__ import main
from bench.domains.record import Memory, Requests, Run, Seconds, write
from bench.domains.recorded import read_all
from bench.domains.series import RESULTS
from tests.unit.bench.runs import make_run


@pytest.fixture(scope="module")
def known() -> list[Run]:
    return read_all([RESULTS / "upstream"])


def _row(text: str, *cells: str) -> str:
    """The one line of a table that begins with ``cells``."""
    start = "| " + " | ".join(cells) + " |"
    (line,) = [line for line in text.splitlines() if line.startswith(start)]
    return line


def test_the_recorded_driver_stands_beside_ours_with_a_ratio(known: list[Run]) -> None:
    ours = report.select([make_run(), make_run(run=2), make_run(run=3)], driver="interlace")
    text = report.comparison(ours, report.select(known, driver="upstream"))
    assert _row(text, "18", "requests to form") == "| 18 | requests to form | 44 | 350 (339–355) | × 8.0 less |"
    assert _row(text, "18", "conflicts").endswith("| 0 | 33 (31–34) | none of it |")


def test_only_sizes_that_both_have_are_compared(known: list[Run]) -> None:
    ours = report.select([make_run(nodes=7)], driver="interlace")
    assert not report.comparison(ours, report.select(known, driver="upstream"))


def test_a_budget_is_judged_by_the_median_of_the_runs() -> None:
    slow, quick = Seconds(all_prepared=3.0), Seconds(all_prepared=0.8)
    runs = [make_run(run=number, seconds=seconds) for number, seconds in enumerate([quick, slow, quick], 1)]
    text = report.budgets(report.select(runs, driver="interlace"))
    assert _row(text, "18", "creation to last channel prepared, s (1.0 + start of IMEX as set)").endswith(
        "| 0.80 (0.80–3.00) | 1.05 | met |"
    )


def test_a_missed_budget_is_said() -> None:
    runs = [make_run(requests={"formation": {"agent": Requests(writes=31)}, "teardown": {}})]
    text = report.budgets(report.select(runs, driver="interlace"))
    assert _row(text, "18", "writes among them").endswith("| 31 | 30 | **missed** |")


def test_a_run_that_did_not_end_well_is_counted_as_failed() -> None:
    runs = [make_run(), make_run(run=2, left_behind=["Pod default/p"]), make_run(run=3, problems=["late"])]
    assert report.times(report.select(runs, driver="interlace")).splitlines()[-1].endswith("| 2 |")


def test_side_series_do_not_mix_with_the_main_one() -> None:
    runs = [make_run(), make_run(tag="slow-imex", seconds=Seconds(all_prepared=9.0))]
    assert report.tags(runs, driver="interlace") == ["slow-imex"]
    assert [run.tag for run in report.select(runs, driver="interlace")[18]] == [""]


def test_every_request_of_ours_stands_in_the_page_but_leases() -> None:
    detail = {"steady": {"controller": {"patch leases": 5, "create events": 1}}}
    text = report.details(report.select([make_run(requests_detail=detail)], driver="interlace"))
    assert "create events" in text
    assert "leases" not in text


def test_the_page_says_what_is_simulated_and_what_was_recorded_elsewhere(known: list[Run]) -> None:
    text = page.render([make_run(), *known])
    assert "**Simulated:** kubelets" in text
    assert "recorded earlier" in text
    assert "2 cores (a CPU)" in text


def test_a_head_start_of_the_control_plane_is_said_only_for_runs_that_had_one(known: list[Run]) -> None:
    assert "nicer" not in page.render([make_run(), *known])
    settings = make_run().settings | {"nodes_yield": 10}
    assert "the programs of nodes 10 nicer" in page.render([make_run(settings=settings), *known])


def test_every_table_of_the_page_is_whole(known: list[Run]) -> None:
    starts = cli.Starts(python="3.11.7", cores=2, load_before=0.1, milliseconds={"interlace --help": [80.0, 120.0]})
    idle = footprint.Footprint(python="3.11.7", nodes=1, memory={"agent": [Memory(rss=40.0, pss=30.0, pss_sum=30.0)]})
    runs = [make_run(), make_run(nodes=36, cliques=2), make_run(tag="two-a-node", pods_per_node=2), *known]
    text = page.render(runs, starts=starts, idle=idle)
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({line.count("|") for line in block.splitlines()}) == 1, block
    assert "{" not in text
    assert "## Side series two-a-node" in text
    assert "| interlace --help | 100 (80–120) | 100 | met |" in text
    assert "| agent | 1 | 41.9 | 45 | met |" in text


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    write(make_run(), tmp_path / "interlace-n018-r1.json")
    target = tmp_path / "page.md"
    assert main(["report", str(tmp_path), "--to", str(target)]) == 0
    assert target.read_text().startswith("# Performance\n")


def test_without_results_of_ours_no_page_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "page.md"
    assert main(["report", str(tmp_path), "--to", str(target)]) == 2
    assert "run the bench first" in capsys.readouterr().err
    assert not target.exists()


def test_the_known_driver_without_its_programs_is_refused_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--driver", "upstream", "-n", "2"]) == 2
    assert capsys.readouterr().err.startswith("bench: give --driver-programs")


@pytest.mark.parametrize("bad", ["", "0", "x", "2,-1", "2;3"])
def test_sizes_that_are_no_counts_are_refused(bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["-n", bad])
    assert ended.value.code == 2
    assert "whole number" in capsys.readouterr().err
