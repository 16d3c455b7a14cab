"""What containers may do on the node: the user they run as, Linux capabilities, and the privileged form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interlace.pods.draft import Container, Draft, mapping, room, words
from interlace.pods.errors import InjectError


def grant(draft: Draft, container: Container, capabilities: Iterable[str], *, reason: str) -> None:
    """Add capabilities that the container lacks; a privileged one has them all. Raises InjectError."""
    path = f"{container.path}.securityContext"
    context = container.fields.get("securityContext")
    wanted = tuple(capabilities)
    if not wanted or (isinstance(context, dict) and context.get("privileged") is True):
        return
    section = room(room(container.fields, "securityContext", path), "capabilities", f"{path}.capabilities")
    existing = words(section, "add", f"{path}.capabilities.add")
    if "ALL" in existing:
        return
    missing = [each for each in wanted if each not in existing and f"CAP_{each}" not in existing]
    if missing:
        section["add"] = [*existing, *missing]
        draft.added(f"{path}.capabilities.add", missing, reason)


def as_root(draft: Draft, container: Container, *, reason: str) -> None:
    """Let a container run as root where the Pod says otherwise for all. Raises InjectError if its own lines do."""
    path = f"{container.path}.securityContext"
    around = mapping(draft.spec, "securityContext", "spec.securityContext")
    own = mapping(container.fields, "securityContext", path)
    for key, refused in (("runAsUser", lambda value: value != 0), ("runAsNonRoot", lambda value: value is True)):
        if own.get(key) is not None and refused(own[key]):
            raise InjectError(f"{path}.{key}", own[key], "without root the capabilities mean nothing", "remove it")
    wanted: dict[str, Any] = {}
    if around.get("runAsUser") not in (None, 0) or around.get("runAsNonRoot") is True:
        wanted["runAsUser"] = 0
    if around.get("runAsNonRoot") is True:
        wanted["runAsNonRoot"] = False
    for key, value in wanted.items():
        if own.get(key) is None:
            room(container.fields, "securityContext", path)[key] = value
            draft.added(f"{path}.{key}", value, reason)


def privilege(draft: Draft, container: Container, *, reason: str) -> None:
    """Make a container privileged. Raises InjectError if it says that it must not be."""
    path = f"{container.path}.securityContext"
    context = room(container.fields, "securityContext", path)
    if context.get("privileged") is False:
        raise InjectError(
            f"{path}.privileged", False, "on the host's network the container must be privileged", "remove it"
        )
    if context.get("allowPrivilegeEscalation") is False:
        raise InjectError(
            f"{path}.allowPrivilegeEscalation", False, "no API server takes it beside privileged", "remove it"
        )
    if context.get("privileged") is not True:
        context["privileged"] = True
        draft.added(f"{path}.privileged", True, reason)
