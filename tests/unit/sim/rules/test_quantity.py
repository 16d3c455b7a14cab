"""Quantities keep their exact value whatever their notation."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.sim.apiserver.quantity import QuantityError, compare_quantities, is_quantity, parse_quantity

SCALES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(1000),
    "Ki": Fraction(1024),
    "M": Fraction(10**6),
    "Mi": Fraction(1024**2),
    "e3": Fraction(1000),
    "E-3": Fraction(1, 1000),
}


@given(st.integers(0, 10**6), st.sampled_from(sorted(SCALES)), st.sampled_from(["", "+", "-"]))
def test_a_whole_number_is_worth_itself_times_its_suffix(number: int, suffix: str, sign: str) -> None:
    expected = number * SCALES[suffix] * (-1 if sign == "-" else 1)
    assert parse_quantity(f"{sign}{number}{suffix}") == expected


@given(st.decimals(min_value=0, max_value=10**9, places=9, allow_nan=False))
def test_nine_decimal_places_are_kept_exactly(number: object) -> None:
    text = f"{number:f}"
    assert parse_quantity(text) == Fraction(text)


@given(st.integers(0, 2**40), st.integers(0, 2**40))
def test_comparison_agrees_across_notations(left: int, right: int) -> None:
    assert compare_quantities(f"{left}Ki", f"{right * 1024}") == (left > right) - (left < right)


@given(st.text(max_size=12))
def test_any_text_is_either_parsed_or_refused(text: str) -> None:
    if is_quantity(text):
        assert isinstance(parse_quantity(text), Fraction)
    else:
        with pytest.raises(QuantityError):
            parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.", Fraction(1)),
        (".5", Fraction(1, 2)),
        ("1E", Fraction(10**18)),
        ("1E1", Fraction(10)),
        ("0.1n", Fraction(1, 10**9)),
        ("-0.1n", Fraction(-1, 10**9)),
        ("9Ei", Fraction(2**63 - 1)),
        ("1e999999999999", Fraction(2**63 - 1)),
    ],
)
def test_corner_cases_follow_kubernetes(text: str, value: Fraction) -> None:
    assert parse_quantity(text) == value


@pytest.mark.parametrize("text", ["", " 1", "1 Gi", "Ki", "0x1", "1.2.3", "1e", "--1", "1KI", "١"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="quantities must match"):
        parse_quantity(text)


def test_json_numbers_are_quantities_and_booleans_are_not() -> None:
    assert parse_quantity(0.1) == Fraction(1, 10)
    assert is_quantity(4)
    assert not is_quantity(True)
    assert not is_quantity(None)
