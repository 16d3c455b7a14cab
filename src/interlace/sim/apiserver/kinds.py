"""Which kinds the server serves, and the rules in which kinds differ.

Built-in kinds are a table; custom ones are made from their definitions. ``Kinds`` finds a kind by the parts of a
path and lists them for discovery.

Invariant: two kinds with the same ``storage`` key are views of the same objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from interlace.api.resource import GROUP
from interlace.kube.versions import NEWEST
from interlace.sim.apiserver.schema import CrdSchema
from interlace.sim.apiserver.shapes import Shape, builtin, from_schema

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One served resource."""

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    storage: str
    """Key of the collection in the store: ``plural.group``."""
    verbs: tuple[str, ...] = ALL_VERBS
    generation: str = ""
    """What raises ``metadata.generation``: ``spec``, ``all`` (everything but metadata and status) or nothing."""
    unconditional_update: bool = True
    """PUT without a resourceVersion is allowed."""
    create_on_update: bool = False
    """PUT to a name that does not exist creates it."""
    returns_deleted: bool = False
    """DELETE answers the object instead of a Status."""
    resets_status: bool = False
    """Status is written through its subresource only."""
    shape: Shape = field(repr=False, compare=False)
    schema: CrdSchema | None = field(default=None, repr=False, compare=False)
    """Set for custom kinds."""
    definition: dict[str, Any] | None = field(default=None, repr=False, compare=False)
    stored_as: Kind | None = field(default=None, repr=False, compare=False)
    """The version in which objects are stored, if this is an older one of a built-in kind."""
    list_kind: str = ""

    @property
    def api_version(self) -> str:
        """``group/version`` or ``version``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def custom(self) -> bool:
        """Whether a CustomResourceDefinition made it."""
        return self.schema is not None

    @cached_property
    def columns(self) -> tuple[dict[str, Any], ...]:
        """Printer columns of a custom kind."""
        return tuple(self.schema.printer_columns) if self.schema is not None else ()


@dataclass(frozen=True, slots=True)
class _Row:
    api: str
    kind: str
    plural: str
    scope: str = "ns"
    short: str = ""
    sub: str = ""
    generation: str = ""
    flags: str = ""
    categories: str = ""


_ROWS = (
    _Row("v1", "ConfigMap", "configmaps", short="cm"),
    _Row("v1", "Event", "events", short="ev", flags="create"),
    _Row("v1", "Namespace", "namespaces", "cluster", short="ns", sub="finalize status", flags="reset"),
    _Row("v1", "Node", "nodes", "cluster", short="no", sub="status", flags="reset"),
    _Row(
        "v1", "Pod", "pods", short="po", sub="binding eviction log status", generation="spec", flags="reset returned",
        categories="all",
    ),
    _Row("v1", "Secret", "secrets"),
    _Row("v1", "Service", "services", short="svc", sub="status", flags="reset returned create", categories="all"),
    _Row("v1", "ServiceAccount", "serviceaccounts", short="sa", sub="token", flags="returned"),
    _Row("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations",
         "cluster", generation="all", flags="conditional", categories="api-extensions"),
    _Row("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations",
         "cluster", generation="all", flags="conditional", categories="api-extensions"),
    _Row("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", "cluster",
         short="crd crds", sub="status", generation="spec", flags="reset conditional", categories="api-extensions"),
    _Row("apps/v1", "ControllerRevision", "controllerrevisions"),
    _Row("apps/v1", "DaemonSet", "daemonsets", short="ds", sub="status", generation="spec", flags="reset",
         categories="all"),
    _Row("apps/v1", "Deployment", "deployments", short="deploy", sub="scale status", generation="spec",
         flags="reset", categories="all"),
    _Row("apps/v1", "ReplicaSet", "replicasets", short="rs", sub="scale status", generation="spec", flags="reset",
         categories="all"),
    _Row("apps/v1", "StatefulSet", "statefulsets", short="sts", sub="scale status", generation="spec", flags="reset",
         categories="all"),
    _Row("batch/v1", "Job", "jobs", sub="status", generation="spec", flags="reset", categories="all"),
    _Row("coordination.k8s.io/v1", "Lease", "leases", flags="conditional create"),
    _Row("events.k8s.io/v1", "Event", "events", short="ev", flags="create"),
    _Row("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", short="netpol", generation="spec"),
    _Row("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", short="pdb", sub="status", generation="spec",
         flags="reset conditional"),
    _Row("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", "cluster", flags="create"),
    _Row("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", "cluster", flags="create"),
    _Row("rbac.authorization.k8s.io/v1", "Role", "roles", flags="create"),
    _Row("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", flags="create"),
    _Row("resource.k8s.io/v1", "DeviceClass", "deviceclasses", "cluster", generation="spec"),
    _Row("resource.k8s.io/v1", "ResourceClaim", "resourceclaims", sub="status", flags="reset"),
    _Row("resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates"),
    _Row("resource.k8s.io/v1", "ResourceSlice", "resourceslices", "cluster", generation="spec"),
    _Row("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", "cluster", short="pc", generation="all"),
    _Row("authentication.k8s.io/v1", "SelfSubjectReview", "selfsubjectreviews", "cluster", flags="review"),
    _Row("authentication.k8s.io/v1", "TokenReview", "tokenreviews", "cluster", flags="review"),
    _Row("authorization.k8s.io/v1", "LocalSubjectAccessReview", "localsubjectaccessreviews", flags="review"),
    _Row("authorization.k8s.io/v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", "cluster", flags="review"),
    _Row("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews", "cluster", flags="review"),
)  # fmt: skip


def _kind(row: _Row) -> Kind:
    group, _, version = row.api.rpartition("/")
    flags = row.flags.split()
    storage_group = "" if (group, row.plural) == ("events.k8s.io", "events") else group
    return Kind(
        group=group,
        version=version,
        plural=row.plural,
        singular=row.kind.lower(),
        kind=row.kind,
        list_kind=f"{row.kind}List",
        namespaced=row.scope == "ns",
        short_names=tuple(row.short.split()),
        categories=tuple(row.categories.split()),
        subresources=tuple(row.sub.split()),
        storage=f"{row.plural}.{storage_group}",
        verbs=("create",) if "review" in flags else ALL_VERBS,
        generation=row.generation,
        unconditional_update="conditional" not in flags,
        create_on_update="create" in flags,
        returns_deleted="returned" in flags,
        resets_status="reset" in flags,
        shape=builtin(row.api, row.kind),
    )


def custom_kinds(definition: dict[str, Any]) -> Iterator[Kind]:
    """The kinds that a CustomResourceDefinition serves, one a version."""
    spec = definition["spec"]
    names = spec["names"]
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        subresources = version.get("subresources") or {}
        yield Kind(
            group=spec["group"],
            version=version["name"],
            plural=names["plural"],
            singular=names.get("singular") or names["kind"].lower(),
            kind=names["kind"],
            list_kind=names.get("listKind") or f"{names['kind']}List",
            namespaced=spec["scope"] == "Namespaced",
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=tuple(name for name in ("scale", "status") if name in subresources),
            storage=f"{names['plural']}.{spec['group']}",
            generation="all",
            unconditional_update=False,
            resets_status="status" in subresources,
            shape=from_schema((version.get("schema") or {}).get("openAPIV3Schema") or {"type": "object"}),
            schema=CrdSchema(definition, version["name"]),
            definition=definition,
        )


class Kinds:
    """The kinds served now."""

    def __init__(self, *, resource_version: str = NEWEST) -> None:
        """``resource_version``: the one version in which ``resource.k8s.io`` is served."""
        self._by_path: dict[tuple[str, str, str], Kind] = {}
        self._custom: dict[str, list[Kind]] = {}
        self.revision = 0
        """Grows with every change; caches of discovery documents hang on it."""
        for row in _ROWS:
            kind = _kind(row)
            if kind.group == GROUP and resource_version != NEWEST:
                kind = replace(kind, version=resource_version, stored_as=kind)
            self._by_path[kind.group, kind.version, kind.plural] = kind

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """The kind under a path, or None."""
        return self._by_path.get((group, version, plural))

    def core(self, plural: str) -> Kind:
        """A kind of the core group. Raises KeyError if there is none."""
        return self._by_path["", "v1", plural]

    def by_kind(self, api_version: str, kind: str) -> Kind | None:
        """The kind of an object, or None."""
        for found in self._by_path.values():
            if found.kind == kind and found.api_version == api_version:
                return found
        return None

    def __iter__(self) -> Iterator[Kind]:
        return iter(list(self._by_path.values()))

    def versions(self) -> dict[str, list[str]]:
        """Served versions of each group."""
        out: dict[str, list[str]] = {"": ["v1"]}
        for kind in self._by_path.values():
            listed = out.setdefault(kind.group, [])
            if kind.version not in listed:
                listed.append(kind.version)
        return out

    def define(self, definition: dict[str, Any]) -> None:
        """Serve what a definition describes, instead of what one of the same name described."""
        self.withdraw(definition["metadata"]["name"], keep_revision=True)
        made = list(custom_kinds(definition))
        self._custom[definition["metadata"]["name"]] = made
        for kind in made:
            self._by_path[kind.group, kind.version, kind.plural] = kind
        self.revision += 1

    def withdraw(self, name: str, *, keep_revision: bool = False) -> list[Kind]:
        """Stop serving the kinds of a definition."""
        gone = self._custom.pop(name, [])
        for kind in gone:
            self._by_path.pop((kind.group, kind.version, kind.plural), None)
        if gone and not keep_revision:
            self.revision += 1
        return gone
