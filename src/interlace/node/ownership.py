"""Whose the node's slice is: the Node's, so that it goes when the node goes for good.

The agent has no right to read Nodes. Its ServiceAccount token says which one it is bound to: since Kubernetes 1.32 the
claims of a token of a Pod hold name and uid of the Pod's node.
Invariant: nothing here decides about rights; the token is read, never trusted for more than an owner reference.
"""

from __future__ import annotations

import base64
import binascii
import contextlib

import msgspec

from interlace.api.meta import OwnerReference, Struct
from interlace.kube.config import Config

TRIAL = 60.0
"""Seconds that a slice stands unless its owner is gone; the garbage collector is much faster than this."""


class _Node(Struct, frozen=True):
    name: str = ""
    uid: str = ""


class _Private(Struct, frozen=True):
    node: _Node = _Node()


class _Claims(msgspec.Struct, frozen=True):
    private: _Private = msgspec.field(name="kubernetes.io", default=_Private())


def owner_in(token: str, *, node: str) -> OwnerReference | None:
    """The Node as owner, from the claims of a token; ``None`` where they do not name this node with its uid."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)), type=_Claims)
    except (msgspec.MsgspecError, binascii.Error, ValueError):
        return None
    found = claims.private.node
    if found.name != node or not found.uid:
        return None
    return OwnerReference(api_version="v1", kind="Node", name=node, uid=found.uid)


class Ownership:
    """The owner to write, as long as it lasts.

    A Node that was deleted and made again has another uid, and the token still says the old one: the garbage collector
    then deletes the slice as often as it is written. So an owner whose slice went twice, each time soon after it was
    written, is not written any more, until a newer token names another uid. Once alone says nothing: kubelet deletes
    the slices of its node when it starts.
    """

    def __init__(self, config: Config, *, node: str) -> None:
        self._config = config
        self._node = node
        self._written = ("", 0.0)
        self._lost = ""
        self._gone = ""

    def reference(self) -> OwnerReference | None:
        """The owner to write now; reads the token file."""
        token = self._config.token or ""
        if self._config.token_file is not None:
            with contextlib.suppress(OSError):  # being replaced at this moment
                token = self._config.token_file.read_text().strip()
        found = owner_in(token, node=self._node)
        return None if found is None or found.uid == self._gone else found

    def write(self, owner: OwnerReference | None, *, now: float) -> None:
        """A slice with this owner was written, at a time of a monotonic clock in seconds."""
        self._written = ("" if owner is None else owner.uid, now)

    def lose(self, *, now: float) -> None:
        """The slice was deleted, and not by us."""
        uid, since = self._written
        if not uid or now - since > TRIAL:
            return
        if uid == self._lost:
            self._gone = uid
        self._lost = uid
        self._written = ("", now)
