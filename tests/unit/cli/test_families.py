"""What ``interlace families`` says is what stands in the data files, whole and with sources."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from interlace.cli.exits import Exit
from interlace.cli.families import network_names
from interlace.cli.main import main
from interlace.fabric.facts import facts
from interlace.fabric.family import IDS, find


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["families", *arguments])


def document(*arguments: str) -> Any:
    told = run(*arguments, "--json")
    assert told.exit_code == 0, told.output
    assert told.stderr == ""
    return json.loads(told.stdout)


def test_the_list_has_a_line_for_each_family() -> None:
    told = run()
    assert told.exit_code == 0
    lines = told.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["FAMILY", *IDS]
    assert "a3-megagpu-8g" in lines[2]
    assert "tcpxo-1.0.15" in lines[2]


def test_the_list_is_a_document_for_programs() -> None:
    found = {entry["family"]: entry for entry in document()}
    assert list(found) == list(IDS)
    assert found["a4x"]["mnnvl"] is True
    assert found["a3-high"]["machines"] == ["a3-highgpu-8g"]
    assert found["gb200-nvl72"]["gke"] is False


@pytest.mark.parametrize("family", IDS)
def test_a_family_is_shown_with_every_fact_and_its_source(family: str) -> None:
    told = run("show", family)
    assert told.exit_code == 0
    for fact in facts(family):
        assert fact.names_itself or f"{fact.path} " in told.stdout, fact
    for key, source in find(family).sources.items():
        assert f"{key} " in told.stdout
        assert source.title in told.stdout
        assert source.date in told.stdout


def test_a_machine_type_names_its_family() -> None:
    assert run("show", "a3-megagpu-8g").stdout == run("show", "a3-mega").stdout


@pytest.mark.parametrize("family", IDS)
def test_the_page_for_programs_has_all_facts_and_bands(family: str) -> None:
    found = document("show", family)
    assert len(found["facts"]) == len(facts(family))
    assert {fact["source"] for fact in found["facts"]} <= set(found["sources"])
    assert {f"bands.{band['source']}" for band in found["bands"]} <= set(found["sources"])


def test_the_bands_are_shown_in_figures() -> None:
    out = run("show", "a3-mega").stdout
    assert "160 GB/s (80% of 200)" in out
    assert "130 GB/s (65%)" in out
    assert "at most 0.3 ms" in out


def test_versions_are_listed_for_all_and_for_one() -> None:
    everything = run("versions").stdout
    assert "1.34.5-gke.1153000" in everything
    assert "not offered on GKE" in everything
    one = run("versions", "a3-high").stdout
    assert "1.34.5-gke.1153000" in one
    assert "a3-mega" not in one
    rows = document("versions", "a3-high")[0]["versions"]
    assert {"minor": "1.34", "version": "1.34.5-gke.1153000"}.items() <= rows[7].items()
    assert all(row["date"] for row in rows)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["a3-high", "--cluster-version", "1.34.5-gke.1153000"], 0, "a3-high: ok: "),
        (["a3-high", "--cluster-version", "v1.34.4-gke.1"], 1, "a3-high: no: a3-high needs 1.34.5-gke.1153000"),
        (["--cluster-version", "1.32.2-gke.1475000"], 0, "a4: ok: "),
        (["--cluster-version", "1.20.0-gke.1"], 1, "a3-mega: no: "),
        (["a4", "--cluster-version", "9.9.9-gke.1"], 0, "newer than the table of a4"),
    ],
)
def test_a_version_is_judged(arguments: list[str], code: int, says: str) -> None:
    told = run("versions", *arguments)
    assert told.exit_code == code
    assert says in told.stdout


def test_a_verdict_is_a_document_for_programs() -> None:
    (verdict,) = document("versions", "a4", "--cluster-version", "1.32.2-gke.1475000")
    assert (verdict["family"], verdict["ok"], verdict["known"]) == ("a4", True, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["show", "a5"], "unknown hardware family 'a5'; the known ones are a3-high (a3-highgpu-8g), "),
        (["show", "a3-edgegpu-8g"], "machine type a3-edgegpu-8g is not of family a3-high: "),
        (["show", ""], "unknown hardware family ''"),
        (["versions", "a4", "--cluster-version", "latest"], "--cluster-version: 'latest' is not a GKE version"),
        (["versions", "nope"], "unknown hardware family 'nope'"),
        (["show"], "Missing argument"),
        (["--json", "show", "a4"], "--json goes behind the sub-command"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(arguments: list[str], says: str) -> None:
    told = run(*arguments)
    assert told.exit_code == 2
    assert told.stdout == ""
    assert says in told.stderr


def test_names_of_networks_are_mapped() -> None:
    family = find("a3-high")
    assert network_names(family, None) == {}
    assert network_names(family, "vpc1=rail1, vpc4 = rail.4") == {"vpc1": "rail1", "vpc4": "rail.4"}
    assert network_names(family, "vpc1=vpc2,vpc2=vpc1") == {"vpc1": "vpc2", "vpc2": "vpc1"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("vpc1", "'vpc1' is not NAME=OTHER"),
        ("vpc9=x", "a3-high has no network 'vpc9'; there are vpc1, vpc2, vpc3, vpc4"),
        ("vpc1=X_y", "'X_y' cannot be the name"),
        ("vpc1=", "'' cannot be the name"),
        ("vpc1=a,vpc1=b", "vpc1 is given twice"),
        ("vpc1=vpc2", "two networks have the name vpc2"),
    ],
)
def test_a_bad_map_of_names_is_refused(text: str, says: str) -> None:
    with pytest.raises(Exit) as caught:
        network_names(find("a3-high"), text)
    assert caught.value.code == 2
    assert says in caught.value.message
