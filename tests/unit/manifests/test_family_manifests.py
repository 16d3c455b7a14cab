"""What a cluster of a family needs: whole, of one tuple, and the same each time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from interlace.fabric.family import IDS, SoftwareTuple, find
from interlace.fabric.vpcs import VpcNames
from interlace.manifests.components import IMAGE, NAMESPACE, manifests
from interlace.manifests.family import PARTS, Part, Plan, family_manifests
from interlace.manifests.networks import networks
from interlace.manifests.workload import CHANNEL, NoTestError, TestPlan, script, workload

FULL_IMAGE = re.compile(r"[a-z0-9.-]+\.[a-z]+(/[a-z0-9._-]+)+:[\w.-]+\Z")
VPCS = VpcNames(prefix="acme")
MARK = {"test.interlace.dev/wired": "true"}


def wire(template: dict[str, Any]) -> dict[str, Any]:
    """Stands for what injection does to any Pod."""
    return {**template, "metadata": {**template["metadata"], "annotations": MARK}}


def rendered(
    id_: str, *parts: Part, software: SoftwareTuple | None = None, names: dict[str, str] | None = None
) -> list[dict[str, Any]]:
    family = find(id_)
    plan = Plan(parts=parts or PARTS, vpcs=VPCS, names=names or {}, test=TestPlan(nodes=3, namespace="team"))
    return family_manifests(family, software=software or family.software_for(None), plan=plan, wire=wire)


def of_kind(objects: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [each for each in objects if each["kind"] == kind]


def images(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("image"), str):
            yield value["image"]
        for each in value.values():
            yield from images(each)
    elif isinstance(value, list):
        for each in value:
            yield from images(each)


@pytest.mark.parametrize("id_", IDS)
def test_every_image_is_whole_and_of_the_tuple_or_ours(id_: str) -> None:
    family = find(id_)
    for software in family.tuples:
        found = set(images(rendered(id_, software=software)))
        assert all(FULL_IMAGE.match(image) for image in found)
        ours = {IMAGE, "docker.io/library/busybox:1.37.0"}
        assert found <= {software.plugin, software.test, software.daemon} | ours


@pytest.mark.parametrize("id_", IDS)
def test_names_are_unique_and_the_same_input_gives_the_same_objects(id_: str) -> None:
    objects = rendered(id_)
    keys = [(each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]) for each in objects]
    assert len(keys) == len(set(keys))
    assert objects == rendered(id_)


@pytest.mark.parametrize("id_", IDS)
def test_the_parts_together_are_the_whole(id_: str) -> None:
    assert [each for part in PARTS for each in rendered(id_, part)] == rendered(id_)


@pytest.mark.parametrize(
    ("id_", "vpc", "subnet", "mode"),
    [
        ("a3-high", [f"acme-net-{i}" for i in range(1, 5)], [f"acme-sub-{i}" for i in range(1, 5)], "NetDevice"),
        ("a3-mega", [f"acme-net-{i}" for i in range(1, 9)], [f"acme-sub-{i}" for i in range(1, 9)], "NetDevice"),
        ("a4", ["acme-rdma-net"] * 8, [f"acme-rdma-sub-{i}" for i in range(8)], "RDMA"),
        ("a4x", ["acme-rdma-net"] * 4, [f"acme-rdma-sub-{i}" for i in range(4)], "RDMA"),
    ],
)
def test_networks_and_parameter_sets_are_pairs(id_: str, vpc: list[str], subnet: list[str], mode: str) -> None:
    family = find(id_)
    objects = rendered(id_, "networks")
    first, sets = of_kind(objects, "Network"), of_kind(objects, "GKENetworkParamSet")
    assert objects == [*first, *sets]
    assert [each["metadata"]["name"] for each in first] == [network.name for network in family.networks]
    for network, parameters in zip(first, sets, strict=True):
        assert network["spec"]["type"] == "Device"
        assert network["spec"]["parametersRef"] == {
            "group": "networking.gke.io",
            "kind": "GKENetworkParamSet",
            "name": parameters["metadata"]["name"],
        }
    gpu = sets[-len(vpc) :]
    assert [each["spec"]["vpc"] for each in gpu] == vpc
    assert [each["spec"]["vpcSubnet"] for each in gpu] == subnet
    assert {each["spec"]["deviceMode"] for each in gpu} == {mode}
    if mode == "RDMA":
        assert sets[0]["spec"] == {
            "vpc": "acme-gvnic-net-0",
            "vpcSubnet": "acme-gvnic-sub-0",
            "deviceMode": "NetDevice",
        }


def test_networks_carry_the_names_of_the_cluster_everywhere() -> None:
    objects = rendered("a3-high", "networks", "canary", names={"vpc2": "rail-b"})
    assert [each["metadata"]["name"] for each in of_kind(objects, "Network")] == ["vpc1", "rail-b", "vpc3", "vpc4"]
    (pod,) = of_kind(objects, "Pod")
    interfaces = pod["metadata"]["annotations"]["networking.gke.io/interfaces"]
    assert '{"interfaceName": "eth2", "network": "rail-b"}' in interfaces
    assert networks(find("gb200-nvl72"), vpcs=VPCS) == []


@pytest.mark.parametrize("id_", IDS)
def test_our_components_run_on_the_nodes_of_the_family(id_: str) -> None:
    family = find(id_)
    objects = rendered(id_, "components")
    for daemon_set in of_kind(objects, "DaemonSet"):
        spec = daemon_set["spec"]["template"]["spec"]
        label = "cloud.google.com/gke-gpu" if family.node.gke else "nvidia.com/gpu.present"
        assert spec["nodeSelector"] == {label: "true"}
        roots = {v["name"]: v["hostPath"]["path"] for v in spec["volumes"]}
        assert roots["driver-root"] == family.node.driver_root


def test_gke_admits_our_critical_pods() -> None:
    (quota,) = of_kind(rendered("a3-mega", "components"), "ResourceQuota")
    assert quota["metadata"]["namespace"] == NAMESPACE
    (scope,) = quota["spec"]["scopeSelector"]["matchExpressions"]
    assert scope["values"] == ["system-node-critical", "system-cluster-critical"]
    assert of_kind(rendered("gb200-nvl72", "components"), "ResourceQuota") == []


def test_without_a_family_nothing_changes() -> None:
    plain = manifests()
    assert rendered("gb200-nvl72", "components") == plain


def test_the_test_is_a_suspended_job_that_any_user_could_have_written() -> None:
    (job,) = of_kind(rendered("a3-mega", "test"), "Job")
    assert job["metadata"]["namespace"] == "team"
    spec = job["spec"]
    assert spec["suspend"] is True
    assert (spec["completions"], spec["parallelism"], spec["completionMode"]) == (3, 3, "Indexed")
    assert spec["template"]["metadata"]["annotations"] == MARK
    (container,) = spec["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 8}
    env = {each["name"]: each["value"] for each in container["env"]}
    assert env["NODES"] == "3"
    assert not [name for name in env if name.startswith("NCCL_")]


def test_the_pods_of_the_test_find_each_other_by_name() -> None:
    objects = rendered("a3-mega", "test")
    (service,), (job,) = of_kind(objects, "Service"), of_kind(objects, "Job")
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == {"batch.kubernetes.io/job-name": job["metadata"]["name"]}
    assert job["spec"]["template"]["spec"]["subdomain"] == service["metadata"]["name"]


@pytest.mark.parametrize("id_", ["a4x", "gb200-nvl72"])
def test_a_canary_with_nvlink_asks_for_a_channel_of_its_own_domain(id_: str) -> None:
    objects = rendered(id_, "canary")
    (domain,), (pod,) = of_kind(objects, "ComputeDomain"), of_kind(objects, "Pod")
    template = domain["spec"]["channel"]["resourceClaimTemplate"]["name"]
    assert pod["spec"]["resourceClaims"] == [{"name": "channel", "resourceClaimTemplateName": template}]
    assert pod["spec"]["containers"][0]["resources"]["claims"] == [{"name": "channel"}]
    assert template != CHANNEL


def test_a_test_over_nvlink_brings_its_domain() -> None:
    (domain,) = of_kind(rendered("a4x", "test"), "ComputeDomain")
    assert domain["spec"] == {"numNodes": 3, "channel": {"resourceClaimTemplate": {"name": CHANNEL}}}
    assert of_kind(rendered("a3-mega", "test"), "ComputeDomain") == []


def test_hardware_without_a_public_image_of_tests_has_no_test() -> None:
    assert rendered("gb200-nvl72", "test") == []
    family = find("gb200-nvl72")
    with pytest.raises(NoTestError, match="no public image with nccl-tests is known for gb200-nvl72"):
        workload(family, software=family.software_for(None), plan=TestPlan(), wire=wire)
    with pytest.raises(NoTestError):
        script(family)
