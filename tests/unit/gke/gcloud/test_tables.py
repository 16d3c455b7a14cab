"""The tables of commands, flags and meanings, and the page that lists them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from interlace.gke.gcloud.call import why_refused
from interlace.gke.gcloud.changes import CHANGES, NOT_TAKEN
from interlace.gke.gcloud.interpreting import CREATES
from interlace.gke.gcloud.table import table
from interlace.gke.importing import Errors, requests
from tools import gke_import_reference, gke_page

DATA = Path(__file__).parents[3] / "data" / "gke"


def test_the_table_is_the_recorded_one() -> None:
    recorded = json.loads((DATA / "flags.json").read_text())
    assert table().commands.keys() == recorded["commands"].keys()
    for command, entry in table().commands.items():
        assert entry.flags.keys() == recorded["commands"][command]["flags"].keys()


def test_all_commands_that_are_understood_are_in_the_table() -> None:
    assert CREATES.keys() | CHANGES.keys() | NOT_TAKEN.keys() <= table().commands.keys()
    assert not CHANGES.keys() & NOT_TAKEN.keys()


def test_the_page_lists_the_flags_as_they_are_taken() -> None:
    assert gke_import_reference.main(["--check"]) == 0


@pytest.mark.parametrize("command", sorted(CREATES))
def test_a_flag_is_taken_or_refused_by_name_with_a_reason(command: str) -> None:
    known = gke_import_reference.taken(command)
    for flag, entry in table().commands[command].flags.items():
        if flag in known or "ga" not in entry.tracks:
            continue
        value = "" if entry.kind == "bool" else f"={(entry.values('ga') or ('x',))[0]}"
        with pytest.raises(Errors, match=flag) as caught:
            requests(f"\n\ngcloud {command} {gke_import_reference.LEAST[command]} {flag}{value}", project="p")
        assert str(caught.value).startswith("line 3: ")
        assert why_refused(flag)


def test_the_check_of_a_recipe_needs_a_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert gke_page.main([]) == 2
    page = tmp_path / "page"
    page.write_text("nothing\n")
    assert gke_page.main([str(page)]) == 1
    assert gke_page.main([str(DATA / "pages" / "broken.txt")]) == 0
    assert capsys.readouterr().out.count("not found") == len(gke_page.DEFECTS)
