"""Everything that a cluster of one hardware family needs, as objects ready for server-side apply.

Invariant: every image and every value comes from one software tuple; nothing is mixed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

import msgspec

from interlace.fabric.environment import default_interfaces
from interlace.fabric.family import Family, SoftwareTuple
from interlace.fabric.vpcs import VpcNames
from interlace.manifests.canary import canary
from interlace.manifests.components import GPU_NODES, IMAGE, NAMESPACE, manifests
from interlace.manifests.installer import installer
from interlace.manifests.networks import networks
from interlace.manifests.workload import TestPlan, Wire, workload

Part = Literal["components", "networks", "installer", "canary", "test"]
PARTS: Final[tuple[Part, ...]] = get_args(Part)
"""In the order in which they are applied."""

GKE_GPU_NODES: Final = {"cloud.google.com/gke-gpu": "true"}
"""Labels of nodes with GPUs on GKE, which has no GPU feature discovery."""

_Object = dict[str, Any]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is rendered, beside the family and its software."""

    parts: tuple[Part, ...] = PARTS
    vpcs: VpcNames
    names: Mapping[str, str] = {}
    """Name of a Network in the family file to its name in the cluster."""
    namespace: str = NAMESPACE
    image: str = IMAGE
    replicas: int = 2
    driver_root: str = ""
    """Empty: where the family has it."""
    test: TestPlan = TestPlan()


def family_manifests(family: Family, *, software: SoftwareTuple, plan: Plan, wire: Wire) -> list[_Object]:
    """All objects of the parts, in order. ``wire`` adds to a Pod template what the fabric needs.

    A family outside GKE has no networks and no installer; one without a public image of tests has no test.
    """
    objects: list[_Object] = []
    if "components" in plan.parts:
        objects += _components(family, plan)
    if "networks" in plan.parts:
        objects += networks(family, vpcs=plan.vpcs, names=plan.names)
    if "installer" in plan.parts and (daemon_set := installer(family, software=software)) is not None:
        objects.append(daemon_set)
    if "canary" in plan.parts:
        objects += canary(
            family,
            software=software,
            interfaces=default_interfaces(family),
            networks=tuple(plan.names.get(each.name, each.name) for each in family.gpu_networks),
            namespace=plan.test.namespace,
        )
    if "test" in plan.parts and family.test is not None:
        objects += workload(family, software=software, plan=plan.test, wire=wire)
    return objects


def _components(family: Family, plan: Plan) -> list[_Object]:
    objects = manifests(
        namespace=plan.namespace,
        image=plan.image,
        replicas=plan.replicas,
        driver_root=plan.driver_root or family.node.driver_root,
        max_nodes=family.node.domain_nodes or 18,
        gpu_nodes=GKE_GPU_NODES if family.node.gke else GPU_NODES,
        # Their daemon gets its devices by annotation.
        nri=family.pod.sidecar is not None,
    )
    if not family.node.gke:
        return objects
    # GKE admits Pods of critical priority outside kube-system only where a quota speaks of them.
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "interlace-critical-pods", "namespace": plan.namespace},
        "spec": {
            "hard": {"pods": "100000"},
            "scopeSelector": {
                "matchExpressions": [
                    {
                        "scopeName": "PriorityClass",
                        "operator": "In",
                        "values": ["system-node-critical", "system-cluster-critical"],
                    }
                ]
            },
        },
    }
    place = 1 + next(index for index, each in enumerate(objects) if each["kind"] == "Namespace")
    return [*objects[:place], quota, *objects[place:]]
