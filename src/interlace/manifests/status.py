"""Whether a cluster has what a hardware family needs: what people look at by hand, as a list of checks. Pure.

Invariant: what was not read is ``unknown``, never ``ok``; a check that is not ok names the objects and says what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

from interlace.fabric.family import Family
from interlace.fabric.minimum import judge
from interlace.fabric.version import VersionError, gke_version
from interlace.manifests.components import AGENT, CONTROLLER, IMEX_HOST

State = Literal["ok", "bad", "unknown"]
Objects = list[dict[str, Any]]

INJECTOR: Final = {"name": "device-injector"}
"""Labels of Google's device injector, in kube-system."""
OURS: Final = {"app.kubernetes.io/name": "interlace"}
NRI: Final = "/var/run/nri"
_NAMED: Final = 3


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What was read; None: it may not be read. A kind that the cluster does not have has no objects."""

    nodes: Objects | None
    installers: Objects | None
    """Pods with the installer's label."""
    injectors: Objects | None
    components: Objects | None
    """Pods of our own components."""
    networks: Objects | None = None
    parameters: Objects | None = None


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing: ``have`` of ``want`` are as they should be."""

    name: str
    state: State
    have: int
    want: int
    says: str
    remedy: str = ""


def checks(family: Family, seen: Seen, *, names: Mapping[str, str] | None = None) -> tuple[Check, ...]:
    """All checks of a family, in the order in which things have to be there."""
    wanted = [(names or {}).get(network.name, network.name) for network in family.networks]
    found = [_nodes(family, seen.nodes)]
    nodes = _names(seen.nodes or [])
    if seen.nodes:
        found += _version(family, seen.nodes)
        found.append(_gpus(family, seen.nodes))
    if wanted:
        found.append(_ready("networks", "Network", wanted, seen.networks))
        found.append(_ready("parameters", "GKENetworkParamSet", wanted, seen.parameters))
        if seen.nodes:
            gpu = [(names or {}).get(network.name, network.name) for network in family.gpu_networks]
            found.append(_nics(gpu, seen.nodes))
    if family.installer is not None:
        found.append(_installer(family, seen.installers, nodes))
    if family.pod.sidecar is not None:
        found.append(_injector(seen, nodes))
    if family.node.mnnvl:
        ours = seen.components
        found += [
            _everywhere("agent", _component(ours, AGENT), nodes, remedy="install it with `interlace manifests`"),
            _everywhere(
                "imex-host", _component(ours, IMEX_HOST), nodes, remedy="install it with `interlace manifests`"
            ),
            _controller(_component(ours, CONTROLLER)),
        ]
    return tuple(found)


def selector(family: Family) -> str:
    """Label selector of the family's nodes."""
    if family.node.gke:
        return f"node.kubernetes.io/instance-type in ({','.join(family.machines)})"
    return "nvidia.com/gpu.clique"


def _nodes(family: Family, nodes: Objects | None) -> Check:
    if nodes is None:
        return _unread("nodes", "nodes")
    bad = [_name(node) for node in nodes if not _true(node, "Ready")]
    have = len(nodes) - len(bad)
    if not nodes:
        what = " or ".join(family.machines) if family.node.gke else "label nvidia.com/gpu.clique"
        return Check(
            name="nodes",
            state="bad",
            have=0,
            want=1,
            says=f"no node with {what}",
            remedy="make the node pool, or wait until it has nodes",
        )
    return _count("nodes", have, len(nodes), bad, "not Ready", "see `kubectl describe node`")


def _version(family: Family, nodes: Objects) -> list[Check]:
    """Nodes of GKE tell its version; others are not judged."""
    bad, known = [], 0
    for node in nodes:
        text = str(((node.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion", ""))
        try:
            verdict = judge(family, gke_version(text))
        except VersionError:
            continue
        known += 1
        if not verdict.ok:
            bad.append(f"{_name(node)}: {verdict.why}")
    if not known or not family.node.gke:
        return []
    return [_count("version", known - len(bad), known, bad, "", "upgrade the node pool", good="new enough")]


def _gpus(family: Family, nodes: Objects) -> Check:
    want = str(family.node.gpus)
    by_claim = [node for node in nodes if _labels(node).get("gke-no-default-nvidia-gpu-device-plugin") == "true"]
    counted = [node for node in nodes if node not in by_claim]
    bad = [
        f"{_name(node)} has {_allocatable(node).get('nvidia.com/gpu', '0')}"
        for node in counted
        if _allocatable(node).get("nvidia.com/gpu") != want
    ]
    if by_claim and not bad:
        says = f"{len(by_claim)} nodes give GPUs by claim, the others {want} each"
        return Check(name="gpus", state="ok", have=len(nodes), want=len(nodes), says=says)
    good = f"allocatable nvidia.com/gpu is {want} on each node"
    return _count(
        "gpus",
        len(nodes) - len(bad),
        len(nodes),
        bad,
        f"and {want} are expected",
        "wait for the driver installer, and switch MIG, time-sharing and MPS off",
        good=good,
    )


def _ready(name: str, kind: str, wanted: list[str], objects: Objects | None) -> Check:
    if objects is None:
        return _unread(name, f"{kind} objects")
    by_name = {_name(each): each for each in objects}
    bad = []
    for each in wanted:
        found = by_name.get(each)
        if found is None:
            bad.append(f"{each} is missing")
        elif not _true(found, "Ready"):
            bad.append(f"{each} is not Ready{_reason(found, 'Ready')}")
    remedy = (
        "apply `interlace manifests --family … --part networks` and look at the conditions of the objects; a cluster "
        "that was made without multi-networking has no such kind"
    )
    return _count(name, len(wanted) - len(bad), len(wanted), bad, "", remedy, good=f"every {kind} is Ready")


def _nics(networks: list[str], nodes: Objects) -> Check:
    bad = []
    for node in nodes:
        have = _allocatable(node)
        missing = [
            each
            for each in networks
            if not {f"networking.gke.io.networks/{each}", f"networking.gke.io.networks/{each}.IP"} & set(have)
        ]
        if missing:
            bad.append(f"{_name(node)} lacks {_some(missing)}")
    return _count(
        "nics",
        len(nodes) - len(bad),
        len(nodes),
        bad,
        "",
        "the node pool needs an --additional-node-network for each of them, in order",
        good=f"each node offers {len(networks)} networks",
    )


def _installer(family: Family, pods: Objects | None, nodes: list[str]) -> Check:
    remedy = "look at the init containers' logs of the installer Pods in kube-system"
    found = _everywhere("installer", pods, nodes, remedy=remedy)
    if found.state != "ok":
        return found
    images = {image for pod in pods or [] for image in _init_images(pod) if "nccl" in image}
    known = {software.plugin: software.id for software in family.tuples}
    releases = sorted(known.get(image, image) for image in images)
    if len(releases) > 1:
        return msgspec.structs.replace(
            found,
            state="bad",
            says=f"nodes have different releases: {', '.join(releases)}",
            remedy="finish the roll-out of the installer before a job starts: its Pods must all have one release",
        )
    return msgspec.structs.replace(found, says=f"{found.says}, {releases[0]}" if releases else found.says)


def _injector(seen: Seen, nodes: list[str]) -> Check:
    """Google's injector, or our agent where it mounts the NRI socket."""
    if seen.injectors is None and seen.components is None:
        return _unread("injector", "Pods of the device injector")
    ours = [pod for pod in _component(seen.components, AGENT) or [] if _mounts(pod, NRI)]
    remedy = (
        "install a device injector, without one the sidecar gets no GPU devices; where GKE brings its own, the canary "
        "Pod tells whether it works"
    )
    return _everywhere("injector", [*(seen.injectors or []), *ours], nodes, remedy=remedy)


def _controller(pods: Objects | None) -> Check:
    if pods is None:
        return _unread("controller", "Pods of the controller")
    ready = [pod for pod in pods if _true(pod, "Ready")]
    if ready:
        return Check(name="controller", state="ok", have=len(ready), want=max(1, len(pods)), says=f"{len(ready)} Ready")
    return Check(
        name="controller",
        state="bad",
        have=0,
        want=1,
        says="none is Ready",
        remedy="install it with `interlace manifests`",
    )


def _everywhere(name: str, pods: Objects | None, nodes: list[str], *, remedy: str) -> Check:
    """One Ready Pod on each node."""
    if pods is None:
        return _unread(name, f"Pods of the {name}")
    on = {pod["spec"].get("nodeName"): pod for pod in pods if not _true(pod, "Ready")}
    on |= {pod["spec"].get("nodeName"): pod for pod in pods if _true(pod, "Ready")}
    bad = []
    for node in nodes:
        pod = on.get(node)
        if pod is None:
            bad.append(f"{node} has none")
        elif not _true(pod, "Ready"):
            bad.append(f"{node}: {_waits(pod)}")
    return _count(name, len(nodes) - len(bad), len(nodes), bad, "", remedy, good="Ready on each node")


def _count(name: str, have: int, want: int, bad: list[str], why: str, remedy: str, *, good: str = "all Ready") -> Check:
    if bad:
        says = f"{_some(bad)}{f' {why}' if why else ''}"
        return Check(name=name, state="bad", have=have, want=want, says=says, remedy=remedy)
    return Check(name=name, state="ok", have=have, want=want, says=good)


def _unread(name: str, what: str) -> Check:
    return Check(
        name=name,
        state="unknown",
        have=0,
        want=0,
        says=f"{what} cannot be read",
        remedy="ask for the right to list them",
    )


def _some(entries: list[str]) -> str:
    more = len(entries) - _NAMED
    return ", ".join(entries[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _component(pods: Objects | None, component: str) -> Objects | None:
    if pods is None:
        return None
    return [pod for pod in pods if _labels(pod).get("app.kubernetes.io/component") == component]


def _waits(pod: dict[str, Any]) -> str:
    """Why a Pod is not Ready, in its containers' words."""
    status = pod.get("status") or {}
    for each in (*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])):
        state = each.get("state") or {}
        waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
        if waiting.get("reason") and waiting["reason"] != "PodInitializing":
            return f"{each['name']} waits: {waiting['reason']}"
        if ended and ended.get("exitCode"):
            return f"{each['name']} ended with {ended['exitCode']}"
        if "running" in state and each in (status.get("initContainerStatuses") or []):
            return f"{each['name']} runs"
    return str(status.get("phase") or "not started").lower()


def _init_images(pod: dict[str, Any]) -> Iterable[str]:
    return (str(each.get("image", "")) for each in pod["spec"].get("initContainers") or [])


def _mounts(pod: dict[str, Any], path: str) -> bool:
    volumes = pod["spec"].get("volumes") or []
    return any(str((volume.get("hostPath") or {}).get("path", "")).startswith(path) for volume in volumes)


def _true(obj: dict[str, Any], condition: str) -> bool:
    return any(each.get("type") == condition and each.get("status") == "True" for each in _conditions(obj))


def _reason(obj: dict[str, Any], condition: str) -> str:
    return next(
        (f" ({each['reason']})" for each in _conditions(obj) if each.get("type") == condition and each.get("reason")),
        "",
    )


def _conditions(obj: dict[str, Any]) -> Objects:
    return (obj.get("status") or {}).get("conditions") or []


def _allocatable(node: dict[str, Any]) -> dict[str, str]:
    return (node.get("status") or {}).get("allocatable") or {}


def _labels(obj: dict[str, Any]) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def _name(obj: dict[str, Any]) -> str:
    return str(obj["metadata"]["name"])


def _names(objects: Objects) -> list[str]:
    return [_name(each) for each in objects]
