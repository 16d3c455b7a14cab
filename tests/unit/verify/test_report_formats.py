"""The forms for other programs: valid, complete, the same each time, and safe with what a log says."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from xml.etree import ElementTree as ET

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from interlace.verify.report.content import Report
from interlace.verify.report.junit import junit
from interlace.verify.report.markdown import markdown
from interlace.verify.report.matrix import Finding, Matrix, Node, Pair
from interlace.verify.report.prometheus import SIZES, exposition
from interlace.verify.report.table import SCHEMA, csv_text, document
from interlace.verify.run import document as run_document
from tests.unit.verify.recorded import DATA, published
from tests.unit.verify.reports import EVIL, matrix_of, of_lines, pairs_document
from tests.unit.verify.scenes import HEALTHY, SWEEP, table, times

FORMS: dict[str, Callable[[Report], str]] = {
    "junit": junit,
    "markdown": markdown,
    "prometheus": exposition,
    "csv": csv_text,
    "json": lambda report: msgspec.json.encode(document(report)).decode(),
}
EXAMPLES = settings(max_examples=40, deadline=None)


def fails() -> Report:
    return of_lines(published("nccl-tcpxo"), matrix=matrix_of(pairs_document(slow="node-03")))


def samples(report: Report) -> dict[str, list[tuple[dict[str, str], float]]]:
    return {
        family.name: [(each.labels, each.value) for each in family.samples]
        for family in text_string_to_metric_families(exposition(report))
    }


def rows(report: Report) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(csv_text(report))))


@pytest.mark.parametrize("form", FORMS)
def test_the_same_report_is_the_same_text(form: str) -> None:
    assert FORMS[form](fails()) == FORMS[form](fails())


@EXAMPLES
@given(st.text(min_size=1, max_size=30))
def test_any_name_of_a_node_leaves_every_form_well_formed(name: str) -> None:
    try:
        matrix = matrix_of(pairs_document(nodes=3, names=name, slow=f"{name}01"))
    except UnicodeEncodeError:  # no JSON holds half a surrogate pair
        return
    report = Report(matrix=matrix)
    ET.fromstring(junit(report))
    assert len(samples(report)["interlace_verify_pair_busbw_bytes_per_second"]) == 3
    assert [len(row) for row in csv.reader(io.StringIO(csv_text(report)))] == [19] * 4
    assert all(each.count("|") == 6 for each in re.sub(r"\\.", "", markdown(report)).splitlines() if each[:1] == "|")


def test_junit_has_a_case_for_the_whole_each_run_and_each_finding() -> None:
    suite = ET.fromstring(junit(fails()))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors"), suite.get("skipped")) == (
        "3",
        "3",
        "0",
        "0",
    )
    found = {case.get("name"): case for case in suite.iter("testcase")}
    assert set(found) == {"verdict", "all_gather over 16 ranks (stdin:1)", "node node-03"}
    failure = found["verdict"].find("failure")
    assert failure is not None
    assert failure.get("type") == "fail"
    assert "61% of the bound" in (failure.get("message") or "")


def test_junit_of_a_healthy_run_has_no_failure_and_what_cannot_be_told_is_an_error() -> None:
    healthy = ET.fromstring(junit(of_lines(published("nccl-tcpx"), family="a3-high")))
    assert (healthy.get("failures"), healthy.get("errors")) == ("0", "0")
    unknown = ET.fromstring(junit(of_lines(["nothing"])))
    assert (unknown.get("failures"), unknown.get("errors")) == ("0", "1")


def test_junit_skips_a_run_that_has_no_band() -> None:
    suite = ET.fromstring(junit(of_lines([*table(HEALTHY), *table(HEALTHY, collective="broadcast")])))
    skipped = [case.get("name", "") for case in suite.iter("testcase") if case.find("skipped") is not None]
    assert [name.partition(" ")[0] for name in skipped] == ["broadcast"]
    assert suite.get("skipped") == "1"


def test_markdown_says_the_verdict_first_then_figures_and_evidence() -> None:
    lines = markdown(fails()).splitlines()
    assert lines[0].startswith("## ✕ fail: all\\_gather over 16 ranks: 122.1 GB/s at 1 GiB, 61% of the bound")
    assert any(each.startswith("**Remedy:** ") for each in lines)
    assert "| all\\_gather over 16 ranks | fail | latency | 1 MiB | 0.21 GB/s | 4.65 ms | at most 300 us |" in lines
    assert "### Evidence" in lines
    assert "### Not tested" in lines
    assert "| node-00 | node-03 | 108 | 54% | fail |" in lines


def test_markdown_of_hostile_names_holds_no_tag_but_our_own() -> None:
    told = markdown(Report(matrix=matrix_of(pairs_document(names=EVIL, slow=f"{EVIL}01"))))
    assert "\\<img/src=x/onerror=alert(1)\\>" in told
    assert not re.search(r"(?<!\\)<(?!!-- -->)", told)


def test_prometheus_has_one_verdict_and_the_sizes_of_a_fixed_list() -> None:
    found = samples(fails())
    assert {labels["verdict"]: value for labels, value in found["interlace_verify_verdict"]} == {
        "pass": 0, "degraded": 0, "fail": 1, "cannot tell": 0,
    }  # fmt: skip
    bandwidth = {
        (labels["placement"], int(labels["size_bytes"])): value
        for labels, value in found["interlace_verify_busbw_bytes_per_second"]
    }
    assert {size for _, size in bandwidth} == {size for size in SIZES if SWEEP[0] <= size <= SWEEP[-1]}
    assert bandwidth["out-of-place", 1 << 30] == pytest.approx(122.14e9)
    times_found = {labels["size_bytes"]: value for labels, value in found["interlace_verify_time_seconds"]}
    assert times_found[str(1 << 20)] == pytest.approx(0.0038873, rel=0.3)
    assert {labels["kind"]: value for labels, value in found["interlace_verify_findings"]}["node"] == 1


def test_prometheus_never_repeats_a_series_however_often_a_run_is_repeated() -> None:
    found = samples(of_lines([*table(HEALTHY), *table(times(rate=150, floor_us=130))]))
    for family in found.values():
        keys = [tuple(sorted(labels.items())) for labels, _ in family]
        assert len(keys) == len(set(keys))
    last = [value for labels, value in found["interlace_verify_busbw_bytes_per_second"]
            if (labels["size_bytes"], labels["placement"]) == (str(1 << 30), "out-of-place")]  # fmt: skip
    assert last == [pytest.approx(147e9, rel=0.02)]


def test_csv_holds_every_row_and_every_pair() -> None:
    found = rows(fails())
    assert [each["kind"] for each in found].count("row") == 22
    assert [each["kind"] for each in found].count("pair") == 15
    first = found[0]
    assert (first["size_bytes"], first["placement"], first["busbw_gb_s"]) == ("1048576", "out-of-place", "0.21")
    slow = [each for each in found if "node-03" in (each["a"], each["b"])]
    assert {each["busbw_gb_s"] for each in slow} == {"108.0"}


def test_no_cell_of_the_csv_is_a_formula_but_numbers_stay_numbers() -> None:
    found = rows(Report(matrix=matrix_of(pairs_document(nodes=2, names="=cmd|x!"))))
    assert found[0]["a"] == "'=cmd|x!00"
    assert {each["root"] for each in rows(of_lines(table(HEALTHY)))} == {"-1"}


def test_the_json_holds_what_judge_parse_and_the_pairs_say() -> None:
    report = fails()
    told = msgspec.json.decode(msgspec.json.encode(document(report)))
    assert told["schema"] == SCHEMA
    assert (told["verdict"], told["simulated"]) == ("fail", False)
    assert told["judgement"]["family"] == "a3-mega"
    runs = [run_document(each.run) for each in report.assessments]
    assert told["runs"] == msgspec.json.decode(msgspec.json.encode(runs))
    assert matrix_of(told["pairs"]) == report.matrix


def test_no_form_holds_a_token_of_a_recorded_environment() -> None:
    from interlace.verify.judgement import judge
    from interlace.verify.reader import read_log

    report = Report(judgement=judge(read_log(DATA / "nccl-logs" / "ag.json"), ()))
    assert report.assessments[0].run.rows
    for form in FORMS.values():
        assert "EXAMPLE_SERVICE_TOKEN" not in form(report)
        assert "must-never-be-stored" not in form(report)


def test_the_page_of_the_manual_names_every_gauge_column_and_key() -> None:
    manual = (DATA.parents[1] / "docs" / "reports.md").read_text()
    assert all(f"`{name}" in manual for name in samples(fails()))
    assert all(f"`{key}`" in manual for key in document(fails()))
    for struct in (Matrix, Pair, Node, Finding):
        assert all(f"`{key}" in manual for key in struct.__struct_encode_fields__), struct
