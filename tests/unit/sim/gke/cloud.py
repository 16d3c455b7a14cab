"""A simulated cloud without HTTP and with a hand on the clock; every good answer is judged."""

from __future__ import annotations

from typing import Any

import msgspec

from interlace.sim.gke.answers import Answer
from interlace.sim.gke.cloud import Cloud
from interlace.sim.gke.preset import furnish
from interlace.sim.gke.world import Durations, World
from tests.unit.sim.gke.judge import judge

PROJECT = "/compute/v1/projects/example-project"
GLOBAL = f"{PROJECT}/global"
REGION = f"{PROJECT}/regions/us-central1"
ZONE = f"{PROJECT}/zones/us-central1-a"
LOCATION = "/v1/projects/example-project/locations/us-central1-a"
CLUSTERS = f"{LOCATION}/clusters"
CLUSTER = f"{CLUSTERS}/example-cluster"
POOLS = f"{CLUSTER}/nodePools"


class Clouded:
    """Requests to a cloud in which operations take 10 seconds."""

    def __init__(self, *, default_network: bool = True, projects: tuple[str, ...] = ("example-project",)) -> None:
        self.now = 0.0
        self.world = World(projects=projects, clock=lambda: self.now, durations=Durations.every(10))
        furnish(self.world, default_network=default_network)
        self.cloud = Cloud(self.world)

    def ask(self, method: str, path: str, body: Any = None, **query: str) -> Answer:
        """Any answer; a good one fails the test unless it is of the schema."""
        raw = b"" if body is None else msgspec.json.encode(body)
        answer = self.cloud.answer(method, path, query, raw)
        if answer.status == 200:
            version = path.split("/")[2 if path.startswith("/compute") else 1]
            wrong = judge(answer.service, version, answer.method, answer.body)
            assert not wrong, wrong
        return answer

    def good(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        """The body of an answer that must be good."""
        answer = self.ask(method, path, body, **query)
        assert answer.status == 200, answer.body
        return answer.body

    def refused(self, method: str, path: str, body: Any = None, **query: str) -> tuple[int, str, str]:
        """Code, reason and message of an answer that must be a refusal."""
        answer = self.ask(method, path, body, **query)
        assert answer.status >= 400, answer.body
        error = answer.body["error"]
        return answer.status, error["errors"][0]["reason"], error["message"]

    def wait(self, seconds: float = 10) -> None:
        """Let time pass; what becomes due happens."""
        self.now += seconds
        self.world.operations.settle(self.now)

    def do(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        """A change, and its operation when it has ended."""
        started = self.good(method, path, body, **query)
        self.wait()
        return self.operation(started)

    def operation(self, started: Any) -> Any:
        """An operation as it is now."""
        link = started["selfLink"]
        if link.startswith("https://www.googleapis.com"):
            return self.good("GET", link.removeprefix("https://www.googleapis.com"))
        return self.good("GET", link.removeprefix("https://container.googleapis.com"))

    # What most tests begin with.

    def network(self, name: str = "example-net-1", **more: Any) -> Any:
        body = {"name": name, "autoCreateSubnetworks": False, "mtu": 8244} | more
        return self.do("POST", f"{GLOBAL}/networks", body)

    def subnetwork(self, number: int = 1, **more: Any) -> Any:
        body = {
            "name": f"example-sub-{number}",
            "network": f"https://www.googleapis.com{GLOBAL}/networks/example-net-{number}",
            "ipCidrRange": f"192.168.{number}.0/24",
        }
        return self.do("POST", f"{REGION}/subnetworks", body | more)

    def firewall(self, number: int = 1, **more: Any) -> Any:
        body = {
            "name": f"example-internal-{number}",
            "network": f"global/networks/example-net-{number}",
            "sourceRanges": ["192.168.0.0/16"],
            "allowed": [{"IPProtocol": "tcp", "ports": ["0-65535"]}, {"IPProtocol": "icmp"}],
        }
        return self.do("POST", f"{GLOBAL}/firewalls", body | more)

    def networks(self, count: int) -> None:
        for number in range(1, count + 1):
            self.network(f"example-net-{number}")
            self.subnetwork(number)

    def cluster(self, **more: Any) -> Any:
        return self.do("POST", CLUSTERS, {"cluster": cluster_body(**more)})

    def pool(self, **more: Any) -> Any:
        return self.do("POST", POOLS, {"nodePool": pool_body(**more)})


def cluster_body(**more: Any) -> dict[str, Any]:
    """A small cluster for additional networks."""
    return {
        "name": "example-cluster",
        "initialClusterVersion": "1.32.11-gke.1174000",
        "ipAllocationPolicy": {"useIpAliases": True},
        "networkConfig": {"datapathProvider": "ADVANCED_DATAPATH", "enableMultiNetworking": True},
        "nodePools": [{"name": "default-pool", "initialNodeCount": 1, "config": {"machineType": "e2-standard-4"}}],
    } | more


def pool_body(**more: Any) -> dict[str, Any]:
    """Two nodes with GPUs, still without additional networks."""
    gpus = {"acceleratorType": "nvidia-h100-mega-80gb", "acceleratorCount": "8"}
    return {
        "name": "gpu-pool",
        "initialNodeCount": 2,
        "config": {"machineType": "a3-megagpu-8g", "gvnic": {"enabled": True}, "accelerators": [gpus]},
    } | more


def extra_networks(count: int) -> dict[str, Any]:
    """``networkConfig`` of a pool with the first ``count`` networks of ``Clouded.networks``."""
    pairs = [{"network": f"example-net-{n}", "subnetwork": f"example-sub-{n}"} for n in range(1, count + 1)]
    return {"additionalNodeNetworkConfigs": pairs}
