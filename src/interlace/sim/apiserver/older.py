"""``resource.k8s.io`` in the older versions that clusters before 1.34 serve: views of objects that are stored in v1.

Invariant: what is stored is v1 alone. Bodies come in and answers go out in the version of the path, as
``interlace.kube.versions`` converts them; the contract suite compares both with the real server.
"""

from __future__ import annotations

import msgspec

from interlace.api.meta import Resource
from interlace.kube.versions import from_newest, to_newest
from interlace.sim.apiserver import binary, errors
from interlace.sim.apiserver.kinds import Kind
from interlace.sim.apiserver.objects import Json, decode, encode


class _Head(msgspec.Struct, rename="camel"):
    api_version: str = ""


def stored(body: bytes, kind: Kind) -> bytes:
    """The body of a request for ``kind`` in the version in which it is stored.

    Patches without ``apiVersion`` say nothing about their version and stay. Raises ApiFault 400 where the body is
    of another version than the path.
    """
    if kind.stored_as is None or not body.strip() or body.startswith(binary.MAGIC):
        return body
    try:
        version = msgspec.json.decode(body, type=_Head).api_version
    except msgspec.MsgspecError:
        return body  # no object at all: whoever reads it says so
    if version.startswith(f"{kind.group}/") and version != kind.api_version:
        raise errors.bad_request(
            f"the API version in the data ({version}) does not match the expected API version ({kind.api_version})"
        )
    return to_newest(body, asked=_resource(kind))


def shown(obj: Json, kind: Kind) -> Json:
    """A stored object in the version of ``kind``."""
    found: Json = decode(from_newest(encode(obj), asked=_resource(kind)))
    return found


def _resource(kind: Kind) -> Resource:
    return Resource(kind.group, kind.version, kind.plural, kind.kind, kind.namespaced)
