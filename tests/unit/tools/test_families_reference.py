"""The page about hardware families says what the data say."""

from __future__ import annotations

import pytest

from interlace.fabric.family import families
from tools import families_reference as tool


def test_the_committed_page_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["families_reference", "--check"])
    assert tool.main() == 0


def test_every_family_tuple_profile_and_source_is_on_the_page() -> None:
    text = tool.render()
    for family in families():
        assert f"\n## {family.id}\n" in text
        for software in family.tuples:
            assert f"`{software.id}`" in text
        for profile in family.profiles:
            assert f"\n### NCCL environment {profile.id}\n" in text
        for source in family.sources.values():
            assert source.title in text


def test_cells_cannot_break_a_table() -> None:
    assert tool.rows(["a"], [["x|y\nz"], [""]]) == "| a |\n| --- |\n| x\\|y z |\n| - |\n"
    assert tool.rows(["a"], []) == ""
