"""What a log says reaches a report as words alone, in colours that can be read."""

from __future__ import annotations

import csv
import io
from html.parser import HTMLParser
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlace.verify.report import text
from interlace.verify.report.palette import (
    BADGES,
    CLIQUES,
    DARK,
    HEAT,
    LIGHT,
    SIGNS,
    contrast,
    ink_on,
    luminance,
    stand_in,
    with_variables,
)

EXAMPLES = settings(max_examples=80, deadline=None)
THEMES = {"light": LIGHT, "dark": DARK}


class Words(HTMLParser):
    """What an HTML parser finds between ``<p title=...>`` and ``</p>``."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.data = ""
        self.title: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.title = dict(attrs).get("title", self.title)

    def handle_data(self, data: str) -> None:
        self.data += data


@EXAMPLES
@given(st.text())
def test_any_text_stays_text_in_html_and_in_an_attribute(said: str) -> None:
    parser = Words()
    parser.feed(f'<p title="{text.html(said)}">{text.html(said)}</p>')
    parser.close()
    assert parser.tags == ["p"]
    assert parser.data == parser.title == text.clean(said)


@EXAMPLES
@given(st.text())
def test_what_is_shown_is_printable_and_of_bounded_length(said: str) -> None:
    shown = text.clean(said, most=20)
    assert shown == "" or shown.isprintable() or "\ufffd" in shown
    assert all(each.isprintable() or each == "\ufffd" for each in shown)
    assert len(shown) <= 20


def test_a_long_name_keeps_the_end_that_tells_it_from_its_neighbours() -> None:
    names = [f"gke-cluster-a3-mega-pool-1-0f9b8c7d-{end}" for end in ("x1yz", "k2ab")]
    assert [text.short(each, most=20) for each in names] == ["gke-cl…0f9b8c7d-x1yz", "gke-cl…0f9b8c7d-k2ab"]
    assert text.short("node-01", most=20) == "node-01"


def test_characters_that_turn_the_direction_of_text_are_shown_as_what_they_are() -> None:
    assert text.clean("gpu\u202e\x1b[31m\udcff") == "gpu\ufffd\ufffd[31m\ufffd"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("@everyone look", "@<!-- -->everyone look"),
        ("# heading", "\\# heading"),
        ("- item", "\\- item"),
        ("1. item", "1\\. item"),
        ("[a](http://b)", "\\[a\\](http\\://b)"),
        ("<img onerror=x>", "\\<img onerror=x\\>"),
        ("a|b", "a\\|b"),
        ("`code` *strong* _soft_", "\\`code\\` \\*strong\\* \\_soft\\_"),
        ("two\nlines", "two lines"),
        ("43.2 GB/s at 1 GiB", "43.2 GB/s at 1 GiB"),
    ],
)
def test_markdown_of_a_log_is_no_markup_and_calls_nobody(said: str, shown: str) -> None:
    assert text.markdown(said) == shown


@EXAMPLES
@given(st.text())
def test_no_cell_of_a_spreadsheet_begins_as_a_formula(said: str) -> None:
    assert text.cell(said)[:1] not in {"=", "+", "-", "@"}
    out = io.StringIO()
    csv.writer(out).writerow([text.cell(said), "x"])
    assert [len(row) for row in csv.reader(io.StringIO(out.getvalue()))] == [2]


@pytest.mark.parametrize("theme", THEMES)
def test_text_has_enough_contrast_to_every_ground_that_it_stands_on(theme: str) -> None:
    colours = THEMES[theme]
    for ground in ("page", "panel", "none"):
        for name in ("ink", "quiet", "link", "bad"):
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)


@pytest.mark.parametrize("theme", THEMES)
def test_lines_and_marks_stand_out_from_the_page(theme: str) -> None:
    colours = THEMES[theme]
    for name in ("first", "second", "bound", "before", *CLIQUES):
        assert contrast(colours[name], colours["page"]) >= 3.0, name


def test_verdicts_and_values_in_the_map_can_be_read() -> None:
    assert all(contrast(*pair) >= 4.5 for pair in BADGES.values())
    assert all(contrast(ink_on(colour), colour) >= 4.5 for colour in HEAT)


def test_each_step_of_the_map_is_lighter_than_the_one_before_also_in_grey() -> None:
    for lower, higher in pairwise(HEAT):
        assert luminance(lower) < luminance(higher)
        assert contrast(lower, higher) >= 1.4


def test_no_verdict_is_told_by_colour_alone() -> None:
    assert set(SIGNS) == set(BADGES)
    assert all(one != other for one, other in combinations(SIGNS.values(), 2))


def test_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert contrast("#123456", "#123456") == 1


def test_stand_ins_become_variables_that_both_themes_have() -> None:
    assert set(LIGHT) == set(DARK)
    drawn = " ".join(stand_in(name) for name in LIGHT)
    assert with_variables(drawn) == " ".join(f"var(--{name})" for name in LIGHT)
