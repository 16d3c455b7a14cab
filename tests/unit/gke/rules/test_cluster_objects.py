"""Nodes and Network objects of a live cluster: read where the kubeconfig means it, else told to be unknown."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from interlace.cli.gke_live import Kubeconfig, judge, kubernetes_of, targets_of
from interlace.cli.manifests_status import NODES
from interlace.gke.observed.gathering import Gathered
from interlace.kube.client import Client
from interlace.kube.errors import ConfigError
from interlace.sim.apiserver import ApiServer
from tests.unit.gke.rules.bundles import NOW, healthy
from tests.unit.gke.spec.clusters import cluster, pool


async def test_the_objects_of_a_cluster_are_read_through_a_kubeconfig_that_is_named(embedded_plane: ApiServer) -> None:
    config = embedded_plane.credentials("admin", groups=["system:masters"])
    async with Client(config, user_agent="test", qps=0) as client:
        await client.create(NODES, {"metadata": {"name": "one", "labels": {"cloud.google.com/gke-nodepool": "gpu"}}})
    objects, findings = await kubernetes_of({"name": "c"}, Kubeconfig(file=str(embedded_plane.kubeconfig)))
    assert findings == []
    assert objects is not None
    assert "one" in {each["metadata"]["name"] for each in objects["nodes"]}
    assert (objects["networks"], objects["gkeNetworkParamSets"]) == ([], [])


async def test_the_current_context_is_used_only_if_its_server_is_the_cluster(
    embedded_plane: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(embedded_plane.kubeconfig))
    host = urlsplit(embedded_plane.credentials("admin", groups=[]).server).hostname
    objects, findings = await kubernetes_of({"name": "c", "endpoint": host}, Kubeconfig())
    assert objects is not None
    assert findings == []
    objects, findings = await kubernetes_of(
        {"name": "c", "location": "us-central1", "endpoint": "203.0.113.7"}, Kubeconfig()
    )
    assert objects is None
    assert [(each.rule, each.pointer) for each in findings] == [("state.unreadable", "/kubernetes")]
    assert "the current context of the kubeconfig means" in findings[0].text
    assert "get-credentials c --location us-central1" in findings[0].remedy


async def test_without_a_kubeconfig_the_objects_are_unknown_and_a_named_one_must_be_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    objects, findings = await kubernetes_of({"name": "c"}, Kubeconfig())
    assert objects is None
    assert "there is no kubeconfig for it" in findings[0].text
    with pytest.raises(ConfigError):
        await kubernetes_of({"name": "c"}, Kubeconfig(file=str(tmp_path / "none")))


def test_a_pool_of_the_file_that_the_cluster_lacks_is_judged_as_one_that_is_still_to_be_made() -> None:
    file = cluster(
        "a3-high",
        project="example-project",
        pools=[pool(name="gpu-pool"), pool(name="more", reservation={"name": "mine"})],
    )
    gathered = Gathered(document=healthy(), findings=())
    found = judge(gathered, targets_of(file), cluster=file, now=NOW)
    about = {(each.rule, each.pointer) for each in found if each.severity != "info"}
    assert ("reservation.missing", "/spec/pools/0/reservation") in about
    assert ("pool.missing", "/cluster/nodePools") in about
    assert not [each for each in found if each.severity == "error" and each.rule != "reservation.missing"]
