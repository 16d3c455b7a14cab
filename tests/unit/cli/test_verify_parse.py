"""``interlace verify parse``: documents, tables and exit codes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from interlace.cli.main import main
from interlace.cli.verify import verify

LOGS = Path(__file__).parents[2] / "data" / "nccl-logs"
KEYS = [
    "collective", "collective_from", "ranks", "ranks_from", "nodes", "rows", "partial_rows", "avg_busbw_printed",
    "avg_busbw_mean", "out_of_bounds", "wrong_total", "transport", "warnings",
]  # fmt: skip


def parse(*arguments: str | Path, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["verify", "parse", *map(str, arguments)], input=stdin)


@pytest.mark.parametrize("path", sorted(path for path in LOGS.iterdir() if path.suffix != ".md"), ids=lambda p: p.name)
def test_each_log_becomes_the_documented_document_without_a_secret(path: Path) -> None:
    told = parse(path, "--format", "json")
    assert (told.exit_code, told.stderr) == (0, "")
    (run,) = json.loads(told.stdout)["runs"]
    assert list(run) == KEYS
    assert list(run["rows"][0]) == ["size", "count", "type", "redop", "root", "oop", "ip"]
    assert list(run["rows"][0]["oop"]) == ["time_us", "algbw", "busbw", "wrong"]
    assert "must-never-be-stored" not in told.stdout + parse(path).stdout


def test_several_logs_and_stdin_are_one_document() -> None:
    packed = gzip.compress((LOGS / "sendrecv.log").read_bytes())
    told = parse(LOGS / "ag.json", "-", LOGS / "alltoall.log", "--format", "json", stdin=packed)
    assert [run["collective"] for run in json.loads(told.stdout)["runs"]] == ["all_gather", "sendrecv", "alltoall"]


def test_a_table_shows_numbers_with_their_places_and_what_is_doubtful(tmp_path: Path) -> None:
    text = (LOGS / "all_reduce.log").read_text().replace("16.28   64.40", "16.28   65.40", 1)
    (tmp_path / "x.log").write_text(text)
    told = parse(tmp_path / "x.log")
    assert told.exit_code == 0
    lines = told.stdout.splitlines()
    assert lines[0] == f"{tmp_path / 'x.log'}:1: all_reduce, 2 ranks (from rank lines), 1 nodes"
    assert lines[1].split()[:9] == ["SIZE", "COUNT", "TYPE", "REDOP", "ROOT", "TIME", "ALGBW", "BUSBW", "WRONG"]
    assert "3235.92  331.82  331.82  0" in told.stdout
    assert lines[-1].startswith(
        "warning: row 1 (size 1048576, line 12): out-of-place: size over time is 64.4089 GB/s, algbw says 65.4"
    )


@pytest.mark.parametrize("form", ["json", "table"])
def test_a_log_without_a_table_gives_an_empty_document_and_code_3(form: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("nothing\n")
    told = parse(tmp_path / "x", "--format", form)
    assert told.exit_code == 3
    assert told.stdout == ('{"runs":[]}\n' if form == "json" else "")
    assert told.stderr == f"interlace: {tmp_path / 'x'}: no table of nccl-tests was found\n"


@pytest.mark.parametrize("name", ["missing", "."])
def test_what_cannot_be_opened_is_refused_before_anything_is_printed(name: str, tmp_path: Path) -> None:
    told = parse(LOGS / "ag.json", tmp_path / name, "--format", "json")
    assert (told.exit_code, told.stdout) == (2, "")
    assert str(tmp_path / name) in told.stderr
    assert "Traceback" not in told.stderr


def test_no_file_is_refused() -> None:
    assert parse().exit_code == 2


def test_garbage_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes(range(256)) * 1000)
    assert parse(tmp_path / "x", "--format", "json").exit_code == 3


def test_help_of_the_group_names_every_verb_and_each_is_there() -> None:
    told = CliRunner().invoke(main, ["verify", "--help"])
    names = verify.list_commands(click.Context(verify))
    assert {"parse", "judge", "compare"} <= set(names)
    for name in names:
        assert f"\n  {name} " in told.output
        assert CliRunner().invoke(main, ["verify", name, "--help"]).output.startswith("Usage: ")
