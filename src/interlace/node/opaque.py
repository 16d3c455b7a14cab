"""Opaque parameters of a claim, decoded as strictly as the known driver does.

Contract: configurations of other drivers are skipped; an unknown field is a permanent error with
the words users search for (``strict decoding error: unknown field``); one in the claim wins over
one in the class, a later one over an earlier one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from interlace.api.computedomain import API_VERSION, DRIVER, ComputeDomainChannelConfig
from interlace.api.resource import DeviceConfiguration
from interlace.node.errors import Reason, Refusal

CHANNEL_KIND = "ComputeDomainChannelConfig"
DAEMON_KIND = "ComputeDomainDaemonConfig"
_FIELDS = frozenset({"apiVersion", "kind", "domainID", "allocationMode"})


def decode(parameters: bytes) -> ComputeDomainChannelConfig:
    """One channel configuration. Raises a permanent ``Refusal`` that says what is wrong."""
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
        raise _bad(f"the parameters are not JSON: {error}") from None
    if not isinstance(body, dict):
        raise _bad("the parameters are not a JSON object")
    version, kind = body.get("apiVersion"), body.get("kind")
    if version != API_VERSION or kind not in (CHANNEL_KIND, DAEMON_KIND):
        raise _bad(f'no kind "{kind}" is registered for version "{version}": write {API_VERSION}, {CHANNEL_KIND}')
    if kind == DAEMON_KIND:
        raise _bad(f"{DAEMON_KIND} does not belong to a device of type channel: write {CHANNEL_KIND}")
    faults = [f'unknown field "{name}"' for name in sorted(set(body) - _FIELDS)]
    faults += [f'duplicate field "{name}"' for name in sorted(set(twice))]
    if faults:
        raise _bad("strict decoding error: " + ", ".join(faults))
    domain, mode = body.get("domainID", ""), body.get("allocationMode", "")
    if not isinstance(domain, str) or not isinstance(mode, str):
        raise _bad("domainID and allocationMode have to be strings")
    if not domain:
        raise _bad("domainID is empty: it has to be the uid of the ComputeDomain")
    return ComputeDomainChannelConfig(domain_id=domain, allocation_mode=mode)


def configs(configurations: Sequence[DeviceConfiguration]) -> list[tuple[frozenset[str], ComputeDomainChannelConfig]]:
    """Ours among the configurations of an allocation, the strongest last; each with the requests that it names."""
    ours = [c for c in configurations if c.opaque is not None and c.opaque.driver == DRIVER]
    ours.sort(key=lambda c: c.source == "FromClaim")
    return [(frozenset(c.requests), decode(bytes(c.opaque.parameters))) for c in ours if c.opaque is not None]


def choose(
    candidates: Sequence[tuple[frozenset[str], ComputeDomainChannelConfig]], request: str
) -> ComputeDomainChannelConfig | None:
    """The strongest configuration for a request; one that names no request is for all of them.

    ``request`` may be ``parent/subrequest``; a configuration that names the parent counts too.
    """
    names = {request, request.partition("/")[0]}
    return next((config for requests, config in reversed(candidates) if not requests or requests & names), None)


def _bad(message: str) -> Refusal:
    return Refusal(Reason.BAD_CONFIG, message, permanent=True)
