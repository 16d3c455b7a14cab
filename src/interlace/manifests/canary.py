"""A Pod that looks at what its container was given: the fabric of one node, without a GPU job.

Device injection fails open and a network may be missing without an error, so the only proof is a container that looks.
Invariant: the canary asks for nothing that it does not look at, prints one line a thing, and ends with 0 only if all
is there.
"""

from __future__ import annotations

import json
from typing import Any, Final

from interlace.api.computedomain import API_VERSION as DOMAIN_API
from interlace.fabric.environment import Interfaces
from interlace.fabric.family import Family, SoftwareTuple
from interlace.manifests.installer import LIBRARY

NAME: Final = "interlace-canary"
CHANNEL: Final = "interlace-canary-channel"
IMAGE: Final = "docker.io/library/busybox:1.37.0"
"""For families whose tuple has no image."""

_Object = dict[str, Any]

_LOOK: Final = """\
missing=0
look() { if eval "$2"; then echo "ok: $1"; else echo "missing: $1"; missing=$((missing + 1)); fi; }
"""


def canary(
    family: Family, *, software: SoftwareTuple, interfaces: Interfaces, networks: tuple[str, ...], namespace: str
) -> list[_Object]:
    """The canary and what it needs. ``networks``: names in the cluster, in the order of ``interfaces.data``."""
    meta = {"name": NAME, "namespace": namespace, "labels": {"app.kubernetes.io/name": NAME}}
    sidecar = family.pod.sidecar
    annotations: dict[str, str] = {}
    if family.pod.default_interface:
        rails = zip(interfaces.data, networks, strict=True)
        wanted = [(interfaces.control, "default"), *rails]
        annotations["networking.gke.io/default-interface"] = interfaces.control
        annotations["networking.gke.io/interfaces"] = json.dumps(
            [{"interfaceName": interface, "network": network} for interface, network in wanted]
        )
    if sidecar is not None:
        annotations["devices.gke.io/container.canary"] = "".join(f"- path: {path}\n" for path in sidecar.devices)
    folders = [volume for volume in family.pod.volumes if volume.host_path.startswith(("/home/", "/dev/"))]
    paths = {mount.volume: mount.path for mount in family.pod.mounts}
    container: _Object = {
        "name": "canary",
        "image": software.plugin or IMAGE,
        "command": ["/bin/sh", "-c", _script(family, interfaces)],
        "volumeMounts": [
            {"name": volume.name, "mountPath": paths[volume.name], "readOnly": True} for volume in folders
        ],
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
    }
    spec: _Object = {
        "restartPolicy": "OnFailure",
        "tolerations": [
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
            *(
                {"key": each.key, "operator": each.operator, "value": each.value, "effect": each.effect}
                for each in family.pod.tolerations
            ),
        ],
        "containers": [container],
        "volumes": [{"name": volume.name, "hostPath": {"path": volume.host_path}} for volume in folders],
    }
    if family.node.gke:
        spec["nodeSelector"] = {"node.kubernetes.io/instance-type": family.machines[0]}
    objects: list[_Object] = []
    if family.node.mnnvl:
        objects.append(
            {
                "apiVersion": DOMAIN_API,
                "kind": "ComputeDomain",
                "metadata": meta,
                "spec": {"numNodes": 1, "channel": {"resourceClaimTemplate": {"name": CHANNEL}}},
            }
        )
        container["resources"]["claims"] = [{"name": "channel"}]
        spec["resourceClaims"] = [{"name": "channel", "resourceClaimTemplateName": CHANNEL}]
    pod_meta = {**meta, "annotations": annotations} if annotations else meta
    return [*objects, {"apiVersion": "v1", "kind": "Pod", "metadata": pod_meta, "spec": spec}]


def _script(family: Family, interfaces: Interfaces) -> str:
    """One line a thing: interfaces, device nodes, folders, the IMEX channel."""
    lines = [_LOOK]
    if family.pod.default_interface:
        lines += [_line(f"interface {name}", f"[ -d /sys/class/net/{name} ]") for name in interfaces.data]
    if family.pod.sidecar is not None:
        lines += [_line(f"device {path}", f"[ -c {path} ]") for path in family.pod.sidecar.devices]
    if family.node.transport == "rdma":
        count = family.node.nics
        lines.append(
            _line(f"{count} RDMA devices", f'[ "$(ls -d /dev/infiniband/uverbs* 2> /dev/null | wc -l)" -ge {count} ]')
        )
    if family.pod.lib:
        lines.append(_line(f"plugin {family.pod.lib}/{LIBRARY}", f"[ -e {family.pod.lib}/{LIBRARY} ]"))
    if any(mount.path == "/dev/aperture_devices" for mount in family.pod.mounts):
        lines.append(_line("apertures of the NICs", '[ -n "$(ls /dev/aperture_devices)" ]'))
    if family.node.mnnvl:
        lines.append(_line("IMEX channel", "[ -c /dev/nvidia-caps-imex-channels/channel0 ]"))
    return "".join([*lines, 'exit "$((missing > 0))"\n'])


def _line(what: str, test: str) -> str:
    return f"look '{what}' '{test}'\n"
