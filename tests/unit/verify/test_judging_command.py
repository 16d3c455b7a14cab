"""``interlace verify judge`` and ``compare``: what they print, and how they end."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from interlace.cli.main import main
from tests.unit.verify.recorded import published
from tests.unit.verify.scenes import HEALTHY, line, said, table, times, with_lines

SLOW = times(rate=90, floor_us=130)


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["verify", *map(str, arguments)], input=stdin)


def log(folder: Path, name: str, lines: Sequence[str]) -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("lines", "family", "verdict", "code"),
    [
        (published("nccl-tcpx"), "a3-high", "pass", 0),
        (published("nccl-tcpxo"), "a3-megagpu-8g", "fail", 1),
        (table(times(rate=150, floor_us=130)), "a3-mega", "degraded", 1),
        (table(HEALTHY, ranks=1, nodes=1, collective="broadcast"), "a3-mega", "cannot tell", 3),
        (["no table"], "a3-mega", "cannot tell", 3),
    ],
)
def test_the_verdict_is_the_first_word_and_decides_the_exit_code(
    tmp_path: Path, lines: list[str], family: str, verdict: str, code: int
) -> None:
    path = log(tmp_path, "run.log", lines)
    told = run("judge", path, "--family", family)
    assert told.exit_code == code
    assert told.stdout.startswith(f"{verdict}: ")
    assert told.stderr == ""
    document = json.loads(run("judge", path, "--family", family, "--json").stdout)
    assert document["verdict"] == verdict
    assert document["cause"] in told.stdout


def test_the_evidence_names_file_and_line(tmp_path: Path) -> None:
    path = log(tmp_path, "run.log", with_lines(table(SLOW), said()))
    told = run("judge", path, "--family", "a3-mega")
    rows = [each.lstrip().startswith("1073741824") for each in path.read_text().splitlines()]
    assert f"[{path}:{rows.index(True) + 1}]" in told.stdout
    assert "Not tested:" in told.stdout


def test_the_document_has_its_documented_keys(tmp_path: Path) -> None:
    refused = line(3, 8, "misc/socket.cc:541 NCCL WARN socketStartConnect: Connect to 192.0.2.7<4> failed : refused")
    path = log(tmp_path, "run.log", with_lines(table(SLOW), [*said(network="Socket"), refused]))
    document = json.loads(run("judge", path, "--family", "a3-mega", "--json").stdout)
    page = (Path(__file__).parents[3] / "docs" / "verdicts.md").read_text()
    assert set(document) <= {key for key in document if f"`{key}`" in page}
    for part in ("evidence", "causes", "noted", "runs"):
        assert document[part], part
        assert all(f"`{key}`" in page for each in document[part] for key in each), part
    assert document["transport"] == "Socket"


def test_several_files_stdin_and_gzip_are_one_test(tmp_path: Path) -> None:
    first = tmp_path / "a.log.gz"
    first.write_bytes(gzip.compress("\n".join(said()).encode()))
    told = run("judge", first, "-", "--family", "a3-mega", "--json", stdin="\n".join(table(HEALTHY)) + "\n")
    assert told.exit_code == 0
    document = json.loads(told.stdout)
    assert document["transport"] == "FasTrak"
    assert document["runs"][0]["source"] == "-"


def test_what_parse_printed_can_be_judged_and_be_a_baseline(tmp_path: Path) -> None:
    path = log(tmp_path, "run.log", table(HEALTHY))
    document = log(tmp_path, "run.json", [run("parse", path, "--format", "json").stdout])
    assert run("judge", document, "--family", "a3-mega").stdout.startswith("pass: ")
    told = run("judge", log(tmp_path, "slow.log", table(SLOW)), "--family", "a3-mega", "--baseline", document)
    assert told.exit_code == 1
    assert "where the baseline has 185.4" in told.stdout


def test_a_document_of_a_test_that_did_not_end_well_never_passes(tmp_path: Path) -> None:
    whole = table(HEALTHY, footer=False)
    error = "worker-0: Test NCCL failure common.cu:1005 'unhandled system error / '"
    for lines, verdict in ((whole[:-1], "cannot tell: "), ([*whole, error], "fail: ")):
        document = run("parse", log(tmp_path, "run.log", lines), "--format", "json").stdout
        assert run("judge", "-", "--family", "a3-mega", stdin=document).stdout.startswith(verdict)


def test_the_transport_of_a_document_counts_as_that_of_a_log(tmp_path: Path) -> None:
    for network, code in (("FasTrak", 0), ("Socket", 1)):
        path = log(tmp_path, f"{network}.log", with_lines(table(HEALTHY), said(network=network)))
        document = log(tmp_path, f"{network}.json", [run("parse", path, "--format", "json").stdout])
        told = run("judge", document, "--family", "a3-mega", "--nodes", "2", "--json")
        assert told.exit_code == code
        assert json.loads(told.stdout)["transport"] == network


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run.log", "--family", "h100"], "unknown hardware family 'h100'"),
        (["absent.log"], "No such file"),
        (["."], "Is a directory"),
        (["run.log", "--nodes", "0"], "--nodes"),
        (["run.log", "--baseline", "empty.log"], "is no baseline"),
        ([], "FILE"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    log(tmp_path, "run.log", table(HEALTHY))
    log(tmp_path, "empty.log", ["nothing"])
    ended = run("judge", *arguments)
    assert ended.exit_code == 2
    assert ended.stdout == ""
    assert told in ended.stderr


def test_the_name_of_a_file_cannot_draw_on_the_terminal(tmp_path: Path) -> None:
    told = run("judge", log(tmp_path, "a\x1b[31m\nb.log", table(HEALTHY)), "--family", "a3-mega")
    assert told.exit_code == 0
    assert "\x1b" not in told.stdout
    assert "a?[31m?b.log" in told.stdout


def test_nodes_that_contradict_the_log_are_said(tmp_path: Path) -> None:
    path = log(tmp_path, "run.log", table(HEALTHY))
    told = run("judge", path, "--family", "a3-mega", "--nodes", "4")
    assert told.exit_code == 3
    assert "4 nodes, as --nodes says, where the log names 2" in told.stdout


def test_compare_tells_the_direction_and_ends_with_it(tmp_path: Path) -> None:
    good, slow = log(tmp_path, "a.log", table(HEALTHY)), log(tmp_path, "b.log", table(SLOW))
    told = run("compare", good, slow)
    assert told.exit_code == 1
    assert told.stdout.startswith("slower: all_gather over 16 ranks at 1 GiB")
    assert "10.0% assumed" in told.stdout
    assert (run("compare", slow, good).exit_code, run("compare", good, good).exit_code) == (0, 0)
    assert run("compare", good, good).stdout.startswith("same: ")


def test_compare_prints_its_documented_document(tmp_path: Path) -> None:
    good, slow = log(tmp_path, "a.log", table(HEALTHY)), log(tmp_path, "b.log", table(SLOW))
    document = json.loads(run("compare", good, slow, "--json", "--noise", "0.02").stdout)
    page = (Path(__file__).parents[3] / "docs" / "verdicts.md").read_text()
    assert document["outcome"] == "slower"
    assert all(f"`{key}`" in page for each in document["changes"] for key in each)
    assert {each["noise"] for each in document["changes"]} == {0.02}


def test_compare_refuses_and_cannot_tell(tmp_path: Path) -> None:
    good = log(tmp_path, "a.log", table(HEALTHY))
    other = log(tmp_path, "b.log", table(HEALTHY, ranks=32, nodes=4))
    none = log(tmp_path, "c.log", ["nothing"])
    assert run("compare", good, other).exit_code == 3
    assert json.loads(run("compare", good, other, "--json").stdout) == {"outcome": "cannot tell", "changes": []}
    assert run("compare", good, none).exit_code == 3
    assert run("compare", "-", "-").exit_code == 2
    assert run("compare", good, tmp_path / "absent").exit_code == 2


def test_judge_and_compare_are_verbs_of_verify() -> None:
    told = CliRunner().invoke(main, ["verify", "--help"]).output
    assert " judge " in told
    assert " compare " in told
