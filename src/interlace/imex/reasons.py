"""Why IMEX of a node is not what was ordered: one enum, used in states, metrics, conditions and events.

A reason is a stable CamelCase word; the sentence that goes with it is made where the fault is
found, because only there object, path and value are known. What to do about it stands here.
"""

from __future__ import annotations

import enum


class Reason(enum.StrEnum):
    """Reason of a `State`; the empty string means that there is nothing to say."""

    NONE = ""
    ORDER_INVALID = "OrderInvalid"
    """Names, addresses, index or domain of the order do not fit together."""
    CONFIG_REFUSED = "ConfigRefused"
    """The order sets a config key that may not be set, or a value that the key cannot have."""
    FILES_NOT_WRITTEN = "FilesNotWritten"
    """Config, nodes or hosts file could not be written."""
    BINARY_MISSING = "BinaryMissing"
    """No nvidia-imex (or nvidia-imex-ctl) under the driver root."""
    START_FAILED = "StartFailed"
    """The system refused to start the program."""
    IMEX_IN_USE = "ImexInUse"
    """Another process of the node holds the one IMEX session of the driver."""
    CRASHED = "Crashed"
    """The process ended by itself; it is started again."""
    CRASH_LOOP = "CrashLoop"
    """The process ended by itself several times in a row; it is started again with growing pauses."""
    NOT_READY_YET = "NotReadyYet"
    """The process runs but has not said READY for longer than usual."""
    PROCESS_STUCK = "ProcessStuck"
    """The old process still lives although it was killed; a new one must not start beside it."""
    HEALTH_UNKNOWN = "HealthUnknown"
    """The question for the peers' connections was not answered in time or not understood."""
    PEERS_DISCONNECTED = "PeersDisconnected"
    """At least one present peer has no connection in one of the two directions."""


REMEDIES: dict[Reason, str] = {
    Reason.FILES_NOT_WRITTEN: "look whether that file system of the node is full or read-only",
    Reason.BINARY_MISSING: "install the nvidia-imex package of the loaded driver version, or correct the driver root",
    Reason.IMEX_IN_USE: "disable and mask nvidia-imex.service on the node",
    Reason.CRASH_LOOP: "read the log of the imex-host pod on this node",
    Reason.PROCESS_STUCK: "look for a process in state D on the node; a reboot frees it",
    Reason.PEERS_DISCONNECTED: "check that TCP port 50000 is open between the imex-host pods",
}
"""What to do, for the reasons where one thing nearly always helps."""


def explain(reason: Reason, cause: str) -> str:
    """One sentence: the cause, then the remedy if the reason has one."""
    remedy = REMEDIES.get(reason)
    return f"{cause}; {remedy}" if remedy else cause


class ImexError(Exception):
    """Something about IMEX that cannot be done; ``reason`` says which kind, the text which object and why."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
