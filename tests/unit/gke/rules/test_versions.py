"""Versions that GKE offers, and the command that lists those for a family."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from interlace.cli.exits import Code
from interlace.cli.main import main
from interlace.fabric.family import find
from interlace.gke.errors import Refused
from interlace.gke.versions import offers, read_config
from tests.unit.gke.rules.bundles import DATA

RECORDED = DATA / "server" / "container-server-config.json"


def config(**members: Any) -> Any:
    return {"validMasterVersions": ["1.33.4-gke.100"], "validNodeVersions": ["1.33.4-gke.100"], **members}


def test_versions_come_newest_first_with_channels_and_verdict() -> None:
    found = offers(find("a3-mega"), read_config(json.loads(RECORDED.read_text()), what="it"))
    assert [(each.version, each.supported) for each in found] == [
        ("1.31.1-gke.1146000", False),
        ("1.30.4-gke.1129000", True),
        ("1.30.2-gke.1023000", False),
        ("1.29.4-gke.1542000", True),
    ]
    assert found[1].channels == ("static", "regular")
    assert found[1].default_of == ("static", "regular")


def test_a_version_that_nodes_cannot_have_is_not_offered_without_a_channel() -> None:
    found = offers(find("a3-high"), read_config(config(validNodeVersions=["1.32.1-gke.1"]), what="it"))
    assert found == ()


def test_a_version_beyond_the_table_is_offered_as_unknown() -> None:
    newer = config(channels=[{"channel": "RAPID", "validVersions": ["1.99.0-gke.1", "odd"]}])
    found = offers(find("a3-high"), read_config(newer, what="it"))
    assert next((each.version, each.supported, each.known) for each in found) == ("1.99.0-gke.1", True, False)
    assert len(found) == 2


@pytest.mark.parametrize("document", [[], {}, {"validMasterVersions": "1.33"}, {"body": {}}, {"channels": [1]}])
def test_what_is_no_server_config_is_refused(document: Any) -> None:
    with pytest.raises(Refused, match="it "):
        read_config(document, what="it")


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["gke", "versions", *arguments], input=stdin)


def test_the_command_lists_what_the_family_works_on() -> None:
    told = run("--family", "a3-megagpu-8g", "--server-config", str(RECORDED))
    assert told.exit_code == Code.GOOD
    assert [line.split()[0] for line in told.stdout.splitlines()] == [
        "VERSION",
        "1.30.4-gke.1129000",
        "1.29.4-gke.1542000",
    ]


def test_the_command_gives_programs_a_list_and_with_all_the_refused_ones_too() -> None:
    told = run("--family", "a3-mega", "--server-config", "-", "--all", "--json", stdin=RECORDED.read_text())
    assert told.exit_code == Code.GOOD
    assert {each["version"]: each["supported"] for each in json.loads(told.stdout)} == {
        "1.31.1-gke.1146000": False,
        "1.30.4-gke.1129000": True,
        "1.30.2-gke.1023000": False,
        "1.29.4-gke.1542000": True,
    }


def test_where_no_version_is_new_enough_the_answer_is_bad() -> None:
    told = run("--family", "a3-ultra", "--server-config", str(RECORDED))
    assert told.exit_code == Code.BAD
    assert "none of the 4 versions" in told.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--family", "a5", "--server-config", str(RECORDED)), "unknown hardware family"),
        (("--family", "gb200-nvl72", "--server-config", str(RECORDED)), "not offered on GKE"),
        (("--family", "a3-high", "--server-config", "no-such-file"), "no-such-file: No such file"),
        (("--family", "a3-high", "--server-config", "-"), "is no JSON document"),
        (("--family", "a3-high"), "name --project and --location"),
    ],
)
def test_bad_input_is_refused_by_name(
    arguments: tuple[str, ...], says: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    for name in ("CLOUDSDK_CORE_PROJECT", "CLOUDSDK_COMPUTE_ZONE", "CLOUDSDK_COMPUTE_REGION"):
        monkeypatch.delenv(name, raising=False)
    told = run(*arguments, stdin="{")
    assert told.exit_code == Code.REFUSED
    assert says in told.stderr
