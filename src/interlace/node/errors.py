"""The errors of the agent, and the one list of reasons that conditions, events and metrics use.

AgentError
  SettingsError    a flag or an environment variable is bad: the agent does not start
  RivalDriver      another driver of the same name is on this node: the agent does not start
  Refusal          a claim cannot be prepared; ``permanent`` says whether waiting may help
  StateError       the agent's own file or folder cannot be read or written
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a claim is, or is not, prepared. The values stand in conditions and events."""

    PREPARED = "Prepared"
    RESTORED = "Restored"
    """Prepared, and its IMEX was interrupted since."""
    WAITING_FOR_KUBELET = "WaitingForKubelet"
    """Prepare had failed and would succeed now: kubelet has to call again."""
    CLAIM_NOT_FOUND = "ClaimNotFound"
    CLAIM_REPLACED = "ClaimReplaced"
    NOT_ALLOCATED = "NotAllocated"
    BAD_CONFIG = "BadConfig"
    NO_DOMAIN_LABEL = "NoDomainLabel"
    WRONG_NAMESPACE = "WrongNamespace"
    UNKNOWN_DEVICE = "UnknownDevice"
    FABRIC_UNHEALTHY = "FabricUnhealthy"
    NOT_A_MEMBER_YET = "NotAMemberYet"
    OTHER_DOMAIN = "OtherDomainOnNode"
    IMEX_HOST_UNREACHABLE = "ImexHostUnreachable"
    IMEX_STARTING = "ImexStarting"
    IMEX_FAILED = "ImexFailed"
    WAITING_FOR_PEERS = "WaitingForPeers"
    STARTED_WITHOUT_PEERS = "StartedWithoutPeers"
    """Prepared, as the time to wait for the peers was over."""
    NO_CHANNEL_DEVICE = "NoChannelDevice"
    API_UNREACHABLE = "ApiUnreachable"
    WITHDRAWN = "Withdrawn"
    """Unprepare came while Prepare was waiting."""
    STATE_NOT_WRITTEN = "StateNotWritten"


class AgentError(Exception):
    """Root of this tree; the message is one whole sentence."""


class SettingsError(AgentError):
    """A flag or an environment variable is missing or bad."""


class RivalDriver(AgentError):
    """Another driver of the same name answers on this node or keeps its ResourceSlices."""


class StateError(AgentError):
    """A file of the agent cannot be read or written; the message names it."""


class Refusal(AgentError):
    """A claim cannot be prepared. The message names object, cause and remedy."""

    def __init__(self, reason: Reason, message: str, *, permanent: bool) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.permanent = permanent
