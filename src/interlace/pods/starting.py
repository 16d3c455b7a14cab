"""When a daemon counts as started: its devices are there, and it says that it is ready.

A container runtime starts a container without its devices when the plugin that injects them is away, and says
nothing. Invariant: whoever waits for the daemon does not run before the daemon has all its devices; the probe's
output, which kubelet puts into an event of the Pod, says which one is missing and why. A daemon that fails the probe
is started again, and is then asked about anew. Runtimes that check required plugins (containerd 2.2 and later, where
its default validator is on) do not even make the daemon.
"""

from __future__ import annotations

import json
import shlex
from typing import Any, Final

from interlace.fabric.family import Probe
from interlace.pods.draft import Container, Draft
from interlace.pods.errors import InjectError

REQUIRED: Final = "required-plugins.noderesource.dev/container."
"""Annotation keys: this and the name of a container."""
DELAY: Final = 1
PERIOD: Final = 5
FAILURES: Final = 3
"""For a daemon that says nothing itself: its devices are there from its first moment, or never."""


def startup_probe(probe: Probe | None, *, devices: tuple[str, ...]) -> dict[str, Any] | None:
    """The startupProbe of a daemon with this one of its own; None if there is nothing to look at."""
    if not devices and probe is None:
        return None
    command = list(probe.command) if probe is not None else []
    return {
        "exec": {"command": ["/bin/sh", "-c", _script(devices, command)] if devices else command},
        "initialDelaySeconds": probe.delay if probe is not None else DELAY,
        "periodSeconds": probe.period if probe is not None else PERIOD,
        "failureThreshold": probe.failures if probe is not None else FAILURES,
    }


def _script(devices: tuple[str, ...], command: list[str]) -> str:
    said = (
        "$d is missing: no device injector was registered at the container runtime of this node when the container "
        "was made; see whether the agent of the node is ready"
    )
    lines = [f'for d in {shlex.join(devices)}; do [ -c "$d" ] || {{ echo "{said}"; exit 1; }}; done']
    if command:
        lines.append(f"exec {shlex.join(command)}")
    return "\n".join(lines)


def require_plugin(draft: Draft, daemon: Container, plugin: str) -> None:
    """Have the runtime refuse the daemon while no plugin of this name is there. Raises InjectError."""
    key = REQUIRED + daemon.name
    text = draft.annotations.get(key, "[]")
    try:
        names = json.loads(text)
    except ValueError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InjectError(
            f"metadata.annotations[{key}]", text, "it is no JSON list of names", f'write ["{plugin}"], or remove it'
        )
    if plugin not in names:
        draft.annotate(key, json.dumps([*names, plugin]), "without this plugin the daemon would have no devices")
