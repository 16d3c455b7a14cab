"""Objects as a server would send them, made short."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from interlace.sim.platform.devicekinds import DeviceClass, ResourceClaim, ResourceSlice
from interlace.sim.platform.kinds import Node, Pod

DRIVER = "compute-domain.nvidia.com"
CLASS = "channel"


def pod(name: str = "a", **fields: Any) -> Pod:
    """A pod; ``labels``, ``owner`` (uid of a controlling ReplicaSet), ``node``, ``phase``, ``ready`` and so on."""
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": fields.pop("namespace", "default"),
        "uid": fields.pop("uid", f"uid-{name}"),
        "labels": fields.pop("labels", {}),
        "annotations": fields.pop("annotations", {}),
        "resourceVersion": "1",
        "creationTimestamp": fields.pop("created", "2026-01-01T00:00:00Z"),
    }
    owner = fields.pop("owner", "")
    if owner:
        kind = fields.pop("owner_kind", "ReplicaSet")
        metadata["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": owner, "controller": True}
        ]
    if fields.pop("terminating", False):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:01Z"
    status: dict[str, Any] = {"phase": fields.pop("phase", "Pending")}
    if fields.pop("ready", False):
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    claims = fields.pop("claim_statuses", {})
    status["resourceClaimStatuses"] = [{"name": k, "resourceClaimName": v} for k, v in claims.items()]
    spec: dict[str, Any] = {"nodeName": fields.pop("node", ""), "containers": fields.pop("containers", [])}
    requests = fields.pop("requests", None)
    if requests:
        spec["containers"] = [{"resources": {"requests": requests}}]
    return msgspec.convert({"metadata": metadata, "spec": {**spec, **fields}, "status": status}, Pod)


def node(name: str = "n", *, labels: Mapping[str, str] | None = None, **fields: Any) -> Node:
    """A node with room for 110 pods and 4 GPUs, unless ``allocatable`` says otherwise."""
    allocatable = {"cpu": "8", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "4", **fields.pop("allocatable", {})}
    marks = {"kubernetes.io/hostname": name} if labels is None else dict(labels)
    conditions = fields.pop("conditions", [{"type": "Ready", "status": "True"}])
    return msgspec.convert(
        {
            "metadata": {"name": name, "uid": f"uid-{name}", "labels": marks, "resourceVersion": "1"},
            "spec": fields,
            "status": {"allocatable": allocatable, "conditions": conditions},
        },
        Node,
    )


def device_slice(
    node_name: str,
    devices: Sequence[str | Mapping[str, Any]] = ("channel-0",),
    *,
    pool: str = "",
    generation: int = 1,
    count: int = 1,
    name: str = "",
) -> ResourceSlice:
    """A node-local slice; a device is a name or a whole entry."""
    return msgspec.convert(
        {
            "metadata": {"name": name or f"{node_name}-{generation}", "uid": f"slice-{name or node_name}-{generation}"},
            "spec": {
                "driver": DRIVER,
                "nodeName": node_name,
                "pool": {"name": pool or node_name, "generation": generation, "resourceSliceCount": count},
                "devices": [{"name": entry} if isinstance(entry, str) else entry for entry in devices],
            },
        },
        ResourceSlice,
    )


def device_class(name: str = CLASS, *, selectors: Sequence[str] = (), parameters: bytes = b"") -> DeviceClass:
    """A class with CEL ``selectors`` and, if given, opaque ``parameters``."""
    config: list[Any] = []
    if parameters:
        config = [{"opaque": {"driver": DRIVER, "parameters": msgspec.Raw(parameters)}}]
    body = {
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": text}} for text in selectors], "config": config},
    }
    return msgspec.json.decode(msgspec.json.encode(body), type=DeviceClass)


def request(name: str = "channel", **fields: Any) -> dict[str, Any]:
    """One exact request; ``selectors`` are CEL texts."""
    selectors = [{"cel": {"expression": text}} for text in fields.pop("selectors", ())]
    return {"name": name, "exactly": {"deviceClassName": CLASS, "selectors": selectors, **fields}}


def claim(name: str = "c", **fields: Any) -> ResourceClaim:
    """A claim with ``requests``; ``owner`` is a pod, ``allocation`` a body, ``reserved`` are pods."""
    owner: Pod | None = fields.pop("owner", None)
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "resourceVersion": str(fields.pop("version", 1)),
        "finalizers": fields.pop("finalizers", []),
    }
    if owner is not None:
        metadata["ownerReferences"] = [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": owner.metadata.name,
                "uid": owner.metadata.uid,
                "controller": True,
            }
        ]
        metadata["annotations"] = {"resource.kubernetes.io/pod-claim-name": fields.pop("entry", "cd-0")}
    if fields.pop("terminating", False):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:01Z"
    status: dict[str, Any] = {
        "reservedFor": [
            {"resource": "pods", "name": user.metadata.name, "uid": user.metadata.uid}
            for user in fields.pop("reserved", ())
        ]
    }
    allocation = fields.pop("allocation", None)
    if allocation is not None:
        status["allocation"] = allocation
    devices = {"requests": fields.pop("requests", [request()]), **fields}
    return msgspec.json.decode(
        msgspec.json.encode({"metadata": metadata, "spec": {"devices": devices}, "status": status}), type=ResourceClaim
    )


def allocation(node_name: str = "n", device: str = "channel-0", *, admin: bool = False) -> dict[str, Any]:
    """An allocation of one device of a node's own pool."""
    result = {"request": "channel", "driver": DRIVER, "pool": node_name, "device": device}
    if admin:
        result["adminAccess"] = True  # type: ignore[assignment]
    here = {"key": "metadata.name", "operator": "In", "values": [node_name]}
    return {
        "devices": {"results": [result], "config": []},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
    }
