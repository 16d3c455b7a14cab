"""An upgrade of the imex-hosts never touches a node with a domain. Real server: ControllerRevisions are its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from interlace.api.computedomain import ComputeDomain
from interlace.api.meta import Resource
from interlace.kube.untyped import untyped
from interlace.sim.cluster import NAMESPACE, Cluster
from tests.cluster.conftest import run
from tests.cluster.workloads import WITHIN, deployment, domain, nodes_ready, pods

pytestmark = pytest.mark.asyncio(loop_scope="module")

_DAEMON_SETS = untyped(Resource("apps", "v1", "daemonsets", "DaemonSet", True))
_DEPLOYMENTS = untyped(Resource("apps", "v1", "deployments", "Deployment", True))
_ENV = "/spec/template/spec/containers/0/env/-"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster() -> AsyncIterator[Cluster]:
    async with run("real", nodes=3) as running:
        yield running


def _hosts(cluster: Cluster) -> dict[str, str]:
    """The uid of the Ready imex-host Pod of each node."""
    return {pod.spec.node_name: pod.metadata.uid for pod in cluster.our_pods("imex-host") if pod.ready}


async def test_hosts_of_an_old_template_are_replaced_where_no_domain_is(cluster: Cluster, namespace: str) -> None:
    controllers = {pod.metadata.uid for pod in cluster.our_pods("controller")}
    quick = [{"op": "add", "path": _ENV, "value": {"name": "IMEX_HOST_QUIET", "value": "1"}}]
    await cluster.client.json_patch(_DEPLOYMENTS, "interlace-controller", quick, namespace=NAMESPACE)
    await cluster.signal.until(
        "the controller with the shorter patience",
        lambda: [p.ready for p in cluster.our_pods("controller") if p.metadata.uid not in controllers] == [True],
        within=WITHIN,
    )
    await cluster.apply(domain("job", namespace=namespace))
    await cluster.apply(deployment("job", namespace=namespace, replicas=1, template="job-channel"))
    await cluster.signal.until(
        "a domain of one node", lambda: len(nodes_ready(cluster, "job", namespace=namespace)) == 1, within=WITHIN
    )
    (busy,) = nodes_ready(cluster, "job", namespace=namespace)
    before = _hosts(cluster)
    assert len(before) == 3
    newer = {"spec": {"template": {"metadata": {"annotations": {"example.com/build": "2"}}}}}
    await cluster.client.merge_patch(_DAEMON_SETS, "interlace-imex-host", newer, namespace=NAMESPACE)

    def replaced() -> set[str]:
        return {node for node, uid in _hosts(cluster).items() if before.get(node) != uid}

    await cluster.signal.until("new hosts on the idle nodes", lambda: len(replaced()) == 2, within=WITHIN)
    assert busy not in replaced()
    assert _hosts(cluster)[busy] == before[busy]
    assert all(pod.ready for pod in pods(cluster, "job", namespace=namespace))

    await cluster.client.delete(_DEPLOYMENTS, "job", namespace=namespace, propagation="Background")
    await cluster.client.delete(ComputeDomain, "job", namespace=namespace)
    await cluster.signal.until("a new host on the last node too", lambda: busy in replaced(), within=WITHIN)
