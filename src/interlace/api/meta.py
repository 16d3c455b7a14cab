"""What every Kubernetes object shares, and how a kind is addressed.

Each kind is a struct with a class attribute ``resource`` that says where it lives; the
client takes the class and needs nothing else. Names are camelCase on the wire.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import msgspec


# gc=False: decoded trees hold no cycles, and a collection that walks a large cache takes tenths of a second.
class Struct(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True):
    """Base of every wire struct: frozen, camelCase, absent fields left out, unknown fields skipped."""


class Resource(msgspec.Struct, frozen=True):
    """Where a kind lives: ``/apis/<group>/<version>/[namespaces/<ns>/]<plural>``."""

    group: str
    """API group; the core group is ``""``."""
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """``group/version``, or ``version`` alone in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """URL path of the collection, the object or its subresource; no namespace means all of them."""
        root = f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"
        parts = [root]
        if self.namespaced and namespace:
            parts.append(f"namespaces/{namespace}")
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


class OwnerReference(Struct, frozen=True):
    """``metav1.OwnerReference``."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Struct, frozen=True):
    """The part of ``metav1.ObjectMeta`` that we use. ``creation_timestamp`` stays an RFC 3339 string."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    owner_references: list[OwnerReference] = []


class Condition(Struct, frozen=True):
    """One observation about an object, as metav1.Condition; status is True, False or Unknown."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    observed_generation: int | None = None
    last_transition_time: str | None = None


class Object(Protocol):
    """What the client and the informer ask of a kind."""

    resource: ClassVar[Resource]

    @property
    def metadata(self) -> ObjectMeta: ...


class PartialObjectMetadata(Struct, frozen=True):
    """Any object reduced to its metadata; the server sends it when asked to."""

    resource: ClassVar[Resource] = Resource(
        "meta.k8s.io", "v1", "partialobjectmetadatas", "PartialObjectMetadata", True
    )
    metadata: ObjectMeta = ObjectMeta()


class ListMeta(Struct, frozen=True):
    """``metav1.ListMeta``."""

    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")
    remaining_item_count: int | None = None


class StatusDetails(Struct, frozen=True):
    """``metav1.StatusDetails``."""

    name: str = ""
    group: str = ""
    kind: str = ""
    retry_after_seconds: int = 0
    causes: list[dict[str, Any]] = []


class Status(Struct, frozen=True):
    """``metav1.Status``: what the server answers instead of an object."""

    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None
