"""Opaque parameters of a claim, decoded as strictly as the known driver does.

Contract: configurations of other drivers are skipped; an unknown field is a permanent error with
the words users search for (``strict decoding error: unknown field``); one in the claim wins over
one in the class, a later one over an earlier one.
"""

from __future__ import annotations

from collections.abc import Sequence

from interlace.api import channel
from interlace.api.computedomain import DRIVER, ComputeDomainChannelConfig
from interlace.api.resource import DeviceConfiguration
from interlace.node.errors import Reason, Refusal


def decode(parameters: bytes) -> ComputeDomainChannelConfig:
    """One channel configuration. Raises a permanent ``Refusal`` that says what is wrong."""
    try:
        return channel.decode(parameters)
    except channel.OpaqueError as error:
        raise Refusal(Reason.BAD_CONFIG, str(error), permanent=True) from None


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
