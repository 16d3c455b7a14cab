"""Numbers that contradict each other are found, and each contradiction names its row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from msgspec.structs import replace

from interlace.verify.arithmetic import average_place, contradictions
from interlace.verify.plainrow import plain_row
from interlace.verify.reader import read_text
from interlace.verify.run import Row, Run
from tests.unit.verify.printers import ERAS, Sweep, show

SEEDS = Path(__file__).parents[2] / "data" / "seeds"
MEANS = {"nccl-tcpxo": (11, 22.44898, 22.449), "nccl-tcpx": (10, 29.82924, 29.8293)}
HIDDEN = {"nccl-tcpxo": (282, 7), "nccl-tcpx": (96, 0)}
"""Changes that rounding hides within their row; those of them that the printed average still does not allow."""
LAST = next(era for era in ERAS if era.name == "v2.18.0")
_HALF = "     time   algbw   busbw #wrong"
HEADER = f"#       size         count      type   redop    root{_HALF}{_HALF}"


def seed_rows(name: str) -> tuple[list[list[str]], str]:
    """Cells and printed average of a seed table."""
    lines = [line.split("\t") for line in (SEEDS / f"{name}.tsv").read_text().splitlines() if line[0] != "#"]
    return lines[:-1], lines[-1][1]


def seed_text(rows: list[list[str]], average: str) -> str:
    """As the page shows it: no config line, no rank lines, no name, odd indents cut to even ones."""
    widths = (12, 14, 10, 8, 8, 9, 8, 8, 7, 9, 8, 8, 7)
    lines = [HEADER]
    for row in rows:
        line = "".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        indent = len(line) - len(line.lstrip())
        lines.append(" " * (indent // 2 * 2) + line.lstrip())
    return "\n".join([*lines, "# Out of bounds values : 0 OK", f"# Avg bus bandwidth    : {average}", ""])


def read_one(text: str) -> Run:
    (run,) = read_text(text)
    return run


@pytest.mark.parametrize("name", MEANS)
def test_a_seed_table_is_consistent_and_its_ranks_follow_from_its_numbers(name: str) -> None:
    number, mean, printed = MEANS[name]
    run = read_one(seed_text(*seed_rows(name)))
    assert (run.collective, run.collective_from) == ("all_gather", "inferred")
    assert (run.ranks, run.ranks_from, len(run.rows)) == (16, "size/count", number)
    assert run.avg_busbw_mean == pytest.approx(mean, abs=1e-4)
    assert run.avg_busbw_printed == printed
    assert (run.out_of_bounds, run.wrong_total, run.partial_rows, run.warnings) == (0, 0, 0, ())


def fits(size: str, time: str, algbw: str, busbw: str) -> bool:
    """Whether some unrounded time gives these numbers, in exact fractions: then no arithmetic can see a change."""

    def span(text: str) -> tuple[Fraction, Fraction]:
        half = Fraction(1, 2 * 10 ** len(text.partition(".")[2]))
        return Fraction(text) - half, Fraction(text) + half

    low, high = span(time)
    slowest, fastest = Fraction(int(size), 1000) / high, Fraction(int(size), 1000) / low
    (a, b), (c, d) = span(algbw), span(busbw)
    least, most = max(slowest, a, c * 16 / 15), min(fastest, b, d * 16 / 15)
    return least <= most


def changes(row: list[str]) -> Iterator[list[str]]:
    """The row with one digit replaced, in all ways."""
    for column, cell in enumerate(row):
        for place, old in enumerate(cell):
            for new in set("0123456789") - {old} if old.isdigit() else ():
                yield [*row[:column], cell[:place] + new + cell[place + 1 :], *row[column + 1 :]]


@pytest.mark.parametrize("name", MEANS)
def test_any_digit_changed_in_any_row_is_reported_with_the_row_unless_rounding_hides_it(name: str) -> None:
    rows, average = seed_rows(name)
    run = read_one(seed_text(rows, average))
    hidden = seen = 0
    for index, row in enumerate(rows):
        others = [one for one in run.rows if one != run.rows[index]][-2:]  # enough to tell the ranks
        for damaged in changes(row):
            if damaged[4] == "-0":  # no number of C; the reader sees it, as the next test shows
                continue
            line = "  ".join(damaged).encode()
            parsed = plain_row(line, number=index + 2) or found_row(damaged, line=index + 2)
            told = contradictions(replace(run, rows=(others[0], parsed, others[1])))
            told = tuple(text for text in told if not text.startswith(("the rows have a mean", "the footer")))
            assert all(text.startswith(f"row 2 (size {damaged[0].lstrip('0')}, ") for text in told), damaged
            same = damaged[:5] == row[:5] and damaged[8] == damaged[12] == "0"
            if same and fits(damaged[0], *damaged[5:8]) and fits(damaged[0], *damaged[9:12]):
                hidden += 1
                assert not told, damaged
                seen += bool(contradictions(replace(run, rows=(*run.rows[:index], parsed, *run.rows[index + 1 :]))))
            else:
                assert told, damaged
    assert (hidden, seen) == HIDDEN[name]


@pytest.mark.parametrize("name", MEANS)
def test_a_changed_digit_is_reported_by_whoever_reads_the_table(name: str) -> None:
    rows, average = seed_rows(name)
    for index in (0, 5, len(rows) - 1):
        for damaged in list(changes(rows[index]))[:: 7 if index else 3]:
            warnings = read_one(seed_text([*rows[:index], damaged, *rows[index + 1 :]], average)).warnings
            named = any(text.startswith(f"row {index + 1} (") for text in warnings)
            same = damaged[:5] == rows[index][:5] and damaged[8] == damaged[12] == "0"
            assert named or (same and fits(damaged[0], *damaged[5:8]) and fits(damaged[0], *damaged[9:12])), damaged


def test_a_root_of_minus_zero_is_no_root() -> None:
    rows, average = seed_rows("nccl-tcpx")
    rows[2][4] = "-0"
    (text,) = read_one(seed_text(rows, average)).warnings
    assert text == "row 3 (size 4194304, line 4): there is no root -0"


def found_row(cells: list[str], *, line: int) -> Row:
    """A row that is not plain, such as one with a root below -1."""
    rest = plain_row("  ".join([*cells[:4], "-1", *cells[5:]]).encode(), number=line)
    assert rest is not None
    return replace(rest, root=int(cells[4]))


def test_the_interval_of_the_footer_holds_its_printed_average() -> None:
    assert average_place(22.449) == pytest.approx(1e-4)
    assert average_place(167.722) == pytest.approx(1e-3)
    assert average_place(0) == 1e-5


def test_a_footer_that_the_rows_do_not_give_is_named() -> None:
    rows, _ = seed_rows("nccl-tcpx")
    (text,) = read_one(seed_text(rows, "29.9")).warnings
    assert text == "the rows have a mean of 29.8292 GB/s, the footer says 29.9"


def test_wrong_elements_contradict_a_footer_without_failed_checks() -> None:
    rows, average = seed_rows("nccl-tcpx")
    rows[3][12] = "7"
    run = read_one(seed_text(rows, average))
    assert run.wrong_total == 7
    (text,) = run.warnings
    assert text.startswith("row 4 (size 8388608, line 5): in-place: 7 wrong elements")


def test_failed_checks_without_wrong_elements_are_named() -> None:
    text = seed_text(*seed_rows("nccl-tcpx")).replace(": 0 OK", ": 3 FAILED")
    assert read_one(text).warnings == ("the footer counts 3 failed checks, and no row has a wrong element",)


def test_rank_lines_that_the_ratio_denies_are_named_and_the_rows_are_not() -> None:
    counts, times = tuple(2**n for n in range(20, 30)), tuple(float(50 + 3**n) for n in range(10)) * 2
    log = show(LAST, Sweep(collective="all_reduce", ranks=128, counts=counts, times=times))
    extra = "\n".join(
        f"#  Rank {rank} Group  0 Pid 9 on host-9 device 0 [0000:07:00] NVIDIA H100" for rank in range(128, 144)
    )
    text = log.text.replace("#\n#      ", f"{extra}\n#\n#      ", 1)
    run = read_one(text)
    assert run.ranks == 144
    assert run.warnings == ("the rank lines say 144 ranks, busbw over algbw says 128",)
    assert run.avg_busbw_mean == pytest.approx(log.average, rel=1e-4)


def test_rank_lines_that_size_and_count_deny_are_named() -> None:
    log = show(LAST, Sweep(collective="all_gather", ranks=8))
    text = log.text.replace("#  Rank  7 ", "#  Rank  7 on x device 0 [0x0] A\n#  Rank  8 ")
    assert read_one(text).warnings == ("the rank lines say 9 ranks, size and count say 8",)


@pytest.mark.parametrize("ranks", [3, 8, 72, 128])
def test_all_reduce_without_rank_lines_gives_its_ranks_by_ratio(ranks: int) -> None:
    counts, times = tuple(2**n for n in range(20, 30)), tuple(float(50 + 3**n) for n in range(10)) * 2
    log = show(LAST, Sweep(collective="all_reduce", ranks=ranks, counts=counts, times=times))
    run = read_one("\n".join(line for line in log.lines if "Rank" not in line) + "\n")
    assert (run.ranks, run.ranks_from) == (ranks, "ratio")


def test_a_ratio_that_fits_many_ranks_gives_none() -> None:
    log = show(LAST, Sweep(collective="all_reduce", ranks=1440))
    run = read_one("\n".join(line for line in log.lines if "Rank" not in line) + "\n")
    assert (run.ranks, run.ranks_from) == (None, None)
    assert run.warnings == ()


def test_cpu_time_in_the_time_column_is_no_contradiction() -> None:
    log = show(LAST, Sweep(collective="all_gather"))
    text = log.text.replace("     time   algbw", "  cputime   algbw")
    text = re.sub(r"(float +none +-1 +)[\d.]+", r"\g<1>   1.23", text)
    run = read_one(text)
    assert run.cpu_time
    assert run.warnings == ()
    assert run.avg_busbw_mean == pytest.approx(log.average, rel=1e-3)


def test_many_contradictions_are_cut_short() -> None:
    sweep = Sweep(collective="all_gather", counts=[2**20] * 80, times=[100.0] * 160)
    text = re.sub(r"(float +none +-1 +)[\d.]+", r"\g<1>  55.55", show(LAST, sweep).text)
    warnings = read_one(text).warnings
    assert len(warnings) < 60
    assert warnings[-1].endswith("more contradictions are not listed")
