"""``interlace manifests`` prints what kubectl can apply, and refuses what it cannot mean."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from interlace.cli.main import main
from interlace.cli.manifests import _PARTS
from interlace.fabric.family import IDS, find
from interlace.manifests import manifests, render
from interlace.manifests.family import PARTS
from interlace.manifests.webhook import webhook_manifests


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["manifests", *arguments])


def documents(*arguments: str) -> list[dict[str, Any]]:
    told = run(*arguments, "--json")
    assert told.exit_code == 0, told.output
    found: list[dict[str, Any]] = json.loads(told.stdout)["items"]
    return found


def test_without_options_it_is_what_the_committed_file_is_made_of() -> None:
    assert run().stdout == render(manifests())


def test_the_parts_are_those_that_can_be_rendered() -> None:
    assert _PARTS == PARTS


@pytest.mark.parametrize("family", IDS)
def test_yaml_and_json_of_a_family_hold_the_same_objects_each_time(family: str) -> None:
    # The components are the same for all families.
    parts = [word for part in PARTS[1:] for word in ("--part", part)]
    listed = json.loads(run("--family", family, *parts, "--json").stdout)
    assert (listed["apiVersion"], listed["kind"]) == ("v1", "List")
    printed = run("--family", family, *parts).stdout
    assert [each for each in yaml.safe_load_all(printed) if each] == listed["items"]
    assert run("--family", family, *parts).stdout == printed


def test_all_parts_are_printed_unless_some_are_named() -> None:
    whole = json.loads(run("--family", "a4x", "--json").stdout)["items"]
    one_by_one = [json.loads(run("--family", "a4x", "--part", part, "--json").stdout)["items"] for part in PARTS]
    assert whole == [each for items in one_by_one for each in items]


def test_the_head_names_the_tuple_and_scripts_stay_readable() -> None:
    out = run("--family", "a3-mega", "--part", "installer").stdout
    assert out.startswith("# Rendered by `interlace manifests --family a3-mega --tuple tcpxo-1.0.15`")
    assert "\n          modprobe import-helper\n" in out


def test_the_test_pods_are_wired_as_those_of_users() -> None:
    (job,) = [each for each in documents("--family", "a3-mega", "--part", "test") if each["kind"] == "Job"]
    template = job["spec"]["template"]
    sidecar = find("a3-mega").pod.sidecar
    assert sidecar is not None
    assert f"devices.gke.io/container.{sidecar.name}" in template["metadata"]["annotations"]
    assert [each["name"] for each in template["spec"]["initContainers"]] == [sidecar.name]
    env = {each["name"]: each["value"] for each in template["spec"]["containers"][0]["env"]}
    assert env["NCCL_FASTRAK_IFNAME"] == "eth1,eth2,eth3,eth4,eth5,eth6,eth7,eth8"


def test_options_reach_the_objects() -> None:
    found = documents(
        *("--family", "a3-high", "--network-prefix", "acme", "--network-map", "vpc1=rail-a"),
        *("--test-nodes", "5", "--test-namespace", "team", "--namespace", "sys", "--image", "reg.example/i:1"),
        *("--tuple", "tcpx-3.1.9", "--driver-root", "/opt/driver", "--replicas", "3"),
    )
    by = {(each["kind"], each["metadata"]["name"]): each for each in found}
    assert by["GKENetworkParamSet", "rail-a"]["spec"]["vpc"] == "acme-net-1"
    assert by["Job", "nccl-test"]["spec"]["completions"] == 5
    assert by["Pod", "interlace-canary"]["metadata"]["namespace"] == "team"
    controller = by["Deployment", "interlace-controller"]
    assert (controller["metadata"]["namespace"], controller["spec"]["replicas"]) == ("sys", 3)
    assert controller["spec"]["template"]["spec"]["containers"][0]["image"] == "reg.example/i:1"
    step = by["DaemonSet", "nccl-tcpx-installer"]["spec"]["template"]["spec"]["initContainers"][0]
    assert step["image"].endswith("/nccl-plugin-gpudirecttcpx-dev:v3.1.9")
    volumes = by["DaemonSet", "interlace-agent"]["spec"]["template"]["spec"]["volumes"]
    assert {"path": "/opt/driver", "type": "DirectoryOrCreate"} in [volume["hostPath"] for volume in volumes]


def test_the_version_of_the_cluster_picks_the_tuple() -> None:
    old = run("--family", "a3-high", "--cluster-version", "1.33.1-gke.1", "--part", "installer").stdout
    assert "--tuple tcpx-3.1.9" in old


@pytest.mark.parametrize(("version", "where"), [("1.28", "containers"), ("1.29", "initContainers")])
def test_the_test_workload_is_one_that_the_version_of_the_cluster_runs(version: str, where: str) -> None:
    found = documents("--family", "a3-mega", "--cluster-version", version, "--part", "test")
    (job,) = (each for each in found if each["kind"] == "Job")
    spec = job["spec"]["template"]["spec"]
    assert spec[where][0]["name"] == "tcpxo-daemon"
    assert len(spec["containers"]) == 1 + (where == "containers")


def test_the_webhook_is_printed_alone_with_its_own_values() -> None:
    found = documents(
        *("--webhook", "--device-guard", "warn", "--allow-device", "/dev/fuse", "--guard-exempt", "team"),
        *("--network-map", "vpc1=rail1", "--namespace", "sys", "--replicas", "3"),
    )
    wanted = webhook_manifests(
        namespace="sys",
        replicas=3,
        guard="warn",
        arguments=["--allow-device=/dev/fuse", "--network-map=vpc1=rail1"],
        exempt=("team",),
    )
    assert found == wanted
    assert documents("--webhook") == webhook_manifests()


def test_what_a_family_lacks_is_said_beside_the_answer() -> None:
    told = run("--family", "gb200-nvl72", "--json")
    assert told.exit_code == 0
    assert "there is no test workload: no public image with nccl-tests is known for gb200-nvl72" in told.stderr
    assert "networks" not in told.stderr
    assert "--network-prefix names others" in run("--family", "a4", "--json").stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--family", "a5"], "unknown hardware family 'a5'"),
        (["--family", "a4", "--tuple", "x"], "has no software tuple 'x'"),
        (["--family", "a3-high", "--cluster-version", "1.34.1-gke.1"], "needs 1.34.5-gke.1153000 or newer"),
        (["--family", "gb200-nvl72", "--cluster-version", "1.34.9-gke.1"], "not offered on GKE"),
        (["--family", "gb200-nvl72", "--part", "installer"], "nothing of installer is needed for gb200-nvl72"),
        (["--family", "a4", "--network-map", "vpc1=x"], "a4 has no network 'vpc1'"),
        (["--family", "a4", "--network-prefix", "Bad_"], "'Bad_' is not a prefix of VPC names"),
        (["--family", "a4", "--test-nodes", "1"], "1 is not in the range"),
        (["--family", "a4", "--part", "all"], "'all' is not one of"),
        (["--tuple", "x"], "--tuple goes with --family"),
        (["--part", "test"], "--part goes with --family"),
        (["--cluster-version", "1.34.5-gke.1"], "--cluster-version goes with --family"),
        (["--network-map", "vpc1=a"], "--network-map goes with --family"),
        (["--webhook", "--family", "a4"], "--webhook prints the webhook alone"),
        (["--webhook", "--part", "test"], "--part goes with --family"),
        (["--webhook", "--device-guard", "maybe"], "'maybe' is not one of"),
        (["--namespace", "A"], "'A' is not the name of a namespace"),
        (["--driver-root", "x"], "'x' is not an absolute path"),
        (["status", "--network-map", "vpc1=a"], "--network-map goes with --family"),
        (["status", "--family", "a5"], "unknown hardware family 'a5'"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(arguments: list[str], says: str) -> None:
    told = run(*arguments)
    assert told.exit_code == 2
    assert told.stdout == ""
    assert says in told.stderr


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_older_clusters_get_the_version_of_resource_k8s_io_that_they_serve(version: str) -> None:
    printed, newest = documents("--resource-version", version), documents()
    old, new = (
        [found for found in objects if found["apiVersion"].startswith("resource.k8s.io/")]
        for objects in (printed, newest)
    )
    assert {found["apiVersion"] for found in old} == {f"resource.k8s.io/{version}"}
    assert [found["spec"] for found in old] == [found["spec"] for found in new]  # of classes, all versions are alike
    assert len(printed) == len(newest)
    refused = run("--resource-version", "v1alpha3")
    assert refused.exit_code == 2
