"""The device guard: which host devices a Pod may ask for by annotation.

Whoever may create Pods on a node with a device injector gets any host device, a disk included, by one
annotation; admission is the only guard. Invariant: what the guard passes, each injector reads as the guard did
(`interlace.fabric.devices`); an update that asks for no new device is never refused, so that Pods which
are older than the guard can be labelled, and end.
"""

from __future__ import annotations

from typing import Literal

from interlace.api.meta import ObjectMeta
from interlace.fabric.devices import PREFIX, AllowList, DevicesError, annotated, read
from interlace.pods.review import ALLOWED, Verdict, refuse

Mode = Literal["enforce", "warn", "off"]
MODES: tuple[Mode, ...] = ("enforce", "warn", "off")


def check(new: ObjectMeta, *, old: ObjectMeta | None, allowed: AllowList, mode: Mode) -> Verdict:
    """Whether a Pod may ask for the devices of its annotations; ``old`` is the Pod before an update.

    ``warn`` says as warnings what ``enforce`` refuses with. Keys that injectors ignore are warned of in both.
    """
    if mode == "off":
        return ALLOWED
    asked = annotated(new.annotations)
    before = annotated(old.annotations) if old is not None else {}
    changed = {container: text for container, text in asked.items() if before.get(container) != text}
    reasons: list[str] = []
    warnings: list[str] = []
    for container, text in changed.items():
        faults, hints = _judge(text, allowed=allowed)
        key = f"metadata.annotations[{PREFIX}{container}]"
        reasons += [f"{key}: {fault}" for fault in faults]
        warnings += [f"{key}: {hint}" for hint in hints]
    if mode == "warn":
        return Verdict(warnings=(*(f"device guard would refuse: {reason}" for reason in reasons), *warnings))
    return refuse(reasons, code=403, warnings=warnings) if reasons else Verdict(warnings=tuple(warnings))


def _judge(text: str, *, allowed: AllowList) -> tuple[list[str], list[str]]:
    """What is wrong with one annotation, and what is merely useless in it."""
    try:
        reading = read(text)
    except DevicesError as error:
        return [str(error)], []
    refused = [device.path for device in reading.devices if device.path not in allowed]
    faults = []
    if refused:
        shown = ", ".join(refused[:4]) + (f" and {len(refused) - 4} more" if len(refused) > 4 else "")
        fault = f"{shown} may not be injected; allowed are {', '.join(allowed.patterns)} (* is a number)"
        faults = [f"{fault}. Leave it out, or have it added to the allow-list of the webhook (--allow-device)"]
    return faults, [f"injectors ignore the key {key}{_hint(key)}" for key in reading.ignored]


def _hint(key: str) -> str:
    return "; write file_mode" if key.lower() == "filemode" else ""
