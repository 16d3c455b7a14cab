"""Why things are as they are: one enum for ComputeDomains, one for what waits.

Conditions, events and metric labels take their reasons from here and from nowhere else.
"""

from __future__ import annotations

from enum import StrEnum


class DomainReason(StrEnum):
    """Reasons about a ComputeDomain as a whole."""

    FORMED = "Formed"
    NO_NODES = "NoNodes"
    TOO_FEW_NODES = "TooFewNodes"
    NODES_LEFT = "NodesLeft"
    NO_SPEC = "NoSpec"
    TEMPLATE_CREATED = "TemplateCreated"
    TEMPLATE_PENDING = "TemplatePending"
    TEMPLATE_NAME_TAKEN = "TemplateNameTaken"
    TEMPLATE_INVALID = "TemplateInvalid"
    TEMPLATE_REFUSED = "TemplateRefused"
    CONNECTED = "Connected"
    DISCONNECTED = "Disconnected"
    NOT_REPORTED = "NotReported"
    ONE_CLIQUE = "OneClique"
    SEVERAL_CLIQUES = "SeveralCliques"
    NO_FABRIC = "NoFabric"
    PEERS_MISSING = "PeersMissing"
    TOO_FEW_PODS = "TooFewPods"
    ORDERED_START = "OrderedStart"
    STARTED_LATE = "StartedWithoutPeers"
    DEVICE_STATUS_DROPPED = "DeviceStatusDropped"


class PodReason(StrEnum):
    """Reasons told to Pods beside those of their waits."""

    IMEX_RESTARTED = "ImexRestarted"
    DOMAIN_DELETED = "ComputeDomainDeleted"
    NODE_TAKEN = "NodeOfOtherDomain"


class WaitReason(StrEnum):
    """What a Pod of a domain waits for, in the order in which it passes them."""

    WRONG_NAMESPACE = "ClaimInWrongNamespace"
    ALLOCATION = "WaitingForAllocation"
    AGENT = "NoAgent"
    HOST = "NoImexHost"
    CLIQUE_FULL = "CliqueFull"
    CLIQUE = "WaitingForClique"
    PREPARE = "WaitingForPrepare"
    IMEX = "WaitingForImex"
    PEERS = "WaitingForPeers"

    @property
    def permanent(self) -> bool:
        """Whether waiting alone never ends it, so that it is told at once."""
        return self in {WaitReason.WRONG_NAMESPACE, WaitReason.CLIQUE_FULL}
