"""``interlace verify report``: what it writes where, what it refuses, and how it ends."""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest
from click.testing import CliRunner, Result

from interlace.cli.main import main
from tests.unit.verify.recorded import published
from tests.unit.verify.reports import pairs_document


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["verify", "report", *map(str, arguments)], input=stdin)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with two logs and pairs, in which the command runs."""
    for name in ("tcpx", "tcpxo"):
        (tmp_path / f"{name}.log").write_text("\n".join(published(f"nccl-{name}")) + "\n")
    (tmp_path / "pairs.json").write_bytes(msgspec.json.encode(pairs_document(nodes=4)))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert not list(tmp_path.glob(".*")), "nothing half-written stays behind"


@pytest.mark.parametrize(
    ("arguments", "verdict", "code"),
    [
        (["tcpx.log", "--family", "a3-high"], "pass", 0),
        (["tcpxo.log", "--family", "a3-mega"], "fail", 1),
        (["tcpx.log"], "cannot tell", 3),
        (["--pairs", "pairs.json"], "pass", 0),
        (["tcpx.log", "--pairs", "pairs.json"], "cannot tell", 3),
        (["tcpx.log", "--baseline", "tcpx.log"], "pass", 0),
    ],
)
def test_it_ends_as_judge_does_and_says_the_verdict(arguments: list[str], verdict: str, code: int) -> None:
    ended = run(*arguments, "--csv", "out.csv")
    assert ended.exit_code == code, ended.output
    assert ended.stdout.startswith(f"{verdict}: ")
    assert ended.stdout.count("\n") == 1


def test_every_form_is_written_in_one_go(folder: Path) -> None:
    ended = run("tcpx.log", "--family", "a3-high", "-o", "r.html", "--junit", "r.xml", "--markdown", "r.md",
                "--prometheus", "r.prom", "--csv", "r.csv", "--json")  # fmt: skip
    assert ended.exit_code == 0, ended.output
    assert json.loads(ended.stdout)["verdict"] == "pass"
    assert (folder / "r.html").read_text().startswith("<!doctype html>")
    assert ET.parse(folder / "r.xml").getroot().get("failures") == "0"
    assert (folder / "r.md").read_text().startswith("## ✓ pass: ")
    assert 'interlace_verify_verdict{verdict="pass"} 1' in (folder / "r.prom").read_text()
    assert (folder / "r.csv").read_text().count("\n") == 21


def test_the_page_goes_to_stdout_alone_and_is_the_one_that_a_file_holds(folder: Path) -> None:
    shown = run("tcpx.log", "--family", "a3-high", "-o", "-")
    run("tcpx.log", "--family", "a3-high", "-o", "r.html")
    assert shown.stdout_bytes == (folder / "r.html").read_bytes()


def test_logs_and_pairs_come_from_stdin_too() -> None:
    log = "\n".join(published("nccl-tcpx")) + "\n"
    assert run("-", "--family", "a3-high", "--csv", "o.csv", stdin=log).exit_code == 0
    pairs = json.dumps(pairs_document(slow="node-01"))
    assert run("--pairs", "-", "--csv", "o.csv", stdin=pairs).exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "there is nothing to report: give logs, or --pairs FILE"),
        (["tcpx.log"], "nothing was asked for: give -o FILE"),
        (["tcpx.log", "-o", "tcpx.log"], "is read and would be written over"),
        (["tcpx.log", "-o", "./other/../tcpx.log"], "is read and would be written over"),
        (["--pairs", "pairs.json", "--json", "--csv", "pairs.json"], "is read and would be written over"),
        (["tcpx.log", "--baseline", "tcpxo.log", "-o", "tcpxo.log"], "is read and would be written over"),
        (["tcpx.log", "--json", "--csv", "-"], "stdout can take only one form"),
        (["tcpx.log", "--junit", "x", "--csv", "x"], "can take only one form"),
        (["-", "--pairs", "-", "--json"], "stdin can be read only once"),
        (["missing.log", "--json"], "missing.log: No such file or directory"),
        (["--pairs", "missing.json", "--json"], "--pairs missing.json: No such file or directory"),
        (["--pairs", "tcpx.log", "--json"], "this is no document of pairs"),
        (["tcpx.log", "--family", "z9", "--json"], "--family: "),
        (["tcpx.log", "--baseline", "pairs.json", "--json"], "so it is no baseline"),
    ],
)
def test_what_cannot_be_done_is_refused_with_one_sentence_before_anything_is_written(
    folder: Path, arguments: list[str], says: str
) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    ended = run(*arguments)
    assert ended.exit_code == 2, ended.output
    assert says in ended.stderr
    assert ended.stderr.startswith("interlace: ")
    assert ended.stderr.count("\n") == 1
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_without_matplotlib_the_page_is_refused_with_the_remedy_and_other_forms_are_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ended = run("tcpx.log", "--family", "a3-high", "-o", "r.html", "--csv", "r.csv")
    assert ended.exit_code == 2
    assert "pip install 'interlace[report]'" in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert not (folder / "r.html").exists()
    assert not (folder / "r.csv").exists()
    assert run("tcpx.log", "--family", "a3-high", "--csv", "r.csv").exit_code == 0
    assert (folder / "r.csv").exists()


def test_a_report_that_cannot_be_written_leaves_the_old_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "r.csv").write_text("old")

    def full(self: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    ended = run("tcpx.log", "--csv", "r.csv")
    monkeypatch.undo()
    assert ended.exit_code == 4
    assert "r.csv: No space left on device" in ended.stderr
    assert (folder / "r.csv").read_text() == "old"


@pytest.mark.parametrize("target", ["missing/r.csv", "folder"])
def test_a_place_that_cannot_be_written_is_named(folder: Path, target: str) -> None:
    (folder / "folder").mkdir()
    ended = run("tcpx.log", "--csv", target)
    assert ended.exit_code == 4
    assert target in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_report_replaces_what_a_link_points_to_and_has_the_rights_of_a_new_file(folder: Path) -> None:
    (folder / "real.csv").write_text("old")
    (folder / "link.csv").symlink_to("real.csv")
    assert run("tcpx.log", "--family", "a3-high", "--csv", "link.csv").exit_code == 0
    assert (folder / "link.csv").is_symlink()
    assert (folder / "real.csv").read_text().startswith("kind,")
    (folder / "plain").write_text("")
    assert stat.S_IMODE((folder / "real.csv").stat().st_mode) == stat.S_IMODE((folder / "plain").stat().st_mode)


def test_a_pipe_is_written_to_and_not_replaced(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    reader = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert run("tcpx.log", "--family", "a3-high", "--csv", "pipe").exit_code == 0
        assert os.read(reader, 5) == b"kind,"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO((folder / "pipe").stat().st_mode)


@pytest.mark.parametrize("name", ["\x1b]0;evil\x07", "bad\udcffname"])
def test_the_name_of_a_node_draws_nothing_on_a_terminal(name: str, folder: Path) -> None:
    document: dict[str, Any] = pairs_document(nodes=3, verdict="fail", cause=name.encode("utf-8", "replace").decode())
    (folder / "evil.json").write_text(json.dumps(document))
    ended = run("--pairs", "evil.json", "--csv", "o.csv")
    assert ended.exit_code == 1
    assert all(each.isprintable() or each in "\n\ufffd" for each in ended.output)
