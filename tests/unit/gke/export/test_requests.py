"""Requests of the examples against those that gcloud was recorded to send, difference by difference."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from interlace.gke.desired import desired
from interlace.gke.export.requests import as_requests
from interlace.gke.reading import read_cluster
from interlace.gke.resource import Key

ROOT = Path(__file__).parents[4]
GOLDEN = ROOT / "tests" / "data" / "gke" / "golden"

ABSENT = "absent"
Difference = tuple[str, str, Any, Any]
"""Object, field, what the recipe's command sends, what we send."""

CLUSTER, POOL = "clusters/example-cluster", "nodePools/gpu-pool"
EXCLUSION = "body.cluster.maintenancePolicy.window.maintenanceExclusions.interlace-hold"
BETA = "/v1beta1/projects/example-project/locations/us-central1-a/clusters"


def mended(nics: int, *, preview: bool) -> dict[str, list[Difference]]:
    """The eleven defects of the published recipe, with what mending each changes in the requests.

    The sequences were recorded from commands that a shell can run, so those that are about the shell change nothing.
    """
    return {
        "1 a lost backslash turns --no-enable-autoupgrade into a command of its own": [],
        "2 a backslash at the end of a block swallows the next line": [],
        "3 optional flags stand in square brackets over several lines": [],
        "4 the same networks have three spellings; here all names come from one function": [],
        "5 a pool without --num-nodes gets three nodes in each zone; here nodes and zone are given": [],
        "6 one pool lacks scopes, placement, reservation and interval; here each is a key of the file": [],
        "7 the cluster relies on a network named default with the MTU of the Internet": [
            ("networks/example-primary", "", ABSENT, "made"),
            ("subnetworks/example-primary-sub", "", ABSENT, "made"),
            (CLUSTER, "body.cluster.network", ABSENT, "example-primary"),
            (CLUSTER, "body.cluster.subnetwork", ABSENT, "example-primary-sub"),
            (CLUSTER, "body.cluster.ipAllocationPolicy.clusterSecondaryRangeName", ABSENT, "pods"),
            (CLUSTER, "body.cluster.ipAllocationPolicy.servicesSecondaryRangeName", ABSENT, "services"),
        ],
        "8 auto-upgrade is turned off for a cluster that the server puts into a channel, which refuses that": [
            (CLUSTER, "body.cluster.releaseChannel.channel", ABSENT, "REGULAR"),
            (CLUSTER, f"{EXCLUSION}.startTime", ABSENT, "2026-12-01T00:00:00Z"),
            (CLUSTER, f"{EXCLUSION}.endTime", ABSENT, "2027-05-30T00:00:00Z"),
            (CLUSTER, f"{EXCLUSION}.maintenanceExclusionOptions.scope", ABSENT, "NO_MINOR_OR_NODE_UPGRADES"),
            (CLUSTER, "body.cluster.nodePools[0].management.autoUpgrade", False, True),
            (POOL, "body.nodePool.management.autoUpgrade", False, True),
        ],
        "9 ranges are free text; here each rule lets in the nodes of its own subnet": [
            (
                f"firewalls/example-internal-{nic}",
                "body.sourceRanges",
                ["192.168.0.0/16"],
                [f"192.168.{nic}.0/24"],
            )
            for nic in range(1, nics + 1)
        ],
        "10 networks are taken from a preview of the API, and a pool of three small nodes comes in silence": [
            *([(CLUSTER, "path", BETA, BETA.replace("v1beta1", "v1"))] if preview else []),
            (CLUSTER, "body.cluster.nodePools[0].initialNodeCount", 3, 1),
            (CLUSTER, "body.cluster.nodePools[0].config.machineType", ABSENT, "e2-standard-8"),
        ],
        "11 an annotation of a Pod is no JSON": [],
    }


@pytest.mark.parametrize(
    ("family", "sequence", "nics", "preview"),
    [("a3-mega", "seq-tcpxo-create", 8, True), ("a3-high", "seq-tcpx-create", 4, False)],
)
def test_an_example_gives_the_recorded_requests_but_for_the_mended_defects(
    family: str, sequence: str, nics: int, preview: bool
) -> None:
    steps = json.loads((GOLDEN / f"{sequence}.json").read_text())["steps"]
    recorded = [each for step in steps for each in step["requests"] if _mutates(each)]
    cluster = read_cluster(ROOT / "examples" / family / "cluster.yaml")
    ours = json.loads(as_requests(desired(cluster)).text)["requests"]
    listed = mended(nics, preview=preview)
    assert len(listed) == 11
    found = list(_differences(_by_name(recorded), _by_name(ours)))
    assert sorted(found, key=repr) == sorted((each for known in listed.values() for each in known), key=repr)


def test_requests_come_in_an_order_in_which_each_finds_what_it_refers_to() -> None:
    made: set[Key] = set()
    for resource in desired(read_cluster(ROOT / "examples" / "a3-mega" / "cluster.yaml")):
        assert set(resource.after) <= made
        made.add(resource.key)
    assert len(made) == 28


def _mutates(request: Mapping[str, Any]) -> bool:
    return request["method"] == "POST" and not request["path"].endswith("/wait")


def _by_name(requests: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    found = {}
    for request in requests:
        body = request["body"]
        name = (body.get("cluster") or body.get("nodePool") or body)["name"]
        found[f"{request['path'].rpartition('/')[2]}/{name}"] = request
    assert len(found) == len(requests)
    return found


def _differences(recorded: dict[str, Any], ours: dict[str, Any]) -> Iterator[Difference]:
    for name in sorted(recorded.keys() | ours.keys()):
        if name not in recorded or name not in ours:
            yield (name, "", ABSENT, "made") if name in ours else (name, "", "made", ABSENT)
            continue
        left, right = dict(_leaves(recorded[name])), dict(_leaves(ours[name]))
        for field in sorted(left.keys() | right.keys()):
            before, after = left.get(field, ABSENT), right.get(field, ABSENT)
            if before != after:
                yield name, field, before, after


def _leaves(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(each, f"{at}.{key}" if at else key)
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        for index, each in enumerate(value):
            yield from _leaves(each, f"{at}[{index}]")
    else:
        yield at, value
