"""Figures that only the API server's own metrics have."""

from __future__ import annotations

import re

_SENT = re.compile(rb"^apiserver_watch_events_sizes_sum\{([^}]*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(rb'(\w+)="([^"]*)"')


def watch_bytes(exposition: bytes) -> dict[str, int]:
    """Bytes of watch events by kind of resource: ``plural`` of the core group, else ``plural.group``."""
    total: dict[str, int] = {}
    for labels, value in _SENT.findall(exposition):
        known = {key.decode(): text.decode() for key, text in _LABEL.findall(labels)}
        what = known.get("resource") or known.get("kind", "")
        group = known.get("group", "")
        name = f"{what}.{group}" if group else what
        total[name] = total.get(name, 0) + int(float(value))
    return total
