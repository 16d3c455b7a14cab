"""A cluster with objects of the known driver is taken over while its domains live on."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from interlace.api.computedomain import DOMAIN_LABEL, FINALIZER, TARGET_LABEL, ComputeDomain
from interlace.api.resource import ResourceClaimTemplate
from interlace.domains.takeover import is_ours
from interlace.sim.cluster import Cluster
from tests.cluster.conftest import run
from tests.cluster.workloads import WITHIN, condition, deployment, domain, nodes_ready
from tests.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(server: str) -> AsyncIterator[Cluster]:
    async with run(server, nodes=2) as running:
        yield running


async def test_the_known_drivers_template_is_replaced_and_new_pods_run(cluster: Cluster, namespace: str) -> None:
    # It becomes the known driver's once the domain's uid is known: until then the name is taken.
    request = {"name": "channel", "exactly": {"deviceClassName": "compute-domain-default-channel.nvidia.com"}}
    body = {"metadata": {"name": "job-channel"}, "spec": {"spec": {"devices": {"requests": [request]}}}}
    theirs = await cluster.client.create(ResourceClaimTemplate, body, namespace=namespace)
    await cluster.apply(domain("job", namespace=namespace))

    def told() -> bool:
        said = condition(cluster, "job", "TemplateReady", namespace=namespace)
        return said is not None and said.reason == "TemplateNameTaken"

    await cluster.signal.until("a name that is taken", told, within=WITHIN)
    uid = (await cluster.client.get(ComputeDomain, "job", namespace=namespace)).metadata.uid
    labels = {DOMAIN_LABEL: uid, TARGET_LABEL: "Workload"}
    patch = {"metadata": {"labels": labels, "finalizers": [FINALIZER]}}
    await cluster.client.merge_patch(ResourceClaimTemplate, "job-channel", patch, namespace=namespace)

    async def replaced() -> bool:
        found = (await cluster.client.list(ResourceClaimTemplate, namespace=namespace)).items
        return [is_ours(template) for template in found] == [True] and found[0].metadata.uid != theirs.metadata.uid

    await eventually(replaced, within=WITHIN, what="a template of ours")
    await cluster.apply(deployment("job", namespace=namespace, replicas=2, template="job-channel"))
    await cluster.signal.until(
        "two Ready nodes", lambda: len(nodes_ready(cluster, "job", namespace=namespace)) == 2, within=WITHIN
    )
