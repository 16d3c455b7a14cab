"""CDI specs: how the runtime learns which channel device nodes a container gets.

One file a claim, named and shaped as the known driver does it. The spec's annotations name the
claim, so that a lost checkpoint can be rebuilt from the folder. The runtime makes the device
nodes from their numbers; they need not exist on the host.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from interlace.api.computedomain import SHARED
from interlace.node.demand import ClaimRef, DeviceRef
from interlace.node.files import write_whole

VENDOR = "k8s.compute-domain.nvidia.com"
KIND = f"{VENDOR}/claim"
CHANNEL_FOLDER = "/dev/nvidia-caps-imex-channels"
SPEC_PREFIX = f"{VENDOR}-claim_"
_NOTE = "interlace.dev/prepared-claim"


class PreparedClaim(msgspec.Struct, frozen=True, kw_only=True):
    """What this node prepared, or began to prepare, for a claim; the same in checkpoint and CDI annotation."""

    claim: ClaimRef
    domain: str
    clique: str
    index: int
    """Index of this node in the domain's map; -1 without a fabric."""
    devices: tuple[DeviceRef, ...]
    injected: bool
    """Whether a CDI spec belongs to it: not on a node without a fabric."""
    completed: bool
    """False: Prepare began and did not end."""
    since: str = ""
    """When it was begun, or completed, RFC 3339."""
    imex: str = ""
    """The IMEX domain that serves it; empty: that of the domain alone."""
    channel: int = 0

    @property
    def imex_domain(self) -> str:
        """What the imex-host calls the IMEX domain."""
        return self.imex or self.domain

    @property
    def holder(self) -> str:
        """Who has the node: the domain alone, or all that share nodes."""
        return SHARED if self.imex else self.domain

    inherited: bool = False
    """Prepared by the known driver, before this node was taken over: its IMEX daemon is not ours."""


def device_name(claim: ClaimRef, device: DeviceRef) -> str:
    """Name of the CDI device."""
    return f"{claim.uid}-{device.device}"


def qualified_ids(prepared: PreparedClaim, device: DeviceRef) -> list[str]:
    """The CDI ids that kubelet hands to the runtime."""
    return [f"{KIND}={device_name(prepared.claim, device)}"] if prepared.injected else []


def spec_path(root: Path, uid: str) -> Path:
    """The file of a claim."""
    return root / f"{SPEC_PREFIX}{uid}.json"


def spec(prepared: PreparedClaim, *, major: int, channels: Iterable[int]) -> dict[str, Any]:
    """The CDI spec: the device nodes of the numbered channels, for each device of the claim."""
    nodes = [
        {
            "path": f"{CHANNEL_FOLDER}/channel{number}",
            "type": "c",
            "major": major,
            "minor": number,
            "fileMode": 0o666,
            "permissions": "rw",
        }
        for number in channels
    ]
    return {
        "cdiVersion": "0.6.0",
        "kind": KIND,
        "annotations": {_NOTE: msgspec.json.encode(prepared).decode()},
        "devices": [
            {"name": device_name(prepared.claim, device), "containerEdits": {"deviceNodes": nodes}}
            for device in prepared.devices
        ],
    }


def write_spec(root: Path, prepared: PreparedClaim, *, major: int, channels: Iterable[int]) -> None:
    """Write the file. Blocks, briefly; raises ``OSError``. Not synced: the folder is empty after a reboot anyway."""
    root.mkdir(parents=True, exist_ok=True)
    content = msgspec.json.encode(spec(prepared, major=major, channels=channels))
    write_whole(spec_path(root, prepared.claim.uid), content, sync=False)


class _SpecDevice(msgspec.Struct, frozen=True):
    name: str


class _Spec(msgspec.Struct, frozen=True):
    devices: list[_SpecDevice] = []


def is_whole(root: Path, prepared: PreparedClaim) -> bool:
    """Whether the spec of the claim can be read and has all its devices; the known driver's only has to be there."""
    ours, other = _paths(root, prepared.claim.uid)
    try:
        found = msgspec.json.decode(ours.read_bytes(), type=_Spec)
    except FileNotFoundError:
        return other.exists()
    except (OSError, ValueError):
        return False
    return {device_name(prepared.claim, device) for device in prepared.devices} <= {item.name for item in found.devices}


def has_spec(root: Path, uid: str) -> bool:
    """Whether a spec of the claim is there, ours or the known driver's."""
    return any(path.exists() for path in _paths(root, uid))


def remove_spec(root: Path, uid: str) -> None:
    """Remove the file if it is there. Raises ``OSError``."""
    for path in _paths(root, uid):
        path.unlink(missing_ok=True)


def _paths(root: Path, uid: str) -> tuple[Path, Path]:
    """Ours, and the one that the known driver's CDI library writes."""
    return spec_path(root, uid), root / f"{SPEC_PREFIX}{uid}.yaml"


def found_specs(root: Path) -> Iterator[tuple[str, PreparedClaim | None]]:
    """Each claim spec in the folder, as uid and content; None where the file does not say whose it is."""
    for path in sorted(root.glob(f"{SPEC_PREFIX}*.json")):
        uid = path.name.removeprefix(SPEC_PREFIX).removesuffix(".json")
        try:
            note = msgspec.json.decode(path.read_bytes())["annotations"][_NOTE]
            prepared = msgspec.json.decode(note, type=PreparedClaim)
        except (OSError, ValueError, LookupError, TypeError):
            yield uid, None
            continue
        yield uid, prepared if prepared.claim.uid == uid else None
