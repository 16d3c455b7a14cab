"""What the node's GPUs say about their fabric, as plain values, and who can be asked.

``NvmlFacts`` (``interlace.node.nvml``) asks the driver; simulated nodes hand in a source of their own.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol

import msgspec

ZERO_UUID = "00000000-0000-0000-0000-000000000000"


class FabricState(IntEnum):
    """``nvmlGpuFabricState_t``."""

    NOT_SUPPORTED = 0
    NOT_STARTED = 1
    IN_PROGRESS = 2
    COMPLETED = 3


class FabricHealth(IntEnum):
    """``healthSummary`` of fabric information version 3; ``NOT_SUPPORTED`` where an older one was read."""

    NOT_SUPPORTED = 0
    HEALTHY = 1
    UNHEALTHY = 2
    LIMITED_CAPACITY = 3


class GpuFabric(msgspec.Struct, frozen=True, kw_only=True):
    """Fabric information of one GPU."""

    uuid: str
    product: str = ""
    """Marketing name, for instance ``NVIDIA GB200``."""
    state: FabricState = FabricState.NOT_SUPPORTED
    status: int = 0
    """``nvmlReturn_t`` of the probe; 0 is good. Only meaningful once ``state`` is completed."""
    cluster_uuid: str = ZERO_UUID
    """Canonical lower-case form with dashes."""
    clique: int = 0
    health: FabricHealth = FabricHealth.NOT_SUPPORTED
    health_mask: int = 0
    """``healthMask`` as read; shown in messages, not judged."""


class FactsError(Exception):
    """The GPUs could not be read; one sentence with cause and remedy."""


class FactsSource(Protocol):
    """Reads the fabric information of all GPUs of this node."""

    async def read(self) -> list[GpuFabric]:
        """All GPUs, in index order. Returns within its own deadline; raises ``FactsError``."""
        ...
