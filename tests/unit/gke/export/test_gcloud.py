"""The gcloud script, run by a shell with a ``gcloud`` that records and remembers."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from interlace.gke import importing
from interlace.gke.bodies.requests import create
from interlace.gke.cluster import FabricCluster
from interlace.gke.describing import described
from interlace.gke.desired import desired
from interlace.gke.errors import Refused
from interlace.gke.export.commands import Command, commands
from interlace.gke.export.gcloud import as_script
from interlace.gke.reading import parse, read_cluster
from interlace.gke.resource import Resource
from tests.unit.gke.spec.clusters import CALM, FAMILIES, cluster, pool
from tests.unit.gke.spec.test_desired import clusters

ROOT = Path(__file__).parents[4]
FLAGS = json.loads((ROOT / "tests" / "data" / "gke" / "flags.json").read_text())

GCLOUD = r"""#!/bin/sh
# Records each call, remembers what was made, and fails at what it was told to fail at.
printf '%s\037' "$@" >> "$RECORDS/calls"
echo >> "$RECORDS/calls"
made="$RECORDS/made"
for word in "$@"; do
  case $word in
    beta | group-placement) ;;
    create | update | describe) verb=$word ;;
    --add-maintenance-exclusion-name=*) hold=${word#*=} ;;
    --format=*) form=$word ;;
    --*) ;;
    *) made="$made-$word" name=$word ;;
  esac
done
refuse() { echo "ERROR: $1" >&2; exit 1; }
case $verb in
  create)
    [ "$FAIL" = "$name" ] && refuse "the server said no"
    [ -e "$made" ] && refuse "it exists already"
    : > "$made" ;;
  update) echo "$hold" > "$made" ;;
  describe)
    [ -e "$made" ] || refuse "not found"
    case $form in *maintenance*) cat "$made" ;; *) echo "$name" ;; esac ;;
esac
"""


class Shell:
    """A folder with such a ``gcloud``, and what it was called with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        program = folder / "bin" / "gcloud"
        program.parent.mkdir()
        program.write_text(GCLOUD)
        program.chmod(0o755)

    def run(self, script: str, *, fail: str = "") -> subprocess.CompletedProcess[str]:
        """Run the script; ``fail``: the name of what cannot be made."""
        (self.folder / "calls").write_text("")
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        return subprocess.run(
            ["bash", "-c", script],
            env={"PATH": path, "RECORDS": str(self.folder), "FAIL": fail},
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )

    @property
    def calls(self) -> list[list[str]]:
        """Words of each call of the last run."""
        return [line.split("\x1f")[:-1] for line in (self.folder / "calls").read_text().splitlines()]

    def mutating(self) -> list[list[str]]:
        """Calls of the last run that make or change something."""
        return [each for each in self.calls if {"create", "update"} & set(each)]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def example(family: str) -> FabricCluster:
    return read_cluster(ROOT / "examples" / family / "cluster.yaml")


def script(found: FabricCluster) -> str:
    return as_script(desired(found), title="test").text


@pytest.mark.parametrize("family", ["a3-high", "a3-mega", "a3-ultra"])
def test_the_script_of_an_example_makes_everything_once_and_nothing_when_it_runs_again(
    shell: Shell, family: str
) -> None:
    text = script(example(family))
    first = shell.run(text)
    assert (first.returncode, first.stderr) == (0, "")
    made = shell.mutating()
    assert len(made) == len(desired(example(family))) + 1
    assert all(_known(each) for each in shell.calls)
    again = shell.run(text)
    assert again.returncode == 0
    assert shell.mutating() == []
    assert len(shell.calls) == len(made)


def test_a_script_that_was_stopped_goes_on_where_it_was(shell: Shell) -> None:
    text = script(example("a3-high"))
    stopped = shell.run(text, fail="example-sub-3")
    assert stopped.returncode == 1
    assert "the server said no" in stopped.stderr
    before = shell.mutating()
    assert before[-1][:4] == ["compute", "networks", "subnets", "create"]
    assert shell.run(text).returncode == 0
    assert len(before) - 1 + len(shell.mutating()) == len(desired(example("a3-high"))) + 1


def _known(words: list[str]) -> bool:
    """Whether gcloud 528 has the command on that track, and all flags with these values."""
    track = words[0] if words[0] in {"beta", "alpha"} else "ga"
    rest = words[1:] if track != "ga" else words
    plain = [word for word in rest if not word.startswith("--")]
    name = next(known for known in FLAGS["commands"] if " ".join(plain).startswith(known))
    command = FLAGS["commands"][name]
    assert track in command["tracks"]
    for word in rest:
        if word.startswith("--"):
            flag, _, value = word.partition("=")
            _judge(command["flags"], flag, value, track=track, given="=" in word)
    return True


def _judge(flags: dict[str, Any], flag: str, value: str, *, track: str, given: bool) -> None:
    if flag in FLAGS["global_flags"]:
        return
    plain = f"--{flag.removeprefix('--no-')}" if flag.startswith("--no-") else flag
    known = flags[plain]
    assert plain == flag or known.get("negatable"), flag
    assert track in known.get("tracks", [track]), flag
    assert given == (known["kind"] != "bool"), flag
    if known["kind"] == "choices":
        choices = known.get("choices") or known["by_track"][track]
        assert value.lower() in {each.lower() for each in choices}, (flag, value)
    keys = known.get("keys") or known.get("keys_by_track", {}).get(track)
    if keys:
        assert {pair.partition("=")[0] for pair in value.split(",")} <= set(keys), (flag, value)


def all_commands(found: FabricCluster) -> list[Command]:
    return [command for resource in desired(found) for command in commands(resource)]


@given(found=clusters())
@settings(CALM, max_examples=40)
def test_whatever_a_file_says_gcloud_has_the_commands_and_flags(found: FabricCluster) -> None:
    for command in all_commands(found):
        assert _known(list(command.ask[1:]))
        assert _known(list(command.run[1:]))


@given(found=clusters())
@settings(CALM, max_examples=30)
def test_the_importer_reads_the_commands_as_the_requests_that_the_file_means(found: FabricCluster) -> None:
    resources = desired(found)
    page = "\n".join(shlex.join(commands(each)[0].run) for each in resources)
    read, _ = importing.requests(page)
    assert list(read) == [create(_without_hold(each)) for each in resources]


@given(found=clusters())
@settings(CALM, max_examples=25)
def test_the_script_is_imported_as_the_cluster_that_it_was_exported_from(found: FabricCluster) -> None:
    read = importing.reading(script(found), project=found.spec.project)
    (answer,) = described(read, project=found.spec.project, today=date(2026, 12, 1))
    again = parse(msgspec.json.encode(answer.document)).cluster
    assert [_without_hold(each) for each in desired(again)] == [_without_hold(each) for each in desired(found)]


def _without_hold(resource: Resource) -> Resource:
    """A hold is a command of its own, which has an end even where the file gives none."""
    body = {key: value for key, value in resource.body.items() if key != "maintenancePolicy"}
    return msgspec.structs.replace(resource, body=body)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_nics_of_a_pool_go_out_in_their_order(family: str) -> None:
    found = cluster(family)
    flags = [each for each in all_commands(found)[-1].run if each.startswith("--additional-node-network")]
    nics = desired(found)[-1].body["networkConfig"]["additionalNodeNetworkConfigs"]
    assert flags == [
        f"--additional-node-network=network={each['network']},subnetwork={each['subnetwork']}" for each in nics
    ]


def test_host_maintenance_is_asked_for_on_the_beta_track() -> None:
    (command,) = commands(desired(cluster(pools=[pool(hostMaintenance="PERIODIC")]))[-1])
    assert command.run[:4] == ("gcloud", "beta", "container", "node-pools")
    assert "--host-maintenance-interval=PERIODIC" in command.run


def test_a_hold_without_an_end_is_said_to_end() -> None:
    exported = as_script(desired(cluster(upgrades={"hold": {"start": "2026-12-01T00:00:00Z"}})), title="test")
    (note,) = exported.notes
    assert "2027-05-30T00:00:00Z" in note
    assert f"# {note}." in exported.text


def test_what_gcloud_has_no_flag_for_is_refused_by_name() -> None:
    with pytest.raises(Refused, match=r"nodePool/gpu has networkConfig\.acceleratorNetworkProfile"):
        script(cluster("a4", network={"mode": "managed"}))


def test_values_are_quoted_for_the_shell(shell: Shell) -> None:
    image = f"COS_CONTAINERD; touch {shell.folder}/harm"
    text = script(cluster("a3-high", pools=[pool(imageType=image)]))
    assert shell.run(text).returncode == 0
    assert f"--image-type={image}" in shell.calls[-1]
    assert not (shell.folder / "harm").exists()
