"""Objects of kinds that we have no struct for: plain dicts, found by discovery, written by apply.

Invariant: an untyped object is the server's JSON, nothing added or lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

import msgspec

from interlace.api.meta import ObjectMeta, Resource
from interlace.api.resource import GROUP
from interlace.kube.client import Client
from interlace.kube.errors import ApiError, NotFound, UnknownKind
from interlace.kube.versions import NEWEST


class Untyped(dict[str, Any]):
    """A dict that the client and the informer can address; subclasses carry a ``resource``."""

    resource: ClassVar[Resource]

    @property
    def metadata(self) -> ObjectMeta:
        """The metadata as a struct, decoded at each call."""
        return msgspec.convert(self.get("metadata") or {}, ObjectMeta)


@cache
def untyped(resource: Resource) -> type[Untyped]:
    """A kind for the client whose objects are dicts; the same type for an equal resource."""
    return type(resource.kind, (Untyped,), {"resource": resource})


class _APIResource(msgspec.Struct, frozen=True):
    name: str
    kind: str
    namespaced: bool = False
    verbs: list[str] | None = None


class _APIResourceList(msgspec.Struct, frozen=True, rename="camel"):
    group_version: str = ""
    resources: list[_APIResource] | None = None


class _GroupVersion(msgspec.Struct, frozen=True, rename="camel"):
    group_version: str


class _Group(msgspec.Struct, frozen=True, rename="camel"):
    versions: list[_GroupVersion]
    preferred_version: _GroupVersion | None = None


class _Groups(msgspec.Struct, frozen=True):
    groups: list[_Group] | None = None


class Discovery:
    """What a server serves; asked once for each group and version, and again when a kind is missing."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, list[_APIResource]] = {}

    async def resolve(self, api_version: str, kind: str) -> Resource:
        """Where this kind lives; ``resource.k8s.io/v1`` is known on older servers too. Raises ``UnknownKind``."""
        found = self._find(api_version, kind)
        if found is None:  # perhaps its CRD is new
            try:
                await self._ask(api_version)
            except NotFound as error:
                if api_version == f"{GROUP}/{NEWEST}" and (spoken := await self._client.versions.choose()) != NEWEST:
                    return msgspec.structs.replace(await self.resolve(f"{GROUP}/{spoken}", kind), version=NEWEST)
                raise UnknownKind(f"{api_version} {kind}: the server does not serve {api_version}") from error
            found = self._find(api_version, kind)
        if found is None:
            raise UnknownKind(f"{api_version} {kind}: {api_version} has no such kind; install its CRD")
        return found

    async def listable(self) -> list[Resource]:
        """Every kind that can be listed, in the preferred version of its group."""
        versions = ["v1"]
        groups = msgspec.json.decode(await self._client.request("GET", "/apis"), type=_Groups).groups or []
        versions += [(group.preferred_version or group.versions[0]).group_version for group in groups]
        resources: list[Resource] = []
        for version in versions:
            try:
                await self._ask(version)
            except ApiError as error:
                if error.status not in (404, 503):  # an aggregated API that is away at present
                    raise
                continue
            resources += [
                _resource(version, entry)
                for entry in self._known[version]
                if "/" not in entry.name and "list" in (entry.verbs or [])
            ]
        return resources

    async def _ask(self, api_version: str) -> None:
        path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        answer = msgspec.json.decode(await self._client.request("GET", path), type=_APIResourceList)
        self._known[api_version] = answer.resources or []

    def _find(self, api_version: str, kind: str) -> Resource | None:
        for entry in self._known.get(api_version, []):
            if entry.kind == kind and "/" not in entry.name:
                return _resource(api_version, entry)
        return None


def _resource(api_version: str, entry: _APIResource) -> Resource:
    group, _, version = api_version.rpartition("/")
    return Resource(group, version, entry.name, entry.kind, entry.namespaced)


async def apply_manifest(
    client: Client,
    obj: Mapping[str, Any],
    *,
    manager: str,
    discovery: Discovery | None = None,
    namespace: str | None = None,
) -> Untyped:
    """Server-side apply of one manifest, whatever its kind; returns the object as the server has it.

    ``namespace`` is used where a namespaced manifest names none (else the client's). Pass one
    ``discovery`` for many manifests, or each costs a request more.
    """
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    metadata = obj.get("metadata") or {}
    name = metadata.get("name")
    if not (api_version and kind and name):
        raise ValueError(f"a manifest needs apiVersion, kind and metadata.name; this has {sorted(obj)}")
    resource = await (discovery or Discovery(client)).resolve(api_version, kind)
    where = (metadata.get("namespace") or namespace or client.namespace) if resource.namespaced else None
    return await client.apply(untyped(resource), obj, name=name, namespace=where, manager=manager)
