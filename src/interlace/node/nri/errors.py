"""What can go wrong with the injector, and the one list of reasons that events and metrics use.

NriError
  ProtocolError   the runtime sent what the protocol does not allow: the connection is given up, and made again
  CallError       the runtime refused a call, or did not answer it in time
  Refused         a container does not get its devices, and is not to start without them
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a container is refused. The values stand in events and metrics."""

    BAD_ANNOTATION = "DeviceAnnotationUnreadable"
    NOT_ALLOWED = "DeviceNotAllowed"
    NO_DEVICE = "DeviceMissingOnNode"
    NOT_A_DEVICE = "NotADevice"
    DIFFERENT_DEVICE = "DifferentDevice"
    """The annotation gives other numbers than the node's device has."""
    NOT_INJECTED = "DevicesNotInjected"
    """Another injector, to which the container was left, did not inject all of its devices."""


class NriError(Exception):
    """Root of this tree; the message is one whole sentence."""


class ProtocolError(NriError):
    """The other side broke the protocol."""


class CallError(NriError):
    """A call was answered with an error, or not at all."""


class Refused(NriError):
    """A container is refused. The message names container, path, cause and remedy."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
