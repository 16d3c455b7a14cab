"""What containers may do on the node: Linux capabilities, completed, and the privileged form."""

from __future__ import annotations

from collections.abc import Iterable

from interlace.pods.draft import Container, Draft, room, words
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


def privilege(draft: Draft, container: Container, *, reason: str) -> None:
    """Make a container privileged. Raises InjectError if it says that it must not be."""
    path = f"{container.path}.securityContext"
    context = room(container.fields, "securityContext", path)
    if context.get("privileged") is False:
        raise InjectError(
            f"{path}.privileged", False, "on the host's network the container must be privileged", "remove it"
        )
    if context.get("privileged") is not True:
        context["privileged"] = True
        draft.added(f"{path}.privileged", True, reason)
