"""One request, taken apart: what is asked of which resource, by whom, with which options.

Invariant: everything that authorization, audit and the verbs need is decided here, from the path and the query alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from interlace.sim.apiserver import binary, errors
from interlace.sim.apiserver.auth import UserInfo
from interlace.sim.apiserver.cause import Cause
from interlace.sim.apiserver.kinds import Kind
from interlace.sim.apiserver.lifecycle import DeleteOptions, Propagation
from interlace.sim.apiserver.objects import Json, decode
from interlace.sim.plane import Verb

_VERBS: dict[str, Verb] = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}
_POLICIES: tuple[Propagation, ...] = ("Foreground", "Background", "Orphan")
_OF_NAMESPACE = ("status", "finalize")
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
PATCHES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The resource that a path names."""

    group: str
    version: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def parse_path(path: str) -> Target | None:
    """None for a path below neither ``/api/<version>/`` nor ``/apis/<group>/<version>/``."""
    parts = [part for part in path.split("/") if part]
    if len(parts) >= 3 and parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif len(parts) >= 4 and parts[0] == "apis":
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and not (rest[2] in _OF_NAMESPACE and len(rest) == 3 and group == ""):
            rest = rest[2:]
    rest = [*rest, "", ""]
    if len(rest) > 5:
        return None
    return Target(
        group=group, version=version, resource=rest[0], namespace=namespace, name=rest[1], subresource=rest[2]
    )


def verb_of(method: str, target: Target, query: Mapping[str, str]) -> Verb:
    """The verb as authorization and audit name it. Raises ApiFault 405."""
    verb = _VERBS.get(method)
    if verb is None:
        raise errors.method_not_allowed()
    if verb == "get":
        if query.get("watch") in ("true", "1"):
            return "watch"
        return "get" if target.name else "list"
    if verb == "delete" and not target.name:
        return "deletecollection"
    return verb


@dataclass(slots=True, kw_only=True)
class Call:
    """A request for a resource."""

    verb: Verb
    target: Target
    kind: Kind
    """As it is stored."""
    asked: Kind
    """In the version that the path names, in which answers show it."""
    query: Mapping[str, str]
    content_type: str
    accept: str
    user_agent: str
    user: UserInfo
    body: bytes = b""
    warnings: list[str] = field(default_factory=list)
    """Sent back as ``Warning`` headers."""

    @property
    def key(self) -> tuple[str, str]:
        """Key of the object in the store."""
        return (self.target.namespace if self.kind.namespaced else "", self.target.name)

    @property
    def dry_run(self) -> bool:
        """Whether nothing is to be stored. Raises ApiFault for another value than All."""
        value = self.query.get("dryRun", "")
        if value not in ("", "All"):
            raise errors.invalid(
                "meta.k8s.io",
                "CreateOptions",
                "",
                [Cause("dryRun", f'Unsupported value: ["{value}"]: supported values: "All"', "FieldValueNotSupported")],
            )
        return value == "All"

    @property
    def field_validation(self) -> str:
        """Strict, Warn or Ignore."""
        return self.query.get("fieldValidation") or "Warn"

    @property
    def manager(self) -> str:
        """Name of the field manager."""
        return self.query.get("fieldManager") or self.user_agent.split("/")[0][:128] or "unknown"

    @property
    def patch_type(self) -> str:
        """Media type of a patch. Raises ApiFault 415."""
        media = self.content_type.partition(";")[0].strip()
        if media == "application/apply-patch+cbor" or media not in PATCHES:
            raise errors.unsupported_media_type()
        return media

    def delete_options(self) -> DeleteOptions:
        """From the body if there is one, else from the query; never from both. Raises ApiFault."""
        body: Json = self.json() if self.body.strip() else self._query_options()
        if not isinstance(body, dict):
            raise errors.bad_request("expected DeleteOptions, got a value that is no object")
        preconditions = body.get("preconditions") or {}
        propagation = body.get("propagationPolicy") or None
        if propagation not in (None, *_POLICIES):
            listed = ", ".join(f'"{policy}"' for policy in (*_POLICIES, "nil"))
            why = f'Unsupported value: "{propagation}": supported values: {listed}'
            found = Cause("propagationPolicy", why, "FieldValueNotSupported")
            raise errors.invalid("meta.k8s.io", "DeleteOptions", "", [found])
        if propagation is None:
            orphan = body.get("orphanDependents")
            if orphan is not None:
                propagation = "Orphan" if orphan else "Background"
        return DeleteOptions(
            grace=body.get("gracePeriodSeconds"),
            uid=preconditions.get("uid"),
            resource_version=preconditions.get("resourceVersion"),
            propagation=next((policy for policy in _POLICIES if policy == propagation), None),
            dry_run=body.get("dryRun") == ["All"],
        )

    def _query_options(self) -> Json:
        options: Json = {"propagationPolicy": self.query.get("propagationPolicy")}
        if self.query.get("gracePeriodSeconds"):
            options["gracePeriodSeconds"] = self.integer("gracePeriodSeconds")
        if self.query.get("orphanDependents"):
            options["orphanDependents"] = self.query["orphanDependents"] == "true"
        if self.dry_run:
            options["dryRun"] = ["All"]
        return options

    def json(self) -> Any:
        """The body as JSON, read from the binary encoding if it is in that. Raises ApiFault 400."""
        if self.body.startswith(binary.MAGIC):
            try:
                return binary.decode(self.body)
            except ValueError as error:
                raise errors.bad_request(str(error)) from error
        try:
            return decode(self.body)
        except msgspec.DecodeError as error:
            shown = self.body.decode(errors="replace")[:200]
            raise errors.bad_request(
                f"the object provided is unrecognized (must be of type {self.kind.kind}): couldn't get version/kind; "
                f"json parse error: {error} ({shown})"
            ) from error

    def integer(self, name: str) -> int | None:
        """A number of the query. Raises ApiFault 400."""
        text = self.query.get(name)
        return _integer(text, name) if text else None


def _integer(text: str, name: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise errors.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax ({name})') from error
