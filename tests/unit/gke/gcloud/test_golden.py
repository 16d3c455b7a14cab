"""What gcloud 528 was recorded to send for a command, against the requests that are read out of the command.

No recorded body goes into the renderer: commands go in as a line of shell, requests come out.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from interlace.cli.main import main
from interlace.gke.errors import Refused
from interlace.gke.importing import requests

ROOT = Path(__file__).parents[4]
GOLDEN = ROOT / "tests" / "data" / "gke" / "golden"
CREATING = ("cl-", "np-", "net-", "sub-", "fw-", "gp-", "rsv-", "wp-")

REFUSED: dict[str, str] = {
    "upd-cluster-exclusion": "container clusters update",
    "upd-cluster-labels": "container clusters update",
    "upd-firewall-rules": "compute firewall-rules update",
    "upd-network-mtu": "compute networks update",
    "upd-pool-no-autorepair": "autorepair",
    "upd-pool-no-autoupgrade": "autoupgrade",
}
"""Recorded commands that are refused, and what the refusal names. None of them creates anything."""

CASES = sorted(path.stem for path in GOLDEN.glob("*.json") if not path.stem.startswith("seq-"))
SEQUENCES = sorted(path.stem for path in GOLDEN.glob("seq-*.json"))


def recorded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text())
    return found


def mutating(step: dict[str, Any]) -> list[dict[str, Any]]:
    """Requests that change something: a wait is a POST that changes nothing."""
    return [each for each in step["requests"] if each["method"] != "GET" and not each["path"].endswith("/wait")]


def line(argv: list[str]) -> str:
    return " ".join(shlex.quote(word) for word in argv)


def sent(text: str) -> list[dict[str, Any]]:
    found, _ = requests(text, project="example-project")
    return [msgspec.to_builtins(each) for each in found]


def test_cases_of_all_kinds_were_recorded() -> None:
    assert all(any(case.startswith(kind) for case in CASES) for kind in CREATING)
    assert not any(case.startswith(CREATING) for case in REFUSED)


@pytest.mark.parametrize("case", [each for each in CASES if each not in REFUSED])
def test_a_command_means_the_requests_that_gcloud_sends(case: str) -> None:
    step = recorded(case)
    assert sent(line(step["argv"])) == mutating(step)


@pytest.mark.parametrize("case", REFUSED)
def test_a_command_whose_request_depends_on_the_service_is_refused_by_name(case: str) -> None:
    with pytest.raises(Refused, match=REFUSED[case]):
        sent(line(recorded(case)["argv"]))


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_script_means_the_requests_of_its_commands_in_order(name: str) -> None:
    steps = recorded(name)["steps"]
    script = "#!/bin/sh\nset -e\n" + "\n".join(line(step["argv"]) for step in steps)
    assert sent(script) == [request for step in steps for request in mutating(step)]


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_script_of_many_short_lines_means_the_same(name: str) -> None:
    steps = recorded(name)["steps"]
    script = "\n\n".join(" \\\n    ".join(shlex.quote(word) for word in step["argv"]) for step in steps)
    assert sent(script) == [request for step in steps for request in mutating(step)]


def test_the_loop_of_the_published_recipe_means_the_recorded_networks() -> None:
    script = """
    for N in $(seq 1 8); do
    gcloud compute networks create example-net-$N \\
        --subnet-mode=custom \\
        --mtu=8244

    gcloud compute networks subnets create example-sub-$N \\
        --network=example-net-$N \\
        --region=us-central1 \\
        --range=192.168.$N.0/24

    gcloud compute firewall-rules create example-internal-$N \\
      --network=example-net-$N \\
      --action=ALLOW \\
      --rules=tcp:0-65535,udp:0-65535,icmp \\
      --source-ranges=192.168.0.0/16
    done
    gcloud compute networks list
    """
    steps = recorded("seq-tcpxo-create")["steps"]
    assert sent(script) == [request for step in steps[:24] for request in mutating(step)]


def test_the_verb_prints_the_requests_and_nothing_else(tmp_path: Path) -> None:
    step = recorded("np-tcpxo-seed-all-options-beta")
    page = tmp_path / "page.sh"
    page.write_text(line(step["argv"]) + "\n")
    options = ["--project", "example-project", "--format", "requests"]
    result = CliRunner().invoke(main, ["gke", "import", "-f", str(page), *options])
    assert result.exit_code == 0
    assert result.stderr == ""
    assert json.loads(result.stdout) == {"requests": mutating(step)}
