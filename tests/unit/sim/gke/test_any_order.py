"""Requests in any order, answered or refused: what refers to something never outlives it, and nothing is lost."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.unit.sim.gke.cloud import CLUSTER, CLUSTERS, GLOBAL, POOLS, REGION, Clouded, cluster_body, pool_body

NUMBERS = st.integers(1, 2)


class Requests(RuleBasedStateMachine):
    """Two networks with a subnetwork and a rule each, one cluster, one pool, and time."""

    def __init__(self) -> None:
        super().__init__()
        self.cloud = Clouded()

    def send(self, method: str, path: str, body: Any = None) -> None:
        """Whatever the answer is, it is an answer."""
        assert self.cloud.ask(method, path, body).status in {200, 400, 404, 409}

    @rule(number=NUMBERS)
    def insert_network(self, number: int) -> None:
        self.send("POST", f"{GLOBAL}/networks", {"name": f"net-{number}"})

    @rule(number=NUMBERS)
    def insert_subnetwork(self, number: int) -> None:
        where = {"network": f"global/networks/net-{number}", "ipCidrRange": f"192.168.{number}.0/24"}
        self.send("POST", f"{REGION}/subnetworks", {"name": f"sub-{number}"} | where)

    @rule(number=NUMBERS)
    def insert_rule(self, number: int) -> None:
        body = {
            "name": f"rule-{number}",
            "network": f"global/networks/net-{number}",
            "allowed": [{"IPProtocol": "icmp"}],
        }
        self.send("POST", f"{GLOBAL}/firewalls", body)

    @rule()
    def create_cluster(self) -> None:
        self.send("POST", CLUSTERS, {"cluster": cluster_body(network="net-1", subnetwork="sub-1")})

    @rule()
    def create_pool(self) -> None:
        pairs = [{"network": "net-2", "subnetwork": "sub-2"}]
        self.send("POST", POOLS, {"nodePool": pool_body(networkConfig={"additionalNodeNetworkConfigs": pairs})})

    @rule(
        path=st.sampled_from(
            [
                *(f"{GLOBAL}/networks/net-{number}" for number in (1, 2)),
                *(f"{GLOBAL}/firewalls/rule-{number}" for number in (1, 2)),
                *(f"{REGION}/subnetworks/sub-{number}" for number in (1, 2)),
                f"{POOLS}/gpu-pool",
                CLUSTER,
            ]
        )
    )
    def delete(self, path: str) -> None:
        self.send("DELETE", path)

    @rule(seconds=st.sampled_from([1, 5, 10, 20]))
    def wait(self, seconds: int) -> None:
        self.cloud.wait(seconds)

    @invariant()
    def what_is_referred_to_is_there(self) -> None:
        objects = self.cloud.world.store.objects
        for path, document in objects.items():
            if document.get("kind") in {"compute#firewall", "compute#subnetwork"}:
                assert document["network"].partition("/v1/")[2] in objects, path
            if "/clusters/" in path and "/nodePools/" not in path:
                assert document["networkConfig"]["subnetwork"] in objects, path
            if "/nodePools/" in path:
                assert path.partition("/nodePools/")[0] in objects, path

    def teardown(self) -> None:
        cloud = self.cloud
        for _ in range(6):  # as many rounds as things can stand on each other, and one for what still runs
            cloud.wait(20)
            for path in cloud.world.store.made():
                prefix = "/v1/" if "/locations/" in path else "/compute/v1/"
                cloud.ask("DELETE", prefix + path)
        cloud.wait(20)
        assert cloud.world.store.made() == []
        assert cloud.world.operations.running() == []
        assert (cloud.world.store.creating, cloud.world.store.leaving) == ({}, set())


TestRequests = Requests.TestCase
TestRequests.settings = settings(max_examples=20, stateful_step_count=25, deadline=None)
