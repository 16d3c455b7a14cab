"""A domain forms where ``resource.k8s.io/v1`` is not served, as on Kubernetes 1.32 and 1.33.

The real API server serves the older version alone; scheduler and controllers are simulated there, since the real
ones of this release want v1.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from interlace.api.resource import REPORTS_ANNOTATION
from interlace.sim.cluster import Cluster
from tests.cluster.conftest import run
from tests.cluster.workloads import WITHIN, condition, container, deployment, domain, nodes_ready, pods, read_domain

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="module",
    params=[("embedded", "v1beta1"), ("embedded", "v1beta2"), ("real", "v1beta1"), ("real", "v1beta2")],
    ids="-".join,
)
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    server, version = request.param
    async with run(server, nodes=3, resource_version=version) as running:
        yield running


async def test_a_domain_of_three_nodes_forms(cluster: Cluster, namespace: str) -> None:
    await cluster.apply(domain("job", namespace=namespace))
    await cluster.apply(deployment("job", namespace=namespace, replicas=3, template="job-channel"))
    await cluster.signal.until(
        "three Ready pods",
        lambda: (
            len(pods(cluster, "job", namespace=namespace)) == 3
            and all(pod.ready for pod in pods(cluster, "job", namespace=namespace))
        ),
        within=WITHIN,
    )
    await cluster.signal.until(
        "three Ready nodes", lambda: len(nodes_ready(cluster, "job", namespace=namespace)) == 3, within=WITHIN
    )
    for pod in pods(cluster, "job", namespace=namespace):
        assert container(cluster, pod).devices == ("/dev/nvidia-caps-imex-channels/channel0",)
    found = read_domain(cluster, "job", namespace=namespace)
    assert found is not None
    assert found.status is not None
    assert sorted(node.index for node in found.status.nodes) == [0, 1, 2]
    ready = condition(cluster, "job", "Ready", namespace=namespace)
    assert ready is not None
    assert (ready.status, ready.reason) == ("True", "Formed")


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["embedded", "real"])
async def forgetful(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """As Kubernetes 1.32 is by default: v1beta1, and the status of devices is dropped."""
    async with run(request.param, nodes=3, resource_version="v1beta1", device_status=False) as running:
        yield running


async def test_readiness_reaches_the_domain_where_claims_do_not_keep_it(forgetful: Cluster) -> None:
    cluster, namespace = forgetful, "default"
    await cluster.apply(domain("job", namespace=namespace))
    await cluster.apply(deployment("job", namespace=namespace, replicas=3, template="job-channel"))
    await cluster.signal.until(
        "three Ready nodes", lambda: len(nodes_ready(cluster, "job", namespace=namespace)) == 3, within=WITHIN
    )
    assert not any(claim.status.devices for claim in cluster.claims.items())
    said = condition(cluster, "job", "DeviceStatusKept", namespace=namespace)
    assert said is not None
    assert said.status == "False"
    assert "feature gate DRAResourceClaimDeviceStatus" in said.message
    ready = condition(cluster, "job", "Ready", namespace=namespace)
    assert ready is not None
    assert ready.reason == "Formed"


async def test_a_report_ends_with_its_pod(forgetful: Cluster) -> None:
    cluster, namespace = forgetful, "default"
    assert any(REPORTS_ANNOTATION in found.metadata.annotations for found in cluster.slices.items())
    await cluster.apply(deployment("job", namespace=namespace, replicas=0, template="job-channel"))
    await cluster.signal.until(
        "slices without reports",
        lambda: not any(REPORTS_ANNOTATION in found.metadata.annotations for found in cluster.slices.items()),
        within=WITHIN,
    )
