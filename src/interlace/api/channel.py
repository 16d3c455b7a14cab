"""Channel claims: the opaque parameters that name a ComputeDomain, and the selector that keeps domains apart.

Shared by admission, which refuses bad parameters when the claim is written, and by the agent, which meets those
that were written without admission; so both say the same words. Users search for ``strict decoding error``.
"""

from __future__ import annotations

import json
from typing import Any, Final

from interlace.api.computedomain import API_VERSION, DRIVER, ComputeDomainChannelConfig

CHANNEL_KIND: Final = "ComputeDomainChannelConfig"
DAEMON_KIND: Final = "ComputeDomainDaemonConfig"
_FIELDS: Final = frozenset({"apiVersion", "kind", "domainID", "allocationMode"})


class OpaqueError(ValueError):
    """Parameters of a claim that no driver of this API takes; the text says what is wrong and what to write."""


def decode(parameters: bytes) -> ComputeDomainChannelConfig:
    """One channel configuration; ``domain_id`` is not empty. Raises ``OpaqueError``."""
    twice: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                twice.append(key)
            found[key] = value
        return found

    try:
        body = json.loads(parameters, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise OpaqueError(f"the parameters are not JSON: {error}") from None
    if not isinstance(body, dict):
        raise OpaqueError("the parameters are not a JSON object")
    version, kind = body.get("apiVersion"), body.get("kind")
    if version != API_VERSION or kind not in (CHANNEL_KIND, DAEMON_KIND):
        raise OpaqueError(
            f'no kind "{kind}" is registered for version "{version}": write {API_VERSION}, {CHANNEL_KIND}'
        )
    if kind == DAEMON_KIND:
        raise OpaqueError(f"{DAEMON_KIND} does not belong to a device of type channel: write {CHANNEL_KIND}")
    faults = [f'unknown field "{name}"' for name in sorted(set(body) - _FIELDS)]
    faults += [f'duplicate field "{name}"' for name in sorted(set(twice))]
    if faults:
        raise OpaqueError("strict decoding error: " + ", ".join(faults))
    domain, mode = body.get("domainID", ""), body.get("allocationMode", "")
    if not isinstance(domain, str) or not isinstance(mode, str):
        raise OpaqueError("domainID and allocationMode have to be strings")
    if not domain:
        raise OpaqueError("domainID is empty: it has to be the uid of the ComputeDomain")
    return ComputeDomainChannelConfig(domain_id=domain, allocation_mode=mode)


def own_or_free(uid: str) -> str:
    """CEL selector: a device that is free or opened for the domain ``uid``.

    ``has`` keeps a slice without the attribute from stopping the whole Pod: CEL fails on a missing key.
    """
    attribute = f'device.attributes["{DRIVER}"].domain'
    return f'!has({attribute}) || {attribute} in ["", "{uid}"]'
