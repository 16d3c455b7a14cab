"""What is read around a domain, against the embedded API server."""

from __future__ import annotations

from interlace.api.computedomain import CLIQUE_LABEL, DOMAIN_LABEL, DRIVER, ComputeDomain, ComputeDomainClique
from interlace.api.resource import ResourceClaim, ResourceSlice
from interlace.cli.domain_reader import Reader
from interlace.domains.chain import Health, Step
from interlace.domains.channels import shared_name
from interlace.kube.client import Client
from interlace.kube.untyped import apply_manifest
from interlace.manifests import NAMESPACE, manifests
from interlace.sim.plane import Plane

RACK = "c0ffee00-0000-4000-8000-0000000000ff.7"
NODE = "reader-node"


async def test_the_map_that_a_channel_domain_shares_is_found(embedded_plane: Plane) -> None:
    config = embedded_plane.credentials("admin", groups=["system:masters"])
    async with Client(config, user_agent="test", qps=0) as client:
        for manifest in manifests():
            await apply_manifest(client, manifest, manager="test")
        channel = {"resourceClaimTemplate": {"name": "shared-rct"}}
        body = {"metadata": {"name": "shared"}, "spec": {"numNodes": 0, "channel": channel, "isolation": "Channel"}}
        uid = (await client.create(ComputeDomain, body, namespace="default")).metadata.uid
        attributes = {"type": {"string": "channel"}, "id": {"int": 0}, "clique": {"string": RACK}}
        spec = {
            "driver": DRIVER,
            "nodeName": NODE,
            "pool": {"name": NODE, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "channel-0", "attributes": attributes}],
        }
        await client.create(ResourceSlice, {"metadata": {"name": NODE}, "spec": spec})
        request = {"name": "channel", "exactly": {"deviceClassName": "compute-domain-default-channel.nvidia.com"}}
        claim = {
            "metadata": {"name": "reader", "labels": {DOMAIN_LABEL: uid}},
            "spec": {"devices": {"requests": [request]}},
        }
        await client.create(ResourceClaim, claim, namespace="default")
        result = {"request": "channel", "driver": DRIVER, "pool": NODE, "device": "channel-0"}
        status = {"status": {"allocation": {"devices": {"results": [result]}}}}
        await client.merge_patch(ResourceClaim, "reader", status, namespace="default", subresource="status")
        entry = {"domain": uid, "name": "shared", "namespace": "default", "channel": 3, "indexes": [5]}
        row = {"nodeName": NODE, "ipAddress": "10.0.0.9", "cliqueID": RACK, "index": 5, "status": "Ready"}
        shared = {
            "metadata": {"name": shared_name(RACK), "labels": {CLIQUE_LABEL: RACK}},
            "daemons": [row],
            "channels": [entry],
        }
        await client.create(ComputeDomainClique, shared, namespace=NAMESPACE)
        picture = await Reader(client, namespace="default", system=NAMESPACE).picture("shared")
    (chain,) = picture.chains
    found = chain.link(Step.MAP)
    assert found is not None
    assert (found.health, found.detail) == (Health.OK, "index 5, address 10.0.0.9, channel 3")
