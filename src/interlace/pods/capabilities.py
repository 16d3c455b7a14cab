"""Linux capabilities of containers, completed."""

from __future__ import annotations

from collections.abc import Iterable

from interlace.pods.draft import Container, Draft, room, words


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
