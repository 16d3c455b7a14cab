"""What every request to the simulated cloud passes: route, project, token, schema; and lists by page and filter."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlace.sim.gke.errors import Refusal
from interlace.sim.gke.faults import Kind
from interlace.sim.gke.listing import matching
from tests.unit.sim.gke.cloud import (
    CLUSTER,
    CLUSTERS,
    GLOBAL,
    LOCATION,
    POOLS,
    PROJECT,
    REGION,
    ZONE,
    Clouded,
    cluster_body,
)
from tests.unit.sim.gke.judge import recorded, shape


@pytest.fixture
def cloud() -> Clouded:
    return Clouded()


def test_a_bad_name_is_refused_as_recorded(cloud: Clouded) -> None:
    answer = cloud.ask("POST", f"{GLOBAL}/networks", {"name": "PROJECT_ID-net-1"})
    assert answer.body == recorded("compute-error-400-invalid")["body"]


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        (f"{GLOBAL}/networks", {"name": "n", "mtuu": 1}, '"mtuu"'),
        (f"{GLOBAL}/networks", {"name": "n", "mtu": "8244"}, "type integer"),
        (f"{GLOBAL}/networks", {"name": "n", "autoCreateSubnetworks": 1}, "type boolean"),
        (f"{GLOBAL}/networks", {}, "resource.name"),
        (f"{GLOBAL}/firewalls", {"name": "f", "direction": "IN"}, "EGRESS, INGRESS"),
        (CLUSTERS, {"cluster": {"name": "c", "nodePools": [{"config": {"gvNic": {}}}]}}, "cluster.nodePools[0].config"),
        (CLUSTERS, {"cluster": {}}, "cluster.name"),
        (f"{GLOBAL}/networks", [1], "Root element"),
    ],
)
def test_bodies_that_no_schema_knows_are_refused(cloud: Clouded, path: str, body: Any, said: str) -> None:
    code, _, text = cloud.refused("POST", path, body)
    assert code == 400
    assert said in text
    assert cloud.world.store.made() == []


def test_what_the_server_alone_writes_is_passed_over(cloud: Clouded) -> None:
    body = {"name": "n", "id": "1", "selfLink": "x", "creationTimestamp": "yesterday", "mtu": 1460}
    cloud.do("POST", f"{GLOBAL}/networks", body)
    assert cloud.good("GET", f"{GLOBAL}/networks/n")["selfLink"].endswith("/networks/n")


def test_text_that_is_no_json_is_refused(cloud: Clouded) -> None:
    answer = cloud.cloud.answer("POST", f"{GLOBAL}/networks", {}, b"{")
    assert (answer.status, answer.body["error"]["errors"][0]["reason"]) == (400, "parseError")


def test_a_method_that_is_not_simulated_says_so(cloud: Clouded) -> None:
    assert "simulation has no method" in cloud.refused("POST", f"{GLOBAL}/routes", {})[2]


def test_another_project_is_not_there(cloud: Clouded) -> None:
    assert cloud.refused("GET", GLOBAL.replace("example-project", "other") + "/networks")[0] == 404
    assert cloud.refused("GET", CLUSTERS.replace("example-project", "other"))[0] == 403


def test_the_project_number_is_the_project(cloud: Clouded) -> None:
    cloud.cluster()
    path = CLUSTER.replace("example-project", "123456789012").replace("/locations/", "/zones/")
    assert cloud.good("GET", path)["name"] == "example-cluster"


def test_a_repeated_token_answers_with_the_first_operation(cloud: Clouded) -> None:
    token = str(uuid.uuid4())
    first = cloud.good("POST", f"{GLOBAL}/networks", {"name": "n"}, requestId=token)
    again = cloud.good("POST", f"{GLOBAL}/networks", {"name": "n"}, requestId=token)
    cloud.wait()
    late = cloud.good("POST", f"{GLOBAL}/networks", {"name": "n"}, requestId=token)
    assert first["name"] == again["name"] == late["name"]
    assert late["status"] == "DONE"
    assert cloud.refused("POST", f"{GLOBAL}/networks", {"name": "n"}, requestId=str(uuid.uuid4()))[0] == 409


@pytest.mark.parametrize("token", ["1", str(uuid.UUID(int=0))])
def test_a_token_that_is_no_uuid_is_refused(cloud: Clouded, token: str) -> None:
    assert "requestId" in cloud.refused("POST", f"{GLOBAL}/networks", {"name": "n"}, requestId=token)[2]


def test_the_token_of_a_refused_request_is_free(cloud: Clouded) -> None:
    token = str(uuid.uuid4())
    body = {"name": "s", "network": "global/networks/n", "ipCidrRange": "192.168.1.0/24"}
    assert cloud.refused("POST", f"{REGION}/subnetworks", body, requestId=token)[0] == 404
    cloud.network("n")
    cloud.good("POST", f"{REGION}/subnetworks", body, requestId=token)


def test_operations_are_listed_where_they_are(cloud: Clouded) -> None:
    cloud.network()
    cloud.subnetwork()
    started = cloud.good("POST", CLUSTERS, {"cluster": cluster_body()})
    assert len(cloud.good("GET", f"{GLOBAL}/operations")["items"]) == 1
    regional = cloud.good("GET", f"{REGION}/operations", filter='targetLink eq ".*/example-sub-1"')["items"]
    assert [each["operationType"] for each in regional] == ["insert"]
    assert "items" not in cloud.good("GET", f"{ZONE}/operations")
    everywhere = cloud.good("GET", f"{PROJECT}/aggregated/operations")["items"]
    assert len(everywhere["global"]["operations"]) == len(everywhere["regions/us-central1"]["operations"]) == 1
    found = cloud.good("GET", f"{LOCATION}/operations")["operations"]
    assert [each["name"] for each in found] == [started["name"]]
    assert cloud.good("GET", LOCATION.replace("us-central1-a", "-") + "/operations")["operations"] == found
    assert cloud.refused("GET", f"{GLOBAL}/operations/{started['name']}")[0] == 404
    assert cloud.refused("GET", f"{LOCATION}/operations/operation-0")[0] == 404


def test_a_stuck_operation_ends_never(cloud: Clouded) -> None:
    cloud.world.faults.add(Kind.STUCK)
    started = cloud.good("POST", f"{GLOBAL}/networks", {"name": "n"})
    cloud.wait(1_000_000)
    assert cloud.operation(started)["status"] == "RUNNING"


def test_pages_cover_a_list(cloud: Clouded) -> None:
    for number in range(7):
        cloud.network(f"net-{number}")
    names: list[str] = []
    token: dict[str, str] = {}
    for _ in range(4):
        page = cloud.good("GET", f"{GLOBAL}/networks", maxResults="3", **token)
        names += [each["name"] for each in page["items"]]
        token = {"pageToken": page.get("nextPageToken", "")}
        if not token["pageToken"]:
            break
    assert names == ["default", *(f"net-{number}" for number in range(7))]
    other = cloud.good("GET", f"{GLOBAL}/networks", maxResults="1")["nextPageToken"]
    assert cloud.refused("GET", f"{GLOBAL}/firewalls", pageToken=other)[0] == 400
    assert cloud.refused("GET", f"{GLOBAL}/networks", pageToken="?")[0] == 400
    assert cloud.refused("GET", f"{GLOBAL}/networks", maxResults="501")[0] == 400


def test_an_aggregated_list_goes_by_place(cloud: Clouded) -> None:
    cloud.networks(1)
    items = cloud.good("GET", f"{PROJECT}/aggregated/subnetworks", filter='name = "example-sub-1"')["items"]
    assert [each["name"] for each in items["regions/us-central1"]["subnetworks"]] == ["example-sub-1"]
    assert items["regions/us-east4"]["warning"]["code"] == "NO_RESULTS_ON_PAGE"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", "abc"),
        ('name = "b"', "b"),
        ("name=b", "b"),
        ('name eq "a|c"', "ac"),
        ("name ne 'a'", "bc"),
        ("name != a", "bc"),
        ("(mtu = 1460) (name != c)", "a"),
        ("mtu = 1460 AND name = c", "c"),
        ("routing.mode : GLO", "c"),
        ("auto = true", "b"),
    ],
)
def test_filters_of_lists(text: str, names: str) -> None:
    documents: list[dict[str, Any]] = [
        {"name": "a", "mtu": 1460},
        {"name": "b", "mtu": 8244, "auto": True},
        {"name": "c", "mtu": 1460, "routing": {"mode": "GLOBAL"}},
    ]
    assert "".join(each["name"] for each in documents if matching(text)(each)) == names


@given(st.text(alphabet="name=eq:!()\"' ANDOR*[x1.", max_size=30))
@settings(max_examples=60)
def test_a_filter_is_understood_or_refused(text: str) -> None:
    try:
        keep = matching(text)
    except Refusal as refusal:
        code = refusal.code
    else:
        code = 400 if keep({"name": "x1"}) in {True, False} else 0
    assert code == 400


@given(st.binary(max_size=60))
@settings(max_examples=60)
def test_no_body_is_too_strange_for_an_answer(raw: bytes) -> None:
    cloud = Clouded()
    for method, path in (("POST", f"{GLOBAL}/firewalls"), ("POST", POOLS), ("PUT", CLUSTER)):
        assert cloud.cloud.answer(method, path, {}, raw).status in {400, 404}


@pytest.mark.parametrize(
    ("permission", "method", "path", "body"),
    [
        ("compute.networks.create", "POST", f"{GLOBAL}/networks", {"name": "example-net-1"}),
        ("compute.networks.update", "PATCH", f"{GLOBAL}/networks/default", {"mtu": 1500}),
        ("compute.networks.list", "GET", f"{GLOBAL}/networks", None),
        ("container.clusters.create", "POST", CLUSTERS, {"cluster": cluster_body()}),
        ("container.clusters.update", "POST", POOLS, {"nodePool": {"name": "p"}}),
    ],
)
def test_who_lacks_a_permission_is_told_which(
    cloud: Clouded, permission: str, method: str, path: str, body: Any
) -> None:
    cloud.world.denied.add(permission)
    answer = cloud.ask(method, path, body)
    service = "container" if permission.startswith("container") else "compute"
    assert answer.status == 403
    assert shape(answer.body) == shape(recorded(f"{service}-error-403-permission")["body"])
    assert permission in answer.body["error"]["message"]


def test_permissions_and_projects(cloud: Clouded) -> None:
    path = "/v3/projects/example-project"
    cloud.world.denied.add("compute.networks.delete")
    asked = {"permissions": ["compute.networks.create", "compute.networks.delete"]}
    assert cloud.good("POST", f"{path}:testIamPermissions", asked) == {"permissions": ["compute.networks.create"]}
    assert cloud.good("GET", path)["projectId"] == "example-project"
    assert cloud.good("GET", "/v1/projects/example-project")["projectNumber"] == "123456789012"


def test_the_quota_of_gpus_is_told_by_family_and_region(cloud: Clouded) -> None:
    path = "/v1/projects/example-project/locations/global/services/compute.googleapis.com/quotaInfos"
    found = cloud.good("GET", f"{path}/GPUS-PER-GPU-FAMILY-per-project-region")
    wanted = recorded("cloudquotas-gpu-family")["body"]
    assert shape(found)["dimensionsInfos"] == shape(wanted)["dimensionsInfos"]
    assert set(found) == set(wanted)
    rows = [each for each in found["dimensionsInfos"] if each["dimensions"] == {"gpu_family": "NVIDIA_H100"}]
    assert [each["details"] for each in rows] == [{}]
    machines = cloud.good("GET", f"{path}/CPUS-PER-VM-FAMILY-per-project-region")["dimensionsInfos"]
    here = {"vm_family": "A3", "region": "us-central1"}
    assert [each["details"] for each in machines if each["dimensions"] == here] == [{"value": "1024"}]
    rows = cloud.good("GET", path)["quotaInfos"]
    first = cloud.good("GET", path, pageSize="4")
    second = cloud.good("GET", path, pageSize="4", pageToken=first["nextPageToken"])
    assert [*first["quotaInfos"], *second["quotaInfos"]] == rows
    assert cloud.ask("GET", path, pageToken="x").status == 400
    assert cloud.ask("GET", f"{path}/NONE").status == 404


def test_services_are_listed_and_enabled_together(cloud: Clouded) -> None:
    cloud.world.disabled.update({"compute", "cloudquotas"})
    path = "/v1/projects/example-project/services"
    assert len(cloud.good("GET", path, filter="state:ENABLED")["services"]) == 3
    names = ["compute.googleapis.com", "cloudquotas.googleapis.com"]
    assert cloud.good("POST", f"{path}:batchEnable", {"serviceIds": names})["done"]
    assert len(cloud.good("GET", path, filter="state:ENABLED")["services"]) == 5


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (f"{PROJECT}/regions", "us-central1"),
        (f"{PROJECT}/zones", "us-central1-a"),
        (f"{ZONE}/machineTypes", "a3-megagpu-8g"),
        (f"{ZONE}/acceleratorTypes", "nvidia-h100-mega-80gb"),
        (f"{GLOBAL}/networkProfiles", "us-central1-a-vpc-roce"),
    ],
)
def test_what_is_offered_where_is_listed_and_got(cloud: Clouded, path: str, name: str) -> None:
    rows = {each["name"]: each for each in cloud.good("GET", path)["items"]}
    assert cloud.good("GET", f"{path}/{name}") == rows[name]
    assert cloud.refused("GET", f"{path}/none")[0] == 404


def test_project_and_region_look_as_recorded(cloud: Clouded) -> None:
    assert shape(cloud.good("GET", PROJECT)) == shape(recorded("compute-project-quotas")["body"])
    found = cloud.good("GET", f"{PROJECT}/regions/us-central1")
    assert shape(found) == shape(recorded("compute-region-quotas")["body"])
    assert not any(each["metric"] == "NVIDIA_H100_GPUS" for each in found["quotas"])


def test_accelerators_are_listed_over_all_zones(cloud: Clouded) -> None:
    items = cloud.good("GET", f"{PROJECT}/aggregated/acceleratorTypes")["items"]
    assert "nvidia-h100-80gb" in {each["name"] for each in items["zones/us-central1-a"]["acceleratorTypes"]}


def test_the_effective_rules_of_a_network(cloud: Clouded) -> None:
    found = cloud.good("GET", f"{GLOBAL}/networks/default/getEffectiveFirewalls")
    assert len(found["firewalls"]) == 4


def test_beta_links_name_beta_and_v1_hides_what_is_beta(cloud: Clouded) -> None:
    beta = REGION.replace("/v1/", "/beta/")
    policy = {"collocation": "COLLOCATED", "maxDistance": 2}
    assert (
        '"maxDistance"'
        in cloud.refused("POST", f"{REGION}/resourcePolicies", {"name": "p", "groupPlacementPolicy": policy})[2]
    )
    started = cloud.good("POST", f"{beta}/resourcePolicies", {"name": "p", "groupPlacementPolicy": policy})
    assert "/compute/beta/" in started["selfLink"]
    cloud.wait()
    assert cloud.good("GET", f"{beta}/resourcePolicies/p")["groupPlacementPolicy"] == policy
    assert "maxDistance" not in cloud.good("GET", f"{REGION}/resourcePolicies/p")["groupPlacementPolicy"]
