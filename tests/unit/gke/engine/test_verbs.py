"""The verbs as people call them, against the simulated cloud over HTTP."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from interlace.cli.main import main
from interlace.gke.lock import hold
from interlace.sim.gke import Fault, Kind
from tests.unit.gke.engine.ground import Ground, ground
from tests.unit.gke.engine.sky import SMALL


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Ground]:
    with ground(tmp_path) as bed:
        yield bed


def test_plan_apply_plan_drift_destroy(bed: Ground) -> None:
    first = bed.run("plan", "--exit-code")
    assert first.exit_code == 1
    assert "(simulated)" in first.stdout
    assert "16 to create" in first.stdout
    assert "about 200 USD an hour" in first.stdout
    assert bed.mutations() == []

    applied = bed.run("apply", "--yes", "--json")
    assert applied.exit_code == 0, applied.stderr
    answer = json.loads(applied.stdout)
    assert answer["simulated"] is True
    assert answer["summary"] == {"done": 16, "failed": 0, "blocked": 0, "unknown": 0}
    assert "not applied" in answer["objects"]
    assert answer["next"].startswith("interlace gke check")

    again = bed.run("plan", "--exit-code", "--json")
    assert again.exit_code == 0
    plan = json.loads(again.stdout)
    assert plan["empty"] is True
    assert {step["action"] for step in plan["steps"]} == {"keep"}
    drift = bed.run("drift", "--exit-code")
    assert (drift.exit_code, "as the file says" in drift.stdout) == (0, True)

    gone = bed.run("destroy", "--yes")
    assert gone.exit_code == 0, gone.stderr
    assert "nothing is left of it" in gone.stdout
    assert bed.made() == []


def test_markdown_for_a_pull_request(bed: Ground) -> None:
    text = bed.run("plan", "--format", "markdown").stdout
    assert text.startswith("### Plan for cluster `high`")
    assert "**Simulated:**" in text
    assert "| `+` | `network/high-net-1` | create |" in text


def test_without_live_prices_the_table_is_shown_and_that_is_said(bed: Ground) -> None:
    told = bed.run("plan", "--live-prices")
    assert told.exit_code == 0
    assert "those of the dated table are shown" in told.stderr
    assert "about 200 USD an hour" in told.stdout


def test_drift_is_told_by_the_exit_code_only_when_that_is_asked_for(bed: Ground) -> None:
    bed.run("apply", "--yes")
    rule = next(path for path in bed.made() if path.endswith("high-internal-1"))
    bed.server.store.objects[rule]["disabled"] = True
    assert bed.run("drift").exit_code == 0
    told = bed.run("drift", "--exit-code")
    assert told.exit_code == 1
    assert "disabled: true → false" in told.stdout


def test_nobody_is_changed_without_being_asked(bed: Ground) -> None:
    for verb in ("apply", "destroy", "adopt"):
        refused = bed.run(verb)
        assert refused.exit_code == 2
        assert "--yes" in refused.stderr
    assert len(bed.server.log) == 0


def test_a_replacement_is_refused_before_anything_is_sent(bed: Ground) -> None:
    bed.run("apply", "--yes")
    before = bed.mutations()
    bed.write(SMALL.replace("nodes: 2", "nodes: 2\n      maxPods: 64"))
    assert "REPLACE" in bed.run("plan").stdout
    refused = bed.run("apply", "--yes")
    assert refused.exit_code == 2
    assert "maxPodsConstraint.maxPodsPerNode of nodePool/gpu-pool cannot be changed" in refused.stderr
    assert bed.mutations() == before
    assert bed.run("apply", "--yes", "--replace").exit_code == 0


def test_what_is_not_ours_is_refused_and_can_be_adopted(bed: Ground) -> None:
    bed.run("apply", "--yes")
    for path in bed.made():
        if path.endswith("networks/high-net-1"):
            bed.server.store.objects[path]["description"] = "by hand"
    refused = bed.run("apply", "--yes")
    assert refused.exit_code == 2
    assert "network/high-net-1: exists and was not made for this cluster" in refused.stderr
    assert bed.run("adopt", "--yes", "subnet/none").exit_code == 2
    assert bed.run("adopt", "--yes", "network/*").exit_code == 0
    assert bed.run("adopt", "--yes").exit_code == 1
    assert bed.run("plan", "--exit-code").exit_code == 0
    assert bed.run("destroy", "--yes").exit_code == 0
    assert bed.made() == []


def test_a_stockout_is_told_with_what_can_be_done(tmp_path: Path) -> None:
    with ground(tmp_path, Fault(kind=Kind.STOCKOUT, match="POST .*/nodePools$")) as bed:
        failed = bed.run("apply", "--yes")
        assert failed.exit_code == 4
        assert "GCE_STOCKOUT" in failed.stdout
        assert "15 done, 1 failed" in failed.stdout
        assert "next: interlace gke apply" in failed.stdout
        again = bed.run("apply", "--yes")
        assert again.exit_code == 1
        assert "nodePool/gpu-pool: ERROR" in again.stdout
        assert "another zone" in again.stdout
        assert bed.run("drift", "--exit-code").exit_code == 1


def test_what_may_not_be_read_is_told_as_that(tmp_path: Path) -> None:
    with ground(tmp_path, Fault(kind=Kind.PERMISSION_DENIED, match="GET .*/firewalls", times=None)) as bed:
        for verb in (("plan",), ("drift",), ("apply", "--yes"), ("destroy", "--yes"), ("adopt", "--yes")):
            refused = bed.run(*verb)
            assert (verb, refused.exit_code) == (verb, 3)
            assert "permission" in refused.stderr
            assert refused.stdout == ""
        assert bed.mutations() == []


def test_two_runs_at_once_are_refused(bed: Ground) -> None:
    folder = bed.folder / "state" / "simulated"
    held = folder / bed.server.url.removeprefix("http://").replace(":", "_") / "example-project/us-central1-a/high"
    with hold(held, verb="interlace gke apply"):
        refused = bed.run("apply", "--yes")
        assert refused.exit_code == 2
        assert "interlace gke apply, process" in refused.stderr
        assert bed.run("plan").exit_code == 0
    assert bed.mutations() == []


def test_a_damaged_journal_is_named_and_nothing_is_sent(bed: Ground) -> None:
    bed.run("apply", "--yes")
    (journal,) = (bed.folder / "state").rglob("journal.jsonl")
    journal.write_bytes(b"{}\n" + journal.read_bytes())
    before = bed.mutations()
    refused = bed.run("destroy", "--yes")
    assert refused.exit_code == 2
    assert f"{journal}:1" in refused.stderr
    assert bed.mutations() == before


@pytest.mark.parametrize("verb", [("plan",), ("drift",), ("apply", "--yes"), ("destroy", "--yes")])
def test_without_network_nothing_is_done(tmp_path: Path, verb: tuple[str, ...]) -> None:
    (tmp_path / "cluster.yaml").write_text(SMALL, encoding="utf-8")
    options = ["-f", str(tmp_path / "cluster.yaml"), "--endpoint", "http://127.0.0.1:1", "--state", str(tmp_path)]
    refused = CliRunner().invoke(main, ["gke", *verb, *options])
    assert refused.exit_code == 2
    assert "http://127.0.0.1:1: no answer to" in refused.stderr
    assert "Check the network" in refused.stderr


@pytest.mark.parametrize("text", ["nonsense", "ftp://127.0.0.1", "http://"])
def test_an_endpoint_that_is_no_url_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.yaml").write_text(SMALL, encoding="utf-8")
    refused = CliRunner().invoke(main, ["gke", "plan", "-f", str(tmp_path / "cluster.yaml"), "--endpoint", text])
    assert refused.exit_code == 2
    assert "no URL of a server" in refused.stderr


def test_without_credentials_nothing_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = tmp_path / "no-such-key.json"
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(missing))
    (tmp_path / "cluster.yaml").write_text(SMALL, encoding="utf-8")
    options = ["-f", str(tmp_path / "cluster.yaml"), "--state", str(tmp_path)]
    for verb in (("plan",), ("apply", "--yes")):
        refused = CliRunner().invoke(main, ["gke", *verb, *options])
        assert refused.exit_code == 2
        assert "Google credentials" in refused.stderr
        assert "gcloud auth application-default login" in refused.stderr


@pytest.mark.parametrize("line", ["  location: us-central1-a\n", "  project: example-project\n"])
def test_a_file_without_location_or_project_is_refused_with_its_place(tmp_path: Path, line: str) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(SMALL.replace(line, ""), encoding="utf-8")
    refused = CliRunner().invoke(main, ["gke", "plan", "-f", str(file), "--endpoint", "http://127.0.0.1:1"])
    assert refused.exit_code == 2
    assert f"{file}:" in refused.stderr


def test_destroy_shows_what_would_go_and_keeps_what_others_use(bed: Ground) -> None:
    bed.run("apply", "--yes")
    network = next(path for path in bed.made() if path.endswith("networks/high-net-2"))
    rule = network.replace("networks/high-net-2", "firewalls/by-hand")
    body = {"kind": "compute#firewall", "id": "1", "name": "by-hand", "network": f"https://x/compute/v1/{network}"}
    bed.server.store.put(rule, {**body, "direction": "INGRESS", "allowed": [{"IPProtocol": "tcp"}]})
    before = bed.mutations()
    dry = bed.run("destroy", "--dry-run")
    assert dry.exit_code == 0
    assert "- network/high-net-1" in dry.stdout
    assert "goes with its cluster" in dry.stdout
    assert "! not ours, in network/high-net-2: firewall/by-hand; so network/high-net-2 stays" in dry.stdout
    told = json.loads(bed.run("destroy", "--dry-run", "--json").stdout)
    assert told["foreign"] == {"network/high-net-2": ["firewall/by-hand"]}
    assert {"network/high-net-1", "cluster/high", "nodePool/gpu-pool"} <= set(told["delete"])
    assert bed.mutations() == before

    kept = bed.run("destroy", "--yes", "--json")
    assert kept.exit_code == 1, kept.stderr
    answer = json.loads(kept.stdout)
    assert answer["kept"] == ["network/high-net-2"]
    (bad,) = [each for each in answer["results"] if each["state"] != "done"]
    assert "firewall/by-hand" in bad["reason"]
    assert bed.made() == sorted([network, rule])

    gone = bed.run("destroy", "--yes", "--with-foreign-rules")
    assert gone.exit_code == 0
    assert bed.made() == []
    assert "nothing of this cluster was made here" in bed.run("destroy", "--yes").stderr


def test_adopt_says_what_it_took_over(bed: Ground) -> None:
    bed.run("apply", "--yes")
    for path in bed.made():
        if path.endswith("firewalls/high-internal-1"):
            bed.server.store.objects[path]["description"] = ""
    told = bed.run("adopt", "--yes", "--json")
    assert told.exit_code == 0, told.stderr
    answer = json.loads(told.stdout)
    assert answer["adopted"] == [{"kind": "firewall", "place": "global", "name": "high-internal-1"}]
    assert answer["next"].startswith("interlace gke plan")
    assert bed.run("plan", "--exit-code").exit_code == 0


def test_all_steps_are_shown_on_request(bed: Ground) -> None:
    bed.run("apply", "--yes")
    assert "network/high-net-1" not in bed.run("plan").stdout
    assert "network/high-net-1  as it is meant" in bed.run("plan", "--all").stdout


def test_nothing_of_others_goes_with_what_is_replaced(bed: Ground) -> None:
    bed.run("apply", "--yes")
    network = next(path for path in bed.made() if path.endswith("networks/high-net-2"))
    bed.server.store.objects[network]["autoCreateSubnetworks"] = True
    rule = {"kind": "compute#firewall", "id": "1", "name": "by-hand", "network": f"https://x/compute/v1/{network}"}
    bed.server.store.put(network.replace("networks/high-net-2", "firewalls/by-hand"), rule)
    before = bed.mutations()
    refused = bed.run("apply", "--yes", "--replace")
    assert refused.exit_code == 2
    assert "--replace deletes nodePool/gpu-pool" in refused.stderr
    assert "network/high-net-2: it would be deleted, but firewall/by-hand in it was not made here" in refused.stderr
    assert bed.mutations() == before


def test_the_next_command_can_be_pasted_and_finds_the_same_journal(tmp_path: Path) -> None:
    folder = tmp_path / "my files; rm"
    folder.mkdir()
    with ground(folder, Fault(kind=Kind.STOCKOUT, match="POST .*/nodePools$")) as bed:
        told = bed.run("apply", "--yes", "--prune", "--no-objects", "--part", "networks", "--json")
        assert told.exit_code == 4
        words = shlex.split(json.loads(told.stdout)["next"])
        assert words == ["interlace", *bed.arguments("apply", "--yes", "--prune", "--part", "networks", "--no-objects")]


def test_without_a_home_folder_one_is_asked_for(bed: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    refused = CliRunner().invoke(main, ["gke", "plan", "-f", str(bed.file), "--endpoint", bed.server.url])
    assert refused.exit_code == 2
    assert "--state" in refused.stderr


def test_a_folder_that_cannot_be_one_is_refused(bed: Ground) -> None:
    for verb in ("plan", "apply"):
        refused = bed.run(verb, *(["--yes"] if verb == "apply" else []), "--state", str(bed.folder / ("a" * 300)))
        assert refused.exit_code == 2
        assert "--state" in refused.stderr or "cannot be read" in refused.stderr
    assert bed.mutations() == []
