"""Files of ``-J``, with all that is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlace.verify.reader import read_text
from interlace.verify.run import Run, document

SAMPLE = (Path(__file__).parents[2] / "data" / "nccl-logs" / "ag.json").read_text()
SECRET = "must-never-be-stored"


def one(text: str) -> Run:
    (run,) = read_text(text)
    return run


def changed(**values: Any) -> str:
    return json.dumps({**json.loads(SAMPLE), **values}, indent=1)


def whole(run: Run) -> str:
    """Every value that the run holds."""
    return msgspec.json.encode(run).decode()


def test_rows_ranks_name_and_average_come_from_their_places() -> None:
    run = one(SAMPLE)
    assert (run.collective, run.collective_from, run.ranks, run.ranks_from) == ("all_gather", "args", 2, "devices")
    assert document(run)["rows"][1] == {
        "size": 64,
        "count": 8,
        "type": "float",
        "redop": "none",
        "root": -1,
        "oop": {"time_us": 31.81455, "algbw": 0.002012, "busbw": 0.001006, "wrong": 0},
        "ip": {"time_us": 21.84155, "algbw": 0.00293, "busbw": 0.001465, "wrong": 0},
    }
    assert (run.avg_busbw_printed, run.checked, run.hosts) == (1.1342, True, ("vm",))


def test_of_the_environment_only_allowed_names_are_kept() -> None:
    run = one(SAMPLE)
    assert SECRET not in whole(run)
    assert {text.partition("=")[0].partition("_")[0] for text in run.environment} == {"NCCL", "CUDA", "OMPI"}
    assert "NCCL_NVLS_ENABLE=0" in run.environment


@pytest.mark.parametrize("cut", range(200, len(SAMPLE), 97))
def test_a_cut_file_keeps_complete_rows_and_no_secret(cut: int) -> None:
    runs = read_text(SAMPLE[:cut])
    rows = document(one(SAMPLE))["rows"]
    for run in runs:
        assert document(run)["rows"] == rows[: len(run.rows)]
        assert run.partial_rows in {0, 1}
        assert run.warnings[0] == "the JSON file was not finished, as after a crash"
        assert SECRET not in whole(run)
    if cut > SAMPLE.index('"size": 512'):
        assert len(runs) == 1


def test_the_environment_as_an_object_keeps_no_secret_either() -> None:
    run = one(changed(env={"EXAMPLE_TOKEN": SECRET, "NCCL_DEBUG": "INFO", "OTHER": {"deep": [SECRET]}}))
    assert SECRET not in whole(run)
    assert len(run.rows) == 6


def test_the_misspelt_keys_of_older_versions_are_understood() -> None:
    text = SAMPLE.replace("average_bus_bandwidth", "average_bus_bandwidith").replace('"bandwidth"', '"bandwidith"')
    assert one(text).avg_busbw_printed == 1.1342


def test_bare_inf_and_nan_in_quotes_do_not_end_the_reading() -> None:
    text = SAMPLE.replace('"alg_bw": 0.0,', '"alg_bw": inf,', 1).replace('"bus_bw": 0.0,', '"bus_bw": "nan",', 1)
    run = one(text)
    assert len(run.rows) == 6
    assert json.loads(msgspec.json.encode(document(run)))["rows"][0]["oop"]["algbw"] is None
    assert run.avg_busbw_mean == pytest.approx(1.1342, rel=0.1)


def test_unchecked_rows_are_null_and_count_nothing() -> None:
    text = SAMPLE.replace('"nwrong": 0.0', '"nwrong": null').replace('"validation": 1', '"validation": 0')
    run = one(text)
    assert (run.wrong_total, run.out_of_bounds, run.checked) == (None, None, False)
    assert run.warnings == ("results were not checked (-c 0): the count of wrong elements says nothing",)


def test_cpu_time_is_known_by_its_key() -> None:
    run = one(SAMPLE.replace('"time":', '"cpu_time":'))
    assert (run.cpu_time, len(run.rows)) == (True, 6)


def test_one_entry_for_each_process_or_for_each_gpu_gives_the_same_ranks() -> None:
    data = json.loads(SAMPLE)
    device = data["config"]["devices"][0]
    two = [{**device, "rank": rank} for rank in (0, 1)]
    assert one(changed(config={**data["config"], "devices": two})).ranks == 2
    run = one(changed(config={**data["config"], "devices": [{**device, "rank": rank} for rank in (0, 2)]}))
    assert run.ranks == 4
    assert "the devices say 4 ranks, size and count say 2" in run.warnings


def test_iterations_are_passed_over() -> None:
    data = json.loads(SAMPLE)
    for row in data["results"]:
        row["out_of_place_per_iter"] = {
            "min_us": 1.0,
            "times_us": [1.0, 2.0],
            "per_process_max_times_us": [[1.0], [2.0]],
        }
    assert document(one(json.dumps(data)))["rows"] == document(one(SAMPLE))["rows"]


def test_a_document_on_one_line_and_several_in_one_log_are_read() -> None:
    compact = json.dumps(json.loads(SAMPLE))
    runs = read_text(f"some words\n{compact}\n{SAMPLE}\n# the end\n")
    assert [len(run.rows) for run in runs] == [6, 6]


def test_a_document_behind_a_prefix_is_read() -> None:
    text = "".join(f"[pod/nccl/x] 2026-11-30T08:46:49Z {line}\n" for line in SAMPLE.splitlines())
    assert document(one(text))["rows"] == document(one(SAMPLE))["rows"]


@pytest.mark.parametrize(
    "text", ['{"level": "info"}\n', "{\n}\n", "{\n" + '"a": [1,2' + "\n", '{"results": []}', "{{{{\n"]
)
def test_other_json_is_no_run_and_hides_no_table(text: str) -> None:
    row = "1048576 16384 float none -1 4654.5 0.23 0.21 0 3890.9 0.27 0.25 0\n"
    assert read_text(text) == []
    (run,) = read_text(text + "\n" + row)
    assert len(run.rows) == 1


def test_rows_beyond_those_that_a_run_keeps_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    number = len(json.loads(SAMPLE)["results"])
    monkeypatch.setattr("interlace.verify.jsonlog.KEPT", 4)
    run = one(SAMPLE)
    assert (len(run.rows), run.left_out) == (4, number - 4)
    assert run.warnings == (f"only the first 4 rows are kept, {number - 4} more are left out",)
