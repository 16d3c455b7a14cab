"""A page as a cluster file: what is carried over, what is filled in, what is found, and how the verb ends."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner

from interlace.cli.main import main
from interlace.gke.describing import complaints, described, written
from interlace.gke.desired import desired
from interlace.gke.errors import Refused
from interlace.gke.importing import reading, requests
from interlace.gke.reading import parse
from interlace.rules.finding import Finding
from tools.gke_page import DEFECTS, missing

ROOT = Path(__file__).parents[4]
PAGES = ROOT / "tests" / "data" / "gke" / "pages"
BROKEN = (PAGES / "broken.txt").read_text()
WHOLE = (PAGES / "whole.sh").read_text()
TODAY = date(2026, 11, 30)

POOL = "gcloud container node-pools create p --cluster=c --location=us-central1-a --machine-type=a3-megagpu-8g"
CLUSTER = "gcloud container clusters create c --location=us-central1-a"


def verb(text: str, *options: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ["gke", "import", "-f", "-", *options], input=text)
    return result.exit_code, result.stdout, result.stderr


def rules(text: str, **known: str) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for each in reading(text, project="my-project", location="us-central1-a", known=known).findings:
        found.setdefault(each.rule, []).append(each)
    return found


def files(text: str) -> list[dict[str, Any]]:
    page = reading(text, project="my-project", location="us-central1-a")
    return [each.document for each in described(page, project="my-project", today=TODAY)]


def lines_of(text: str, pattern: str) -> Iterator[int]:
    return (number for number, line in enumerate(text.splitlines(), start=1) if re.search(pattern, line))


def test_each_of_the_eleven_defects_is_found_in_a_page_that_has_them() -> None:
    found = reading(BROKEN, project="my-project", location="us-central1-a").findings
    assert len(DEFECTS) == 11
    assert missing(found) == []


def test_defects_are_found_where_they_stand() -> None:
    found = rules(BROKEN)
    stray = next(lines_of(BROKEN, r"^  --no-enable-autoupgrade$"))
    assert found["gcloud.stray-flag"][0].pointer == f"/lines/{stray}"
    assert "--no-enable-autoupgrade" in found["gcloud.stray-flag"][0].text
    tail = next(lines_of(BROKEN, r"^    --no-enable-autoupgrade \\$"))
    last = max(lines_of(BROKEN, r"--no-enable-autoupgrade \\$"))
    assert found["gcloud.trailing-backslash"][0].pointer == f"/lines/{last}" != f"/lines/{tail}"
    assert "PREFIX and PROJECT_ID" in found["gcloud.spelling"][0].text
    assert "24 GPUs" in found["gcloud.node-count"][0].text
    assert "--reservation" in found["gcloud.uneven-pools"][0].text


def test_the_number_of_gpus_of_a_regional_pool_is_that_of_one_zone() -> None:
    text = f"{CLUSTER} --enable-ip-alias\n{POOL} --accelerator=type=x,count=8".replace("us-central1-a", "us-central1")
    assert "in each of its zones" in rules(text)["gcloud.node-count"][0].text


def test_a_page_without_defects_has_none_of_them() -> None:
    found = reading(WHOLE, project="my-project").findings
    assert [each for each in found if each.severity == "error"] == []
    assert len(missing(found)) == len(DEFECTS)


def test_a_whole_page_becomes_a_cluster_file_with_the_same_requests() -> None:
    """But for what a cluster file says otherwise: names of what is there already, and versions of the API."""
    page = reading(WHOLE, project="my-project")
    (found,) = described(page, project="my-project", today=TODAY)
    cluster = parse(written(found, source="whole.sh")).cluster
    ours = {each.key: each for each in desired(cluster)}
    theirs = {step.resource.key: step.resource for step in page.steps if step.resource is not None}
    assert ours.keys() == theirs.keys()
    changed = {str(key): _differing(each.body, theirs[key].body) for key, each in ours.items()}
    assert {key: fields for key, fields in changed.items() if fields} == {"cluster/mega": {"shieldedNodes"}}


def _differing(ours: dict[str, Any], theirs: dict[str, Any]) -> set[str]:
    return {field for field in ours.keys() | theirs.keys() if ours.get(field) != theirs.get(field)}


def test_both_clusters_of_a_page_become_files_and_one_can_be_picked() -> None:
    code, out, _ = verb(BROKEN, "--project=my-project", "--location=us-central1-a")
    assert code == 1
    both = list(yaml.safe_load_all(out))
    assert [each["spec"]["family"] for each in both] == ["a3-mega", "a3-high"]
    assert [each["metadata"]["name"] for each in both] == ["a3-mega", "a3-high"]
    _, out, _ = verb(BROKEN, "--project=my-project", "--location=us-central1-a", "--family=a3-high")
    assert [each["spec"]["family"] for each in yaml.safe_load_all(out)] == ["a3-high"]


def test_files_of_a_broken_page_can_be_planned() -> None:
    page = reading(BROKEN, project="my-project", location="us-central1-a")
    for each in described(page, project="my-project", today=TODAY):
        text = written(each, source="broken.txt")
        assert [found for found in complaints(each, text) if found.severity == "error"] == []
        assert len(desired(parse(text).cluster)) > 10


def test_a_pool_without_upgrades_holds_them_in_the_channel() -> None:
    (found,) = files(f"{CLUSTER} --no-enable-autoupgrade\n{POOL}")
    assert found["spec"]["upgrades"] == {
        "channel": "regular",
        "hold": {"start": "2026-11-30T00:00:00Z", "scope": "NO_MINOR_OR_NODE_UPGRADES"},
    }


@pytest.mark.parametrize(
    ("flags", "key", "value"),
    [
        ("--num-nodes=0", "nodes", 0),
        ("--spot", "spot", True),
        ("--reservation-affinity=specific --reservation=r", "reservation", {"name": "r"}),
        (
            "--reservation-affinity=specific --reservation=projects/o/reservations/r/reservationBlocks/b",
            "reservation",
            {"project": "o", "name": "r", "block": "b"},
        ),
        ("--placement-type=COMPACT", "placement", {}),
        ("--placement-policy=near", "placement", {"policy": "near"}),
        ("--disk-type=pd-ssd --disk-size=1TB", "disk", {"type": "pd-ssd", "sizeGb": 1024}),
        ("--ephemeral-storage-local-ssd=count=16", "disk", {"localSsds": 16}),
        ("--node-labels=a=b", "labels", {"a": "b"}),
        ("--node-taints=a=b:NoExecute", "taints", [{"key": "a", "value": "b", "effect": "NoExecute"}]),
        ("--tags=a,b", "tags", ["a", "b"]),
        ("--scopes=cloud-platform", "scopes", ["cloud-platform"]),
        ("--scopes=gke-default", "scopes", None),
        ("--service-account=s@x", "serviceAccount", "s@x"),
        ("--max-pods-per-node=32", "maxPods", 32),
        ("--enable-autoscaling --min-nodes=0 --max-nodes=4", "autoscaling", {"min": 0, "max": 4}),
        ("--no-enable-autorepair", "autoRepair", False),
        ("--max-surge-upgrade=0 --max-unavailable-upgrade=2", "surge", {"maxSurge": 0, "maxUnavailable": 2}),
        ("--node-locations=us-central1-b", "zones", ["us-central1-b"]),
        ("--accelerator=type=nvidia-h100-mega-80gb,count=8,gpu-driver-version=default", "driver", "default"),
        ("--image-type=COS_CONTAINERD", "imageType", "COS_CONTAINERD"),
    ],
)
def test_an_option_of_a_pool_is_carried_over(flags: str, key: str, value: Any) -> None:
    (found,) = files(f"{CLUSTER}\n{POOL} {flags}")
    assert found["spec"]["pools"][0].get(key) == value


def test_the_maintenance_of_hosts_is_carried_over_from_the_beta_track() -> None:
    text = f"{CLUSTER}\n{POOL} --host-maintenance-interval=PERIODIC".replace(
        "gcloud container node", "gcloud beta container node"
    )
    assert files(text)[0]["spec"]["pools"][0]["hostMaintenance"] == "PERIODIC"


def test_what_a_cluster_file_has_no_key_for_is_named() -> None:
    cluster = f"{CLUSTER} --addons=GcsFuseCsiDriver --gateway-api=standard --no-enable-shielded-nodes --spot"
    _, _, err = verb(f"{cluster}\n{POOL} --enable-fast-socket --enable-private-nodes", "--project=my-project")
    for what in (
        "addonsConfig of the cluster",
        "networkConfig.gatewayApiConfig of the cluster",
        "nodePools.config.spot of the cluster",
        "shieldedNodes of the cluster",
        "config.fastSocket of the pool p",
        "networkConfig.enablePrivateNodes of the pool p",
    ):
        assert f"{what} is not in the cluster file" in err


def test_a_placement_policy_that_the_page_makes_is_made_again() -> None:
    policy = "gcloud beta compute resource-policies create group-placement near --region=us-central1"
    text = f"{policy} --collocation=collocated --max-distance=2\n{CLUSTER}\n{POOL} --placement-policy=near"
    assert files(text)[0]["spec"]["pools"][0]["placement"] == {"maxDistance": 2}


def test_the_findings_and_files_are_one_document_for_programs() -> None:
    code, out, err = verb(BROKEN, "--project=my-project", "--location=us-central1-a", "--json")
    document = json.loads(out)
    assert (code, err) == (1, "")
    assert [each["spec"]["family"] for each in document["clusters"]] == ["a3-mega", "a3-high"]
    assert {"rule", "severity", "pointer", "text", "remedy"} == document["findings"][0].keys()


def test_words_to_be_replaced_can_be_given() -> None:
    text = "gcloud compute networks create PREFIX-net-1 --subnet-mode=custom --project=$PROJECT"
    found, _ = requests(text, known={"PREFIX": "a", "PROJECT": "b-12345"})
    assert found[0].path == "/compute/v1/projects/b-12345/global/networks"
    assert found[0].body == {
        "name": "a-net-1",
        "autoCreateSubnetworks": False,
        "routingConfig": {"routingMode": "REGIONAL"},
    }


def test_choices_in_capitals_are_no_words_to_be_replaced() -> None:
    found = rules(
        "gcloud compute networks create n --network-firewall-policy-enforcement-order=BEFORE_CLASSIC_FIREWALL\n"
        "gcloud compute networks subnets create s --network=n --range=10.0.0.0/24 --stack-type=IPV4_ONLY\n"
        f"{POOL} --workload-metadata=GKE_METADATA --image-type COS_CONTAINERD --num-nodes=1"
    )
    assert "gcloud.placeholder" not in found
    assert "gcloud.not-taken" not in found


def test_a_broken_page_gives_no_requests_and_all_errors() -> None:
    code, out, err = verb(BROKEN, "--project=my-project", "--format=requests")
    assert (code, out) == (2, "")
    for word in ("PROJECT_ID", "--no-enable-autoupgrade", "[--placement-policy=POLICY_NAME", "the variable PROJECT"):
        assert word in err


@pytest.mark.parametrize(
    ("text", "options", "word"),
    [
        ("", ["--project=p"], "no cluster with GPUs"),
        (CLUSTER, ["--project=p"], "no cluster with GPUs"),
        (CLUSTER, [], "--project"),
        (CLUSTER, ["--format=requests"], "no project is known"),
        ("gcloud container clusters create c", ["--project=p", "--format=requests"], "no location is known"),
        (CLUSTER, ["--project=p", "--family=a3-huge"], "a3-huge"),
        (CLUSTER, ["--project=p", "--set", "A"], "NAME=VALUE"),
        ("gcloud services enable x", ["--project=p", "--format=requests"], "gcloud services enable"),
    ],
)
def test_bad_input_ends_with_one_sentence(text: str, options: list[str], word: str) -> None:
    code, out, err = verb(text, *options)
    assert (code, out) == (2, "")
    assert word in err


def test_a_file_that_is_no_text_or_not_there_is_refused(tmp_path: Path) -> None:
    binary = tmp_path / "page"
    binary.write_bytes(b"gcloud\n\xff")
    for path, word in ((binary, "line 2"), (tmp_path / "none", "cannot be read")):
        result = CliRunner().invoke(main, ["gke", "import", "-f", str(path), "--project=p"])
        assert result.exit_code == 2
        assert word in result.stderr


@pytest.mark.parametrize("family", ["a3-mega", "a3-high", "a3-ultra"])
def test_the_script_that_is_exported_can_be_imported(family: str, tmp_path: Path) -> None:
    text = (ROOT / "examples" / family / "cluster.yaml").read_text()
    spec = tmp_path / "cluster.yaml"
    spec.write_text(re.sub(r"    hold:\n(?:      .*\n)+", "", text))
    script, wanted = (
        CliRunner().invoke(main, ["gke", "export", "-f", str(spec), "--as", form]).stdout
        for form in ("gcloud", "requests")
    )
    code, out, _ = verb(script, "--format=requests")
    assert code == 0
    assert json.loads(out) == json.loads(wanted)


@pytest.mark.parametrize("family", ["a3-mega", "a3-high"])
def test_the_script_of_a_cluster_file_gives_the_cluster_back(family: str) -> None:
    source = ROOT / "examples" / family / "cluster.yaml"
    script = CliRunner().invoke(main, ["gke", "export", "-f", str(source), "--as", "gcloud"]).stdout
    code, out, _ = verb(script, "--project=example-project")
    assert code == 0
    wanted, found = (desired(parse(text).cluster) for text in (source.read_text(), out))
    assert {str(each.key): each.body for each in found} == {str(each.key): each.body for each in wanted}


def test_a_command_for_an_existing_cluster_says_that_the_cluster_is_not_made() -> None:
    page = reading(POOL, project="my-project")
    (found,) = described(page, project="my-project", today=TODAY)
    assert any("is not made in the page" in each.text for each in found.findings)


def test_requests_need_no_project_where_each_command_names_one() -> None:
    found, _ = requests("gcloud compute networks create n --project=a-12345")
    assert [msgspec.to_builtins(each)["path"] for each in found] == ["/compute/v1/projects/a-12345/global/networks"]
    with pytest.raises(Refused, match="no project is known"):
        requests("gcloud compute networks create n")
