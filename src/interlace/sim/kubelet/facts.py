"""Simulated NVML: what the GPUs of a tray say about their fabric."""

from __future__ import annotations

from interlace.node.facts import FabricHealth, FabricState, GpuFabric


class SimulatedFacts:
    """A healthy tray of one NVLink partition, or GPUs without a fabric; a test may replace ``gpus``."""

    def __init__(self, *, clique: str, gpus: int) -> None:
        self.gpus: list[GpuFabric] = simulate_gpus(clique, count=gpus)

    async def read(self) -> list[GpuFabric]:
        """The GPUs as they are now."""
        return list(self.gpus)


def simulate_gpus(clique: str, *, count: int) -> list[GpuFabric]:
    """``count`` GPUs of the partition ``<cluster uuid>.<number>``, or of none if ``clique`` is empty."""
    cluster, _, number = clique.rpartition(".")
    return [
        GpuFabric(
            uuid=f"GPU-00000000-0000-4000-8000-{index:012x}",
            product="simulated GPU",
            state=FabricState.COMPLETED,
            cluster_uuid=cluster,
            clique=int(number),
            health=FabricHealth.HEALTHY,
        )
        if clique
        else GpuFabric(uuid=f"GPU-00000000-0000-4000-8000-{index:012x}", product="simulated GPU")
        for index in range(count)
    ]
