"""Bundles of observed state for tests: a healthy one, and what is made of it by changing a few places."""

from __future__ import annotations

import json
from copy import deepcopy
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

from interlace.gke.observed.bundle import read
from interlace.gke.rules.checking import check_observed
from interlace.rules.finding import Finding

Bundle = dict[str, Any]

DATA: Final = Path(__file__).parents[3] / "data" / "gke"
NOW: Final = datetime(2026, 11, 30, tzinfo=UTC)
GONE: Final = object()
"""As a value of a change: take the member away."""

_ULTRA_VERSION: Final = "1.35.1-gke.1000000"
PRIMARY: Final = 0
POOL: Final = "/cluster/nodePools/1"
CONFIG: Final = f"{POOL}/config"
NICS: Final = f"{POOL}/networkConfig/additionalNodeNetworkConfigs"


@cache
def _example() -> str:
    return (DATA / "server" / "observed-state-example.json").read_text()


def healthy() -> Bundle:
    """The recorded example: two nodes of a3-high, nothing wrong with them."""
    body: Bundle = json.loads(_example())["body"]
    return body


def mega() -> Bundle:
    """The same with a3-mega."""
    bundle = healthy()
    bundle["want"]["flavour"] = "tcpxo"
    pool = bundle["cluster"]["nodePools"][1]
    pool["config"] |= {"machineType": "a3-megagpu-8g"}
    pool["config"]["accelerators"][0]["acceleratorType"] = "nvidia-h100-mega-80gb"
    for number in range(5, 9):
        for section in ("networks", "subnetworks"):
            bundle[section].append(_renumbered(bundle[section][4], number))
        bundle["firewalls"].append(_renumbered(bundle["firewalls"][3], number))
        pool["networkConfig"]["additionalNodeNetworkConfigs"].append(
            {"network": f"example-net-{number}", "subnetwork": f"example-sub-{number}"}
        )
        for kind in ("networks", "gkeNetworkParamSets"):
            bundle["kubernetes"][kind].append(_renumbered(bundle["kubernetes"][kind][3], number))
    for node in bundle["kubernetes"]["nodes"]:
        node["metadata"]["labels"]["node.kubernetes.io/instance-type"] = "a3-megagpu-8g"
    return bundle


def ultra() -> Bundle:
    """The same with a3-ultra: a gVNIC network, and an RDMA network with eight subnets."""
    bundle = healthy()
    bundle["want"]["flavour"] = "a3-ultra"
    primary, gvnic = bundle["networks"][0], _called(bundle["networks"][1], "gvnic", "gvnic-sub", "gvnic-1")
    rdma = _called(bundle["networks"][1], "rdma", "rdma-sub-0", "rdma-0")
    rdma["networkProfile"] = "projects/example-project/global/networkProfiles/us-central1-a-vpc-roce"
    bundle["networks"] = [{**each, "mtu": 8896} for each in (primary, gvnic, rdma)]
    subnet, firewall, kubernetes = bundle["subnetworks"][1], bundle["firewalls"][0], bundle["kubernetes"]
    names = [("gvnic", "gvnic-sub", "gvnic-1"), *(("rdma", f"rdma-sub-{index}", f"rdma-{index}") for index in range(8))]
    bundle["subnetworks"] = [
        bundle["subnetworks"][0],
        *({**_called(subnet, *each), "ipCidrRange": f"192.168.{index}.0/24"} for index, each in enumerate(names)),
    ]
    bundle["firewalls"] = [_called(firewall, *names[0])]
    for kind in ("networks", "gkeNetworkParamSets"):
        kubernetes[kind] = [_called(kubernetes[kind][0], *each) for each in names]
    for each in kubernetes["gkeNetworkParamSets"][1:]:
        each["spec"]["deviceMode"] = "RDMA"
    cluster = bundle["cluster"]
    cluster |= {"currentMasterVersion": _ULTRA_VERSION}
    pool = cluster["nodePools"][1]
    pool["version"] = _ULTRA_VERSION
    pool["config"] |= {"machineType": "a3-ultragpu-8g"}
    pool["config"]["accelerators"][0]["acceleratorType"] = "nvidia-h200-141gb"
    pool["networkConfig"]["additionalNodeNetworkConfigs"] = [
        {"network": f"example-{network}", "subnetwork": f"example-{subnet}"} for network, subnet, _ in names
    ]
    for node in kubernetes["nodes"]:
        node["metadata"]["labels"]["node.kubernetes.io/instance-type"] = "a3-ultragpu-8g"
        node["status"]["nodeInfo"]["kubeletVersion"] = f"v{_ULTRA_VERSION}"
    rows = bundle["quotaInfos"][0]["dimensionsInfos"]
    rows[0]["dimensions"]["gpu_family"] = "NVIDIA_H200"
    return bundle


def rdma_nic(index: int) -> dict[str, str]:
    """An additional NIC of ``ultra``."""
    return {"network": "example-rdma", "subnetwork": f"example-rdma-sub-{index}"}


def reserved() -> Bundle:
    """The healthy one with its nodes from a reservation that has room for an upgrade."""
    bundle = healthy()
    reservation = json.loads((DATA / "server" / "compute-reservation.json").read_text())["body"]
    specific = reservation["specificReservation"]
    specific |= {"count": "3", "assuredCount": "3", "inUseCount": "2"}
    specific["instanceProperties"] |= {"machineType": "a3-highgpu-8g"}
    bundle["reservations"] = [reservation]
    bundle["cluster"]["nodePools"][1]["config"]["reservationAffinity"] = {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": ["example-reservation"],
    }
    return bundle


def placed() -> Bundle:
    """The healthy one with a placement policy."""
    bundle = healthy()
    bundle["resourcePolicies"] = [json.loads((DATA / "server" / "compute-resource-policy.json").read_text())["body"]]
    bundle["cluster"]["nodePools"][1]["placementPolicy"] = {"policyName": "example-policy"}
    return bundle


def before() -> Bundle:
    """A project before the cluster: the network ``default``, and quotas that are large enough."""
    bundle = healthy()
    network = bundle["networks"][PRIMARY] | {"name": "default", "autoCreateSubnetworks": True, "mtu": 1460}
    network["selfLink"] = network["selfLink"].replace("example-primary", "default")
    bundle |= {"cluster": None, "kubernetes": None, "networks": [network], "subnetworks": [], "firewalls": []}
    bundle["projectInfo"]["quotas"] = [
        {"metric": "NETWORKS", "limit": 15.0, "usage": 1.0},
        {"metric": "SUBNETWORKS", "limit": 175.0, "usage": 42.0},
        {"metric": "FIREWALLS", "limit": 100.0, "usage": 4.0},
        {"metric": "CPUS_ALL_REGIONS", "limit": 1024.0, "usage": 0.0},
        {"metric": "GPUS_ALL_REGIONS", "limit": 32.0, "usage": 0.0},
    ]
    bundle["regionInfo"]["quotas"] = [
        {"metric": "CPUS", "limit": 500.0, "usage": 0.0},
        {"metric": "INSTANCES", "limit": 1000.0, "usage": 3.0},
        {"metric": "SSD_TOTAL_GB", "limit": 20480.0, "usage": 300.0},
        {"metric": "LOCAL_SSD_TOTAL_GB", "limit": 20480.0, "usage": 0.0},
        {"metric": "IN_USE_ADDRESSES", "limit": 16.0, "usage": 3.0},
        {"metric": "RESOURCE_POLICIES", "limit": 100.0, "usage": 0.0},
        {"metric": "PREEMPTIBLE_NVIDIA_H100_GPUS", "limit": 32.0, "usage": 0.0},
    ]
    return bundle


def asked() -> Bundle:
    """The healthy one with what is asked before anything is made."""
    bundle = healthy()
    zone = {"name": "a3-highgpu-8g", "zone": "us-central1-a"}
    bundle |= {
        "services": [
            {"name": f"projects/123456789012/services/{name}.googleapis.com", "state": "ENABLED"}
            for name in ("compute", "container", "cloudquotas")
        ],
        "permissions": {
            "asked": ["compute.networks.create", "compute.networks.list"],
            "permissions": ["compute.networks.create", "compute.networks.list"],
        },
        "machineTypes": [zone],
    }
    return bundle


def changed(bundle: Bundle, **changes: Any) -> Bundle:
    """A copy with members replaced."""
    return {**deepcopy(bundle), **changes}


def put(bundle: Bundle, changes: dict[str, Any]) -> Bundle:
    """A copy with the members at JSON pointers set, made or (GONE) taken away; ``-`` at the end appends to a list."""
    copy = deepcopy(bundle)
    for where, value in changes.items():
        *above, last = [step.replace("~1", "/").replace("~0", "~") for step in where.split("/")[1:]]
        target: Any = copy
        for step in above:
            target = target[int(step)] if isinstance(target, list) else target.setdefault(step, {})
        if isinstance(target, list):
            if value is GONE:
                del target[int(last)]
            elif last == "-":
                target.append(deepcopy(value))
            else:
                target[int(last)] = deepcopy(value)
        elif value is GONE:
            target.pop(last, None)
        else:
            target[last] = deepcopy(value)
    return copy


def check(bundle: Bundle) -> tuple[Finding, ...]:
    """What the rules say of a bundle, read as a file is."""
    return check_observed(read(json.dumps(bundle)), now=NOW)


def of_rule(findings: tuple[Finding, ...], rule: str) -> list[Finding]:
    return [each for each in findings if each.rule == rule]


def errors(findings: tuple[Finding, ...]) -> set[str]:
    """Ids of the rules that found errors."""
    return {each.rule for each in findings if each.severity == "error"}


def _renumbered(obj: Any, number: int) -> Any:
    """A copy of the fourth of a kind as the one of that number."""
    text = json.dumps(obj)
    for what in ("net-", "sub-", "internal-", "vpc"):
        text = text.replace(f"{what}4", f"{what}{number}")
    return json.loads(text.replace("192.168.4.", f"192.168.{number}."))


def _called(obj: Any, network: str, subnet: str, name: str) -> Any:
    """A copy of the first of a kind with the names of another network, subnet and Network object."""
    text = json.dumps(obj)
    for old, new in (("example-net-1", f"example-{network}"), ("example-sub-1", f"example-{subnet}"), ("vpc1", name)):
        text = text.replace(old, new)
    return json.loads(text)
