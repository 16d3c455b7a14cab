"""Nodes and network objects of the cluster, as far as rules read them."""

from __future__ import annotations

import msgspec

from interlace.gke.observed.api import Api


class Condition(Api, frozen=True, kw_only=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class ObjectMeta(Api, frozen=True, kw_only=True):
    name: str = ""
    labels: dict[str, str] = {}
    creation_timestamp: str = ""


class ParametersRef(Api, frozen=True, kw_only=True):
    group: str = ""
    kind: str = ""
    name: str = ""


class NetworkSpec(Api, frozen=True, kw_only=True):
    type: str = ""
    parameters_ref: ParametersRef = ParametersRef()


class ObjectStatus(Api, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] = ()


class KubernetesNetwork(Api, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: NetworkSpec = NetworkSpec()
    status: ObjectStatus = ObjectStatus()


class PodRanges(Api, frozen=True, kw_only=True):
    range_names: tuple[str, ...] = ()


class ParamSetSpec(Api, frozen=True, kw_only=True):
    vpc: str = ""
    vpc_subnet: str = ""
    device_mode: str = ""
    pod_ipv4_ranges: PodRanges = msgspec.field(default=PodRanges(), name="podIPv4Ranges")
    network_attachment: str = ""


class ParamSet(Api, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ParamSetSpec = ParamSetSpec()
    status: ObjectStatus = ObjectStatus()


class NodeInfo(Api, frozen=True, kw_only=True):
    kubelet_version: str = ""


class NodeSpec(Api, frozen=True, kw_only=True):
    unschedulable: bool = False


class NodeStatus(Api, frozen=True, kw_only=True):
    allocatable: dict[str, str | int | float] = {}
    conditions: tuple[Condition, ...] = ()
    node_info: NodeInfo = NodeInfo()


class Node(Api, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Kubernetes(Api, frozen=True, kw_only=True):
    """Objects of the cluster; None: a kind that was not read."""

    networks: tuple[KubernetesNetwork, ...] | None = None
    gke_network_param_sets: tuple[ParamSet, ...] | None = None
    nodes: tuple[Node, ...] | None = None
