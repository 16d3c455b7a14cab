"""A Pod with what a kubelet reads of it: containers and volumes stay as they were written."""

from __future__ import annotations

from typing import Any, ClassVar

from interlace.api.core import Pod, PodResourceClaim, PodStatus
from interlace.api.meta import ObjectMeta, Resource, Struct


class BoundPodSpec(Struct, frozen=True):
    """``v1.PodSpec`` in part."""

    node_name: str = ""
    service_account_name: str = ""
    resource_claims: list[PodResourceClaim] = []
    containers: list[dict[str, Any]] = []
    volumes: list[dict[str, Any]] = []


class BoundPod(Struct, frozen=True):
    """``v1.Pod`` as the node sees it."""

    resource: ClassVar[Resource] = Pod.resource
    metadata: ObjectMeta = ObjectMeta()
    spec: BoundPodSpec = BoundPodSpec()
    status: PodStatus = PodStatus()
