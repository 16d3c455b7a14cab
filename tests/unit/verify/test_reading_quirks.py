"""What real logs do to a table, one test for each thing seen."""

from __future__ import annotations

import re

import pytest

from interlace.verify.reader import read_text
from interlace.verify.run import Run, document
from tests.unit.verify.printers import ERAS, Printed, Sweep, show
from tests.unit.verify.scenes import HEALTHY, table

BY_NAME = {era.name: era for era in ERAS}
PLAIN = BY_NAME["v2.15.0"]
"""Without titles, so that nothing but the rows and the config tells."""
LAST = BY_NAME["v2.18.0"]
HEAD = 52
"""Characters up to the root: what the program prints before it measures."""
SWEEP = Sweep(collective="all_gather")


def one(text: str) -> Run:
    (run,) = read_text(text)
    return run


def rows(log: Printed) -> list[str]:
    return [line for line in log.lines if " float " in line]


def test_1_tags_of_a_launcher_inside_a_row_are_taken_out() -> None:
    log = show(LAST, SWEEP)
    text = log.text
    for row in rows(log):
        head, tail = row[:HEAD], row[HEAD:]
        assert head.endswith("-1")
        text = text.replace(row, f"[0]{head}[0]{tail}")
    assert "-1[0]" in text
    assert document(one(text))["rows"] == log.rows


@pytest.mark.parametrize("end", ["\n", ""])
def test_2_lines_of_nccl_between_the_halves_of_a_row_do_not_break_it(end: str) -> None:
    """With a line feed as warnings have it, or in the same line as information comes."""
    log = show(LAST, SWEEP)
    text = log.text
    for row in rows(log):
        info = "host-0:1197:1197 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n"
        warning = "\nhost-1:1200:1201 [0] transport/net.cc:12 NCCL WARN something 1 2 3\n"
        text = text.replace(row, row[:HEAD] + end + info + row[HEAD:80] + warning + row[80:])
    run = one(text)
    assert document(run)["rows"] == log.rows
    assert run.warnings == ()


def test_2_a_host_name_that_begins_with_a_digit_is_known_from_the_rank_lines() -> None:
    log = show(LAST, Sweep(collective="broadcast"))
    text = log.text.replace("host-", "7host-")
    for row in rows(log):
        text = text.replace(row, f"{row[:HEAD]}7host-0:1197:1197 [0] NCCL INFO comm 0x5 rank 0\n{row[HEAD:]}")
    assert document(one(text))["rows"] == log.rows


def test_3_a_row_cut_after_its_first_half_is_partial() -> None:
    log = show(LAST, SWEEP)
    text = log.text[: log.text.index(rows(log)[2]) + 90] + "\n"
    run = one(text)
    assert (len(run.rows), run.partial_rows) == (2, 1)
    assert run.avg_busbw_printed is None


def test_3_the_last_row_without_a_line_end_is_partial_since_digits_may_be_missing() -> None:
    log = show(LAST, SWEEP)
    last = rows(log)[3]
    whole = log.text[: log.text.index(last) + len(last)]
    for cut in (0, 1, 4, 30, 70, 100, 109):
        run = one(whole[: len(whole) - cut])
        assert (len(run.rows), run.partial_rows) == (3, 1), cut
        assert document(run)["rows"] == log.rows[:3]
    assert (len(one(whole + "\n").rows), one(whole + "\n").partial_rows) == (4, 0)


def test_3_every_cut_of_a_log_gives_rows_that_were_measured() -> None:
    log = show(LAST, Sweep(collective="all_gather", ranks=4, counts=(2**20, 2**24), times=(40.5, 200.6, 41.7, 201.8)))
    for length in range(0, len(log.text), 3):
        for run in read_text(log.text[:length]):
            assert document(run)["rows"] == log.rows[: len(run.rows)]
            assert not [text for text in run.warnings if text.startswith("row")]


def test_4_a_new_header_or_title_closes_a_table_without_a_footer() -> None:
    first, second = show(LAST, SWEEP), show(LAST, Sweep(collective="all_reduce"))
    open_end = first.text[: first.text.index("# Out of bounds")]
    assert [document(run)["rows"] for run in read_text(open_end + second.text)] == [first.rows, second.rows]
    header = next(line for line in second.lines if "algbw" in line)
    bare = "\n".join([header, *rows(first), header, *rows(second), ""])
    assert [document(run)["rows"] for run in read_text(bare)] == [first.rows, second.rows]


def test_4_a_sweep_that_repeats_is_one_run() -> None:
    log = show(BY_NAME["v2.13.10"], SWEEP)
    assert len(log.rows) == 12
    assert document(one(log.text))["rows"] == log.rows


def test_5_two_jobs_side_by_side_are_not_one_job() -> None:
    era = BY_NAME["v2.13.4"]
    log = show(era, Sweep(collective="all_gather", ranks=8))
    lines = []
    for line in log.lines:
        other = line.replace("host-0", "host-1")
        lines += [line, other]
    run = one("\n".join(lines) + "\n")
    assert run.ranks == 8
    assert run.nodes == 1
    assert len(run.rows) == 8
    assert any(text.startswith("not one job: 2 copies ran side by side") for text in run.warnings)


def test_5_two_jobs_with_tags_are_two_runs() -> None:
    first, second = show(PLAIN, SWEEP), show(PLAIN, Sweep(collective="broadcast"))
    mixed = []
    for a, b in zip(first.lines, second.lines, strict=False):
        mixed += [f"[1,0]<stdout>:{a}", f"[1,8]<stdout>:{b}"]
    runs = read_text("\n".join(mixed) + "\n")
    assert [document(run)["rows"] for run in runs] == [first.rows, second.rows]


def test_6_what_markdown_and_editors_do_is_survived() -> None:
    log = show(PLAIN, SWEEP)
    eaten = "\n".join(line.lstrip("# ") for line in log.lines)
    assert document(one(f"```\n{eaten}\n```\n"))["rows"] == log.rows
    quoted = "\n".join(f"> {line}" for line in log.lines)
    assert document(one(f"{quoted}\n"))["rows"] == log.rows
    cut = log.text.replace(rows(log)[1] + "\n", "...\n")
    run = one(cut)
    assert document(run)["rows"] == [log.rows[0], *log.rows[2:]]
    assert run.warnings == ("rows are left out where the paste says `...`, so that the average cannot be checked",)
    assert "the rows have a mean" in one(log.text.replace(rows(log)[1] + "\n", "")).warnings[0]
    moved = re.sub(r"(?m)^#  +", "#", log.text)
    assert document(one(moved))["rows"] == log.rows
    no_header = "\n".join(line for line in log.lines if not line.startswith("#"))
    assert document(one(f"{no_header}\n"))["rows"] == log.rows


def test_6_marks_of_a_diff_are_taken_off() -> None:
    log = show(PLAIN, SWEEP)
    assert document(one("".join(f"+{line}\n" for line in log.lines)))["rows"] == log.rows
    assert document(one("".join(f"- {line}\n" for line in log.lines)))["rows"] == log.rows


def test_6_a_header_and_rows_that_an_editor_folded_are_joined() -> None:
    log = show(PLAIN, SWEEP)
    folded = re.sub(r"(?m)^(.{80}\S*) +(?=\S)", r"\1\n", log.text)
    assert folded.count("\n") > log.text.count("\n") + 4
    assert document(one(folded))["rows"] == log.rows


def test_7_changed_indents_and_tabs_change_nothing() -> None:
    log = show(PLAIN, SWEEP)
    text = "\n".join(re.sub(r" +", "\t", line.strip()) for line in log.lines) + "\n"
    assert document(one(text))["rows"] == log.rows


def test_8_logs_of_rccl_tests_are_read_with_their_asterisks() -> None:
    log = show(PLAIN, SWEEP)
    marked = re.sub(r"(?m)^( +\d+ .*\d)( +0)$", r"\1*\2*", log.text)
    note = "# Errors with asterisks indicate errors that have exceeded the maximum threshold.\n"
    run = one("rccl-tests: Version develop:b4d5bee\n" + marked.replace("# Out of", note + "# Out of"))
    assert document(run)["rows"] == log.rows
    assert run.program == "rccl-tests develop:b4d5bee"


def test_8_rccl_keeps_the_old_formula_and_is_not_corrupt() -> None:
    log = show(BY_NAME["2020-06-19"], SWEEP)
    assert not one(log.text).old_formula
    old = show(BY_NAME["v2.0.0"], SWEEP)
    run = one("rccl-tests: Version develop:b4d5bee\n" + old.text)
    assert (run.collective, run.old_formula) == ("all_gather", True)
    assert [text for text in run.warnings if text.startswith("row")] == []


def test_9_notes_of_the_program_are_no_rows_and_one_is_told() -> None:
    log = show(LAST, SWEEP)
    notes = (
        "Reducing maxBytes to 33554432 due to memory limitation\n# Writing JSON output to /tmp/x.json\n"
        "NCCL version 2.28.9+cuda13.0\nWarning: Permanently added '[host-1]:222' (ED25519) to known hosts.\n"
        "Invalid MIT-MAGIC-COOKIE-1 key\n"
    )
    run = one(notes + log.text.replace("#\n#   ", "#\n" + notes + "#   ", 1))
    assert document(run)["rows"] == log.rows
    assert run.warnings == ("Reducing maxBytes to 33554432 due to memory limitation",)


@pytest.mark.parametrize(
    ("sweep", "unfinished"),
    [
        ("maxBytes 8589934592 step: 2(factor)", True),
        ("maxBytes 67108864 step: 2(factor)", False),
        ("maxBytes 100000000 step: 2(factor)", False),
        ("maxBytes 134217728 step: 2(factor)", True),
        ("maxBytes 134217728 step: 67108864(bytes)", True),
        ("maxBytes 134217728 step: 67108865(bytes)", False),
        ("maxBytes 67108864 step: 1048576(bytes)", False),
        ("maxBytes 8589934592 step: 2(factor)\nReducing maxBytes to 67108864 due to memory limitation", False),
        ("", False),
    ],
)
def test_a_sweep_that_the_log_does_not_reach_the_end_of_is_told(sweep: str, *, unfinished: bool) -> None:
    rows = table(HEALTHY, sizes=[2**20 << step for step in range(7)], footer=False)
    lines = [f"# nThread 1 nGpus 1 minBytes 1048576 {sweep}" if "nThread" in each else each for each in rows]
    (run,) = read_text("\n".join(lines) + "\n")
    assert run.unfinished is unfinished
    assert (
        "the log ends before the test does: it was cut, or the test hung or was ended" in run.warnings
    ) is unfinished
    (run,) = read_text("\n".join([*lines, "# Out of bounds values : 0 OK"]) + "\n")
    assert not run.unfinished


def test_10_a_list_of_ranks_that_was_cut_gives_no_number_of_ranks() -> None:
    log = show(LAST, SWEEP)
    lines = [line for line in log.lines if not re.match(r"#  Rank +1[0-5] ", line)]
    lines.insert(lines.index("#", 6), "...")
    run = one("\n".join(lines) + "\n")
    assert (run.ranks, run.ranks_from, run.nodes) == (16, "size/count", None)
    assert run.warnings == ("the list of ranks is cut",)


def test_11_one_rank_is_said_to_be_no_measurement() -> None:
    log = show(LAST, Sweep(collective="all_gather", ranks=1))
    run = one(log.text)
    assert run.ranks == 1
    assert run.warnings == ("one rank has no peer: its bandwidth is that of a copy",)
    bare = one("\n".join(rows(log)) + "\n")
    assert (bare.ranks, bare.ranks_from, bare.collective) == (1, "ratio", None)


def test_12_a_failed_average_says_nothing_about_the_data() -> None:
    log = show(LAST, SWEEP)
    text = re.sub(r"(Avg bus bandwidth +: )\S+", r"\g<1>0 FAILED", log.text)
    run = one(text)
    assert (run.avg_busbw_printed, run.below_minimum, run.out_of_bounds, run.wrong_total) == (0.0, True, 0, 0)
    (text,) = run.warnings
    assert "NCCL_TESTS_MIN_BW" in text


def test_13_a_run_that_aborts_keeps_its_rows_and_what_it_said() -> None:
    log = show(LAST, SWEEP)
    head = log.text[: log.text.index(rows(log)[3]) + HEAD]
    text = f"{head}host-0: Test NCCL failure common.cu:303 'invalid argument (run with NCCL_DEBUG=WARN for details)'\n"
    text += " .. host-0 pid 1197: Test failure common.cu:593\n"
    run = one(text)
    assert (len(run.rows), run.partial_rows) == (3, 1)
    assert document(run)["rows"] == log.rows[:3]
    assert run.errors[0].startswith("Test NCCL failure common.cu:303 'invalid argument")
    assert len(run.errors) == 2


def test_unchecked_results_are_neither_right_nor_wrong() -> None:
    log = show(LAST, SWEEP)
    text = re.sub(r"(?m)  {4}0(?=  |$)", "  N/A", log.text).replace("validation: 1", "validation: 0")
    run = one(text)
    assert (run.checked, run.out_of_bounds, run.wrong_total) == (False, None, None)
    assert run.warnings == ("results were not checked (-c 0): the count of wrong elements says nothing",)


def test_a_deviation_is_not_a_number_of_wrong_elements() -> None:
    log = show(BY_NAME["v2.0.0"], Sweep(collective="all_reduce"))
    text = log.text.replace("0e+00", "2e-07")
    assert one(text).wrong_total is None
    bare = one("\n".join(line for line in text.splitlines() if " float " in line) + "\n")
    assert (len(bare.rows), bare.wrong_total) == (4, None)


def test_many_wrong_elements_overflow_their_column_and_count() -> None:
    log = show(LAST, SWEEP)
    row = rows(log)[0]
    damaged = row[: row.rindex("0")].rstrip() + "  1.04858e+06"
    run = one(log.text.replace(row, damaged).replace(": 0 OK", ": 1 FAILED"))
    assert (run.wrong_total, run.out_of_bounds) == (1048580, 1)
    assert run.rows[0].ip is not None
    assert run.rows[0].ip.wrong == 1048580


HAND_MADE = (
    """\
size count type time algbw busbw
1048576 16384 float 4654.5 0.23 0.21
2097152 32768 float 4117.2 0.51 0.48
""",
    """\
# size count type redop root time algbw busbw #wrong
1048576 16384 float none -1 4654.5 0.23 0.21 0
2097152 32768 float none -1 4117.2 0.51 0.48 0
""",
    """\
| size | count | type | busbw |
| 1048576 | 16384 | float | 0.21 |
""",
    """\
nodes size count type min avg max sd min avg max sd
2 1048576 16384 float 1 2 3 4 5 6 7 8
""",
    "1048576 16384 float none -1 1 2 3 0 5 6 7 0\n",
    "there are 12 34 int values and 5 6 float ones 1 2 3 4 5 6 7 8 9\n",
)


@pytest.mark.parametrize("text", HAND_MADE)
def test_a_table_made_by_hand_is_refused(text: str) -> None:
    assert read_text(text) == []


def test_the_command_line_names_the_collective_unless_the_numbers_deny_it() -> None:
    log = show(PLAIN, Sweep(collective="gather"))
    command = "+ mpirun -np 16 /opt/nccl-tests/build/gather_perf -b 1M -e 1G -f 2\n"
    run = one(command + log.text)
    assert (run.collective, run.collective_from) == ("gather", "args")
    run = one(command + show(PLAIN, SWEEP).text)
    assert (run.collective, run.collective_from) == ("all_gather", "inferred")
    assert run.warnings == ("a command line names gather, the table is of all_gather",)
