"""Malformed and hostile objects: random changes of good ones, and everything of ours that reads them.

Pure, and the same for the same seed. Invariant of what is tested: a reader gives a value or an error of its own tree,
whatever the bytes are.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from interlace.api.computedomain import (
    API_VERSION,
    CHANNEL_CLASS,
    DOMAIN_LABEL,
    DRIVER,
    ComputeDomain,
    ComputeDomainClique,
)
from interlace.api.core import Event, Lease, Node, Pod
from interlace.api.meta import Object
from interlace.api.resource import ResourceClaim, ResourceClaimTemplate, ResourceSlice
from interlace.imex import order
from interlace.kube.codec import Codec
from interlace.kube.errors import KubeError
from interlace.node import checkpoint, opaque
from interlace.node.errors import AgentError

HUGE: Final = 1 << 20
"""Bytes of a huge field."""
_UID: Final = "6a0f2c0e-0000-4000-8000-00000000abcd"
_OPAQUE: Final = {
    "apiVersion": API_VERSION,
    "kind": "ComputeDomainChannelConfig",
    "domainID": _UID,
    "allocationMode": "Single",
}
_REQUEST: Final = {"name": "channel", "exactly": {"deviceClassName": CHANNEL_CLASS}}
_CONFIG: Final = {"requests": ["channel"], "opaque": {"driver": DRIVER, "parameters": _OPAQUE}}
_DEVICE: Final = {"request": "channel", "driver": DRIVER, "pool": "tray-00", "device": "channel-0"}
_CONDITION: Final = {
    "type": "Ready",
    "status": "True",
    "reason": "Prepared",
    "message": "ready",
    "lastTransitionTime": "2026-11-30T12:00:00Z",
}


def _meta(name: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": "team",
        "uid": _UID,
        "resourceVersion": "7",
        "labels": {DOMAIN_LABEL: _UID},
    } | more


SAMPLES: Final[dict[type[Object], dict[str, Any]]] = {
    ComputeDomain: {
        "metadata": _meta("job", finalizers=["resource.nvidia.com/computeDomain"], generation=1),
        "spec": {
            "numNodes": 0,
            "channel": {"resourceClaimTemplate": {"name": "hostile-channel"}, "allocationMode": "Single"},
            "isolation": "Domain",
            "waitForPeers": {"nodes": 2, "timeoutSeconds": 60},
        },
        "status": {
            "status": "Ready",
            "nodes": [{"name": "tray-00", "ipAddress": "10.0.0.1", "cliqueID": "a.1", "index": 0, "status": "Ready"}],
            "readyNodes": "1/1",
            "conditions": [_CONDITION],
        },
    },
    ComputeDomainClique: {
        "metadata": _meta(f"{_UID}.a.1"),
        "daemons": [{"nodeName": "tray-00", "ipAddress": "10.0.0.1", "cliqueID": "a.1", "index": 0, "status": "Ready"}],
        "channels": [{"domain": _UID, "channel": 1}],
        "waitForPeers": {"nodes": 2},
    },
    ResourceClaim: {
        "metadata": _meta("job-1-channel", annotations={"resource.kubernetes.io/pod-claim-name": "channel"}),
        "spec": {"devices": {"requests": [_REQUEST], "config": [_CONFIG]}},
        "status": {
            "allocation": {"devices": {"results": [_DEVICE], "config": [_CONFIG | {"source": "FromClaim"}]}},
            "reservedFor": [{"resource": "pods", "name": "job-1", "uid": _UID}],
            "devices": [
                {
                    "driver": DRIVER,
                    "pool": "tray-00",
                    "device": "channel-0",
                    "conditions": [_CONDITION],
                    "data": {"a": 1},
                }
            ],
        },
    },
    ResourceClaimTemplate: {
        "metadata": _meta("job-channel"),
        "spec": {
            "metadata": {"labels": {DOMAIN_LABEL: _UID}},
            "spec": {"devices": {"requests": [_REQUEST], "config": [_CONFIG]}},
        },
    },
    ResourceSlice: {
        "metadata": {"name": "tray-00-slice", "uid": _UID, "resourceVersion": "7"},
        "spec": {
            "driver": DRIVER,
            "nodeName": "tray-00",
            "pool": {"name": "tray-00", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "channel-0", "attributes": {"id": {"int": 0}, "domain": {"string": ""}}}],
        },
    },
    Pod: {
        "metadata": _meta("job-1", ownerReferences=[{"apiVersion": "v1", "kind": "Job", "name": "job", "uid": _UID}]),
        "spec": {"nodeName": "tray-00", "resourceClaims": [{"name": "c", "resourceClaimName": "job-1-channel"}]},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]},
    },
    Node: {
        "metadata": {"name": "tray-00", "uid": _UID, "labels": {"nvidia.com/gpu.clique": "a.1"}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    },
    Lease: {"metadata": _meta("lease"), "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}},
    Event: {
        "metadata": _meta("event"),
        "involvedObject": {"kind": "Pod", "name": "job-1", "namespace": "team", "uid": _UID},
        "reason": "Started",
        "message": "it started",
        "count": 1,
        "type": "Normal",
    },
}
"""One good object of each kind that we read."""
TEXTS: Final = (
    "",
    "Everything",
    "\u202eright to left",
    "\U0001f9ea\u200d\U0001f52c",
    "a\u0000b",
    "\ud7ff\ue000",
    "../../etc/passwd",
    "x" * 300,
    "NaN",
    "-1",
    "\n\r\t\x1b[31m",
    "null",
)


def change(value: Any, chance: random.Random) -> Any:
    """The same value with one to four places of it replaced, removed, doubled or moved elsewhere."""
    changed: Any = msgspec.json.decode(msgspec.json.encode(value))
    for _ in range(chance.randint(1, 4)):
        places = list(_places(changed))
        if not places:
            break
        holder, key = chance.choice(places)
        match chance.randrange(6):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1 if isinstance(holder, list):
                holder.extend(holder[:1] * chance.randint(1, 3))
            case 2:
                other, there = chance.choice(places)
                if (isinstance(other, dict) and there in other) or (isinstance(other, list) and there < len(other)):
                    holder[key] = msgspec.json.decode(msgspec.json.encode(other[there]))
            case 3 if isinstance(holder, dict):
                holder[chance.choice(TEXTS)] = anything(chance)
            case _:
                holder[key] = anything(chance)
    return changed


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        yield value, key
        yield from _places(inner)


def anything(chance: random.Random) -> Any:
    """Any JSON value; one in 500 is huge."""
    if not chance.randrange(500):
        return "x" * HUGE
    return chance.choice(
        (
            None,
            True,
            0,
            -1,
            2**31,
            2**63,
            2**70,
            1e308,
            0.5,
            [],
            {},
            [[[]]],
            {"": {"": None}},
            ["x"] * 100,
            chance.choice(TEXTS),
            chance.choice(TEXTS),
        )
    )


def damage(raw: bytes, chance: random.Random) -> bytes:
    """Bytes of an object, one time in four no longer JSON: cut, flipped, wrapped, not UTF-8, very deep."""
    match chance.randrange(20):
        case 0:
            return raw[: chance.randrange(len(raw) + 1)]
        case 1:
            place = chance.randrange(len(raw))
            return raw[:place] + bytes([chance.randrange(256)]) + raw[place + 1 :]
        case 2:
            return b"[" * chance.randint(1, 3000) + raw
        case 3:
            return raw.replace(b'"', b'"\xff\xfe', chance.randint(1, 3))
        case 4:
            return raw.replace(b'"', b'"\\ud800', chance.randint(1, 3))
        case _:
            return raw


def _kind_readers() -> Iterator[tuple[str, Any, Callable[[bytes], object], tuple[type[Exception], ...]]]:
    for kind, sample in SAMPLES.items():
        codec: Codec[Any] = Codec(kind)
        name = kind.resource.kind

        def whole(raw: bytes, codec: Codec[Any] = codec) -> object:
            return codec.object(raw, path="/x")

        def page(raw: bytes, codec: Codec[Any] = codec) -> object:
            return codec.page(b'{"metadata":{"resourceVersion":"7"},"items":[' + raw + b"]}", path="/x")

        def event(raw: bytes, codec: Codec[Any] = codec) -> object:
            return codec.event(b'{"type":"MODIFIED","object":' + raw + b"}", path="/x")

        yield name, sample, whole, (KubeError,)
        yield f"{name} in a list", sample, page, (KubeError,)
        yield f"{name} in a watch", sample, event, (KubeError,)


def readers() -> list[tuple[str, Any, Callable[[bytes], object], tuple[type[Exception], ...]]]:
    """Name, good value, reader and the errors that it may raise, for everything that reads bytes of others."""
    return [
        *_kind_readers(),
        ("opaque parameters", _OPAQUE, opaque.decode, (AgentError,)),
        (
            "order",
            {"kind": "Order", "domain": _UID, "index": 0, "names": ["a", "b"], "addresses": ["10.0.0.1", "10.0.0.2"]},
            order.decode,
            (order.ProtocolError,),
        ),
        (
            "checkpoint",
            {"version": 1, "sha256": "0" * 64, "body": {"boot_id": "b", "claims": []}},
            checkpoint.decode,
            (checkpoint.Damaged,),
        ),
    ]


def read_all(*, each: int, seed: int = 7) -> list[str]:
    """Give ``each`` random objects to every reader; a sentence for each error of another kind (a defect)."""
    found: list[str] = []
    for name, sample, read, allowed in readers():
        chance = random.Random(f"{seed} {name}")
        for _ in range(each):
            raw = damage(msgspec.json.encode(change(sample, chance)), chance)
            try:
                read(raw)
            except allowed:
                continue
            except Exception as error:  # noqa: BLE001  that is what is looked for
                found.append(f"{name}: {type(error).__name__}: {error} from {raw[:300]!r}")
    return found
