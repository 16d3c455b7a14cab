"""Pods that cannot get the fabric as they are written: each refusal says where, what, why and what to write."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from interlace.fabric.family import find
from interlace.pods.draft import Draft
from interlace.pods.errors import InjectError
from interlace.pods.inject import inject
from interlace.pods.recognition import recognise
from tests.unit.pods.pods import MACHINE, Json, container, pod

MEGA, HIGH, ULTRA, GB200 = (find(each) for each in ("a3-mega", "a3-high", "a3-ultra", "gb200-nvl72"))
DAEMON = "us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpxo/tcpgpudmarxd-dev:v1.0.21"
INTERFACES = "networking.gke.io/interfaces"


def volume(name: str, path: str) -> Json:
    return {"name": name, "hostPath": {"path": path}}


def mounted(name: str, path: str) -> Json:
    return container(volumeMounts=[{"name": name, "mountPath": path}])


def daemon(**fields: Any) -> Json:
    return container("tcpxo-daemon", gpus=0, image=DAEMON, **fields)


def limits(**amounts: Any) -> Json:
    return container(
        resources={"limits": {key.replace("__", "/").replace("_", "-"): each for key, each in amounts.items()}}
    )


@pytest.mark.parametrize(
    ("before", "path", "said"),
    [
        pytest.param(
            pod(container(gpus=4)), "spec.containers[0].resources", r"4 \(main\).*all 8 GPUs.*add up to 8", id="half"
        ),
        pytest.param(
            pod(container(gpus=4), container("b", gpus=2)),
            "spec.containers",
            r"6 \(main, b\)",
            id="two that do not add up",
        ),
        pytest.param(pod(container(gpus=16)), "spec.containers[0].resources", "has 8 GPUs", id="more than a node"),
        pytest.param(
            pod(limits(nvidia_com__gpu=8), container("m", resources={"limits": {"nvidia.com/mig-1g.10gb": 1}})),
            "spec.containers[1].resources.limits[nvidia.com/mig-1g.10gb]",
            "MIG",
            id="MIG",
        ),
        pytest.param(
            pod(container(resources={"limits": {"nvidia.com/gpu.shared": 8}})),
            "spec.containers[0].resources.limits[nvidia.com/gpu.shared]",
            "shared",
            id="shared resource",
        ),
        pytest.param(
            pod(container(resources={"limits": {"nvidia.com/gpu": "8.5"}})),
            "spec.containers[0].resources.limits[nvidia.com/gpu]",
            "whole number",
            id="no number",
        ),
        pytest.param(
            pod(container(resources={"requests": {"nvidia.com/gpu": 8}})),
            "spec.containers[0].resources.limits[nvidia.com/gpu]",
            "nothing: the container requests 8.*under limits alone",
            id="no limit",
        ),
        pytest.param(
            pod(container(resources={"requests": {"nvidia.com/gpu": 4}, "limits": {"nvidia.com/gpu": "8"}})),
            "spec.containers[0].resources.limits[nvidia.com/gpu]",
            "8: the container requests 4",
            id="another limit",
        ),
        pytest.param(
            pod(nodeSelector={"cloud.google.com/gke-gpu-partition-size": "1g.10gb"}),
            "spec.nodeSelector[cloud.google.com/gke-gpu-partition-size]",
            "MIG",
            id="MIG nodes",
        ),
        pytest.param(
            pod(nodeSelector={"cloud.google.com/gke-gpu-sharing-strategy": "time-sharing"}),
            "spec.nodeSelector[cloud.google.com/gke-gpu-sharing-strategy]",
            "time-sharing",
            id="time-sharing",
        ),
        pytest.param(
            pod(nodeSelector={"cloud.google.com/gke-gpu-sharing-strategy": "mps"}),
            "spec.nodeSelector[cloud.google.com/gke-gpu-sharing-strategy]",
            "mps.*MPS",
            id="MPS",
        ),
        pytest.param(
            pod(nodeSelector={"cloud.google.com/gke-nccl-fastsocket": "true"}),
            "spec.nodeSelector[cloud.google.com/gke-nccl-fastsocket]",
            "Fast Socket",
            id="Fast Socket nodes",
        ),
        pytest.param(
            pod(container(env=[{"name": "NCCL_NET_PLUGIN", "value": "fastsocket"}])),
            "spec.containers[0].env[NCCL_NET_PLUGIN]",
            "Fast Socket",
            id="Fast Socket",
        ),
        pytest.param(
            pod(container(env=[{"name": "NCCL_NET", "value": "Socket"}])),
            "spec.containers[0].env[NCCL_NET]",
            "runs on FasTrak",
            id="another network",
        ),
        pytest.param(
            pod(container(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}])),
            "spec.containers[0].env[1]",
            "twice",
            id="a variable twice",
        ),
        pytest.param(
            pod(container(env=[{"name": "A", "value": 1}])),
            "spec.containers[0].env[0].value",
            "must be a string",
            id="a number as value",
        ),
        pytest.param(pod(hostNetwork=True), "spec.hostNetwork", "remove hostNetwork", id="hostNetwork"),
        pytest.param(
            pod(volumes=[volume("libraries", "/srv")]),
            "spec.volumes[0]",
            "hostPath /srv.*hostPath /home/kubernetes/bin/nvidia.*another name",
            id="a volume's name taken",
        ),
        pytest.param(
            pod(mounted("x", "/usr/local/nvidia"), volumes=[volume("x", "/srv")]),
            "spec.containers[0].volumeMounts[0]",
            "hostPath /srv",
            id="a mount taken",
        ),
        pytest.param(
            pod(mounted("x", "/usr/local/nvidia"), volumes=[volume("x", "/home/kubernetes/bin/nvidia/lib64")]),
            "spec.containers[0].volumeMounts[0]",
            "the files would not be under",
            id="a suffix on one side",
        ),
        pytest.param(
            pod(annotations={INTERFACES: '[{"interfaceName":"eth0","network":"default"},]'}),
            f"metadata.annotations[{INTERFACES}]",
            "no comma before a closing bracket",
            id="a trailing comma",
        ),
        pytest.param(
            pod(annotations={INTERFACES: "{}"}), f"metadata.annotations[{INTERFACES}]", "no list", id="no list"
        ),
        pytest.param(
            pod(annotations={INTERFACES: "["}), f"metadata.annotations[{INTERFACES}]", "no JSON", id="no JSON"
        ),
        pytest.param(
            pod(annotations={INTERFACES: json.dumps([{"interfaceName": "eth1", "network": "other"}])}),
            f"metadata.annotations[{INTERFACES}]",
            "joins other.*--network-map",
            id="a foreign network",
        ),
        pytest.param(
            pod(annotations={INTERFACES: json.dumps(2 * [{"interfaceName": "a", "network": "b"}])}),
            f"metadata.annotations[{INTERFACES}][1]",
            "two interfaces",
            id="an interface twice",
        ),
        pytest.param(
            pod(annotations={"networking.gke.io/default-interface": "eth1"}),
            "metadata.annotations[networking.gke.io/default-interface]",
            "write eth0",
            id="a rail as default",
        ),
        pytest.param(
            pod(container(), container("tcpxo-daemon", gpus=0)),
            "spec.containers[1].name",
            "runs something else",
            id="the daemon's name taken",
        ),
        pytest.param(
            pod(container(), daemon(), container("x", gpus=0, image=DAEMON)),
            "spec.containers[2]",
            "one daemon serves all",
            id="two daemons",
        ),
        pytest.param(
            pod(container(), daemon(resources={"limits": {"nvidia.com/gpu": 8}})),
            "spec.containers[1].resources.limits[nvidia.com/gpu]",
            "lost to the work",
            id="a daemon with GPUs",
        ),
        pytest.param(
            pod(container(), container("d", gpus=0, image="a/tcpgpudmarxd-dev:latest")),
            "spec.containers[1].image",
            "without a release",
            id="latest",
        ),
        pytest.param(
            pod(container(), container("d", gpus=0, image="a/tcpgpudmarxd-dev:v2.0.12")),
            "spec.containers[1].image",
            "of family a3-high, not of a3-mega",
            id="the daemon of another family",
        ),
        pytest.param(
            pod(container(), daemon(), annotations={"interlace.dev/tuple": "tcpxo-1.0.14"}),
            "metadata.annotations[interlace.dev/tuple]",
            "two releases",
            id="two tuples",
        ),
        pytest.param(
            pod(annotations={"interlace.dev/tuple": "tcpxo-9"}),
            "metadata.annotations[interlace.dev/tuple]",
            "tcpxo-1.0.15",
            id="an unknown tuple",
        ),
        pytest.param(
            pod(annotations={"devices.gke.io/container.other": "- path: /dev/nvidia0"}),
            "metadata.annotations[devices.gke.io/container.other]",
            "no container has this name",
            id="devices for nobody",
        ),
        pytest.param(
            pod(container(), daemon(), annotations={"devices.gke.io/container.tcpxo-daemon": "path: x"}),
            "metadata.annotations[devices.gke.io/container.tcpxo-daemon]",
            "no list",
            id="devices that are no list",
        ),
        pytest.param(
            pod(nodeSelector={MACHINE: "a3-highgpu-8g"}),
            f"spec.nodeSelector[{MACHINE}]",
            "of a3-high, and --family says a3-mega",
            id="another machine",
        ),
        pytest.param(pod(initContainers={"a": 1}), "spec.initContainers", "must be a list", id="no list of containers"),
        pytest.param(
            pod(container(securityContext={"capabilities": {"add": [1]}}), container("d", gpus=0)), "", "", id="fine"
        ),
        pytest.param(
            pod(container(volumeMounts=["x"])),
            "spec.containers[0].volumeMounts[0]",
            "must be a mapping",
            id="no mapping",
        ),
        pytest.param(
            {"metadata": {"annotations": {"a": 1}}, "spec": pod()["spec"]},
            "metadata.annotations[a]",
            "must be a string",
            id="an annotation that is no string",
        ),
        pytest.param({"spec": {"containers": [{"image": "x"}]}}, "spec.containers[0]", "with a name", id="no name"),
        pytest.param({}, "spec", "has a spec", id="no spec"),
    ],
)
def test_what_cannot_be_is_refused(before: Json, path: str, said: str) -> None:
    if not path:
        assert inject(before, family=MEGA).changes
        return
    with pytest.raises(InjectError) as refused:
        inject(before, family=MEGA)
    assert refused.value.path == path
    assert re.search(said, str(refused.value))
    assert refused.value.cause
    assert refused.value.remedy


def test_half_the_gpus_of_an_rdma_node_are_refused_unless_their_nics_come_by_a_claim() -> None:
    with pytest.raises(InjectError, match="by claims"):
        inject(pod(container(gpus=4)), family=ULTRA)


def test_a_pod_that_needs_a_part_of_a_node_and_no_fabric_says_so_by_its_label() -> None:
    with pytest.raises(InjectError, match=r"or the label interlace\.dev/fabric: off where it needs none of this"):
        inject(pod(container(gpus=1)), family=MEGA)
    before = pod(container(gpus=1), labels={"interlace.dev/fabric": "off"}, nodeSelector={MACHINE: "a3-megagpu-8g"})
    assert recognise(Draft(before)).family is None


def test_parts_of_gpus_by_a_claim_are_refused() -> None:
    main = container(gpus=0, resources={"claims": [{"name": "g"}]})
    before = pod(main, resourceClaims=[{"name": "g", "resourceClaimTemplateName": "t"}])
    with pytest.raises(InjectError, match="MIG"):
        inject(before, family=ULTRA, claims={"t": ("mig.nvidia.com",)})


def test_two_names_for_the_channel_are_refused() -> None:
    before = pod(container(gpus=4), labels={"interlace.dev/channel": "one"})
    with pytest.raises(InjectError, match="change one of the two"):
        inject(before, family=GB200, channel="two")
    with pytest.raises(InjectError, match="shorter name"):
        inject(pod(container(gpus=4)), family=GB200, channel="x" * 64)
    taken = pod(container(gpus=4), resourceClaims=[{"name": "imex-channel", "resourceClaimName": "x"}])
    with pytest.raises(InjectError, match="taken by another claim"):
        inject(taken, family=GB200, channel="one")


@pytest.mark.parametrize(
    ("before", "family", "why"),
    [
        (pod(nodeSelector={MACHINE: "a3-megagpu-8g"}), "a3-mega", "a3-megagpu-8g"),
        (pod(nodeSelector={"cloud.google.com/gce-machine-type": "a4x-highgpu-4g"}), "a4x", "gce-machine-type"),
        (pod(nodeSelector={"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}), "a3-high", "h100"),
        (pod(nodeSelector={"cloud.google.com/gke-accelerator": "nvidia-l4"}), None, "no machine of a known family"),
        (pod(container(gpus=0)), None, "no container asks"),
        (pod(labels={"interlace.dev/fabric": "off"}, nodeSelector={MACHINE: "a3-megagpu-8g"}), None, "says off"),
        (pod(labels={"interlace.dev/fabric": "a3-ultra"}), "a3-ultra", "label"),
        (pod(labels={"interlace.dev/fabric": "auto"}, nodeSelector={MACHINE: "a4-highgpu-8g"}), "a4", "a4-highgpu-8g"),
    ],
)
def test_the_family_is_what_the_pod_says(before: Json, family: str | None, why: str) -> None:
    found = recognise(Draft(before))
    assert (found.family.id if found.family else None) == family
    assert why in found.why


def affinity(*values: str, key: str = MACHINE) -> Json:
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


def test_the_family_is_read_from_a_required_affinity() -> None:
    found = recognise(Draft(pod(**affinity("a3-megagpu-8g"))))
    assert found.family is not None
    assert found.family.id == "a3-mega"


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (pod(), "a3-high, a3-mega, a3-ultra, a4; give --family"),
        (pod(**affinity("a3-megagpu-8g", "a3-highgpu-8g")), "several families: a3-high, a3-mega"),
        (pod(nodeSelector={MACHINE: "a3-highgpu-4g"}), "another machine type"),
        (pod(nodeSelector={MACHINE: "a3-edgegpu-8g"}), "no GPUDirect"),
        (pod(container(gpus=3)), "cannot be told: the Pod asks for 3 GPUs and selects no machine type; give"),
        (pod(labels={"interlace.dev/fabric": "a5"}), "unknown hardware family"),
    ],
)
def test_a_family_that_cannot_be_told_is_not_guessed(before: Json, said: str) -> None:
    with pytest.raises(InjectError, match=said):
        recognise(Draft(before))


def test_a_pod_whose_claims_are_not_known_is_refused_only_where_it_is_to_get_a_fabric() -> None:
    main = container(gpus=0, resources={"claims": [{"name": "g"}]})
    before = pod(main, resourceClaims=[{"name": "g", "resourceClaimTemplateName": "t"}])
    assert recognise(Draft(before)).family is None
    with pytest.raises(InjectError, match="put their ResourceClaimTemplates into the same file"):
        recognise(Draft(before), named="a3-ultra")
    found = recognise(Draft(before), named="a3-ultra", claims={"t": ("gpu.nvidia.com",)})
    assert found.family is ULTRA
