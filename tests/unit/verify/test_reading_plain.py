"""The quick ways read what the careful ones read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlace.verify.layout import REDOPS, SIZES
from interlace.verify.number import Interval, printed
from interlace.verify.plainrow import plain_row
from interlace.verify.reader import read_text
from interlace.verify.table import KEPT
from tests.unit.verify.printers import ERAS, Sweep, show

HEADER = next(line for line in show(ERAS[5], Sweep()).lines if "algbw" in line)


@settings(max_examples=150, deadline=None)
@given(
    numbers=st.lists(st.integers(0, 10**9), min_size=2, max_size=2),
    kind=st.sampled_from(sorted(SIZES)),
    redop=st.sampled_from(sorted(REDOPS)),
    root=st.integers(-1, 99),
    values=st.lists(
        st.decimals(0, 999_999, places=2).map(str) | st.integers(0, 99_999).map(str), min_size=6, max_size=6
    ),
    wrong=st.lists(st.integers(0, 999).map(str) | st.just("N/A"), min_size=2, max_size=2),
)
def test_a_plain_row_is_what_the_general_grammar_reads(
    *, numbers: list[int], kind: str, redop: str, root: int, values: list[str], wrong: list[str]
) -> None:
    cells = [*map(str, numbers), kind, redop, str(root), *values[:3], wrong[0], *values[3:], wrong[1]]
    row = plain_row("   ".join(cells).encode(), number=2)
    assert row is not None
    behind = "[0]   " + "   ".join(cells)  # a prefix keeps the quick way out
    (run,) = read_text(f"{HEADER}\n{behind}\n")
    assert run.rows == (row,)
    (quick,) = read_text(f"{HEADER}\n{'   '.join(cells)}\n")
    assert quick.rows == (row,)


@pytest.mark.parametrize(
    "line",
    [
        b"1048576 16384 float none -1 4654.5 0.23 0.21 0 3890.9 0.27 0.25",
        b"1048576 16384 float none -2 4654.5 0.23 0.21 0 3890.9 0.27 0.25 0",
        b"1048576 16384 float none -1 4.6e+03 0.23 0.21 0 3890.9 0.27 0.25 0",
        b"1048576 16384 floats none -1 4654.5 0.23 0.21 0 3890.9 0.27 0.25 0",
        b"[0] 1048576 16384 float none -1 4654.5 0.23 0.21 0 3890.9 0.27 0.25 0",
    ],
)
def test_any_other_row_is_left_alone(line: bytes) -> None:
    assert plain_row(line, number=1) is None


def test_a_sweep_that_never_ends_keeps_its_first_rows_and_counts_the_rest() -> None:
    line = next(line for line in show(ERAS[5], Sweep()).lines if " float " in line)
    (run,) = read_text("\n".join([HEADER, *[line] * (KEPT + 77), ""]))
    assert (len(run.rows), run.left_out) == (KEPT, 77)
    assert run.warnings == (f"only the first {KEPT} rows are kept, 77 more are left out",)
    assert run.wrong_total == 0


@pytest.mark.parametrize("prefix", ["", "[1,0]<stdout>:"])
def test_wrong_elements_count_in_rows_that_are_not_kept_too(prefix: str) -> None:
    line = next(line for line in show(ERAS[5], Sweep()).lines if " float " in line)
    bad = f"{line.rstrip()[:-1]}7"
    (run,) = read_text(
        "\n".join([HEADER, *[prefix + line] * KEPT, *[prefix + each for each in (line, bad, line, bad)], ""])
    )
    assert (run.left_out, run.wrong_total) == (4, 14)


@pytest.mark.parametrize(
    ("token", "value", "unit"),
    [
        ("11706", 11706, 1),
        ("8939.8", 8939.8, 0.1),
        ("0.23", 0.23, 0.01),
        ("1.2e+05", 120000, 1e4),
        ("2e-07", 2e-7, 1e-7),
        ("43046.10", 43046.1, 0.01),
    ],
)
def test_a_printed_number_is_worth_its_last_place(token: str, value: float, unit: float) -> None:
    found = printed(token)
    assert found is not None
    assert found[0] == value
    assert found[1] == pytest.approx(unit)
    assert value in Interval.around(*found)


@pytest.mark.parametrize("token", ["", "-1", "1,5", "0x10", "1e", "1.2.3", "N/A", "٣", "1e999", "9" * 30])
def test_what_c_does_not_print_is_no_number(token: str) -> None:
    assert printed(token) is None


def test_dividing_by_an_interval_that_reaches_zero_has_no_upper_bound() -> None:
    assert Interval.around(0.0, 0.1).dividing(5.0).high == float("inf")
    assert Interval.around(2.0, 0.0).dividing(4.0).integers() == range(2, 3)
    assert not Interval(2, 1)
    assert Interval(0, float("inf")).integers() == range(0)
