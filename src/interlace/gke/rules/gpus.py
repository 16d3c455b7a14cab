"""Rules about the GPUs of a node pool: which, how many, their driver, and that nobody divides or shares them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from interlace.gke.observed.container import Accelerator
from interlace.gke.places import short
from interlace.gke.rules.nodepool import Pool
from interlace.gke.rules.subject import Subject
from interlace.rules.rule import Breach, Rules

RULES: Final[Rules[Subject]] = Rules()


@RULES.rule(
    "pool.accelerator",
    cause="the pool gets other GPUs, or fewer, than GPUDirect of the family takes",
    remedy="make the pool with the accelerator of the family and all GPUs of the machine",
    needs=("cluster",),
)
def _accelerator(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        machine = short(pool.pool.config.machine_type)
        if pool.family is None or (machine and machine not in pool.family.machines):
            continue
        node = pool.family.node
        if not pool.pool.config.accelerators:
            yield Breach(
                pointer=pool.at("config", "accelerators"),
                text=f"{pool.says} names no accelerator; {pool.family.id} has {node.gpus} {node.accelerator}",
            )
        for where, each in _accelerators(pool):
            if short(each.accelerator_type) != node.accelerator:
                yield Breach(
                    pointer=f"{where}/acceleratorType",
                    text=f"{pool.says} has accelerator {each.accelerator_type or '(none)'}; {pool.family.id} has "
                    f"{node.accelerator}",
                )
            if each.accelerator_count != node.gpus:
                yield Breach(
                    pointer=f"{where}/acceleratorCount",
                    text=f"{pool.says} has {each.accelerator_count} GPUs on each node; {pool.family.id} has "
                    f"{node.gpus}",
                )


@RULES.rule(
    "pool.driver",
    cause="the GPUDirect software on the node takes the NVIDIA driver that GKE installs",
    remedy="make the pool with gpu-driver-version LATEST (gpuDriverInstallationConfig.gpuDriverVersion)",
    needs=("cluster",),
)
def _driver(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        for where, each in _accelerators(pool):
            version = each.gpu_driver_installation_config.gpu_driver_version
            if version in ("", "GPU_DRIVER_VERSION_UNSPECIFIED", "INSTALLATION_DISABLED"):
                yield Breach(
                    pointer=f"{where}/gpuDriverInstallationConfig/gpuDriverVersion",
                    text=f"{pool.says} installs no GPU driver: gpuDriverVersion is {version or 'not set'}",
                )


@RULES.rule(
    "pool.mig",
    cause="GPUDirect takes whole GPUs; parts of one (MIG) do not work with it",
    remedy="make the pool without gpuPartitionSize",
    needs=("cluster",),
)
def _mig(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        for where, each in _accelerators(pool):
            if each.gpu_partition_size:
                yield Breach(
                    pointer=f"{where}/gpuPartitionSize",
                    text=f"{pool.says} divides its GPUs (MIG): gpuPartitionSize is {each.gpu_partition_size}",
                )


@RULES.rule(
    "pool.time-sharing",
    cause="GPUDirect takes whole GPUs; time-sharing gives one GPU to several containers",
    remedy="make the pool without gpuSharingConfig",
    needs=("cluster",),
)
def _time_sharing(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        for where, each in _accelerators(pool):
            sharing = each.gpu_sharing_config
            shared = sharing.gpu_sharing_strategy == "TIME_SHARING"
            clients = max(each.max_time_shared_clients_per_gpu, sharing.max_shared_clients_per_gpu)
            if shared or (clients > 1 and sharing.gpu_sharing_strategy != "MPS"):
                yield Breach(
                    pointer=f"{where}/gpuSharingConfig",
                    text=f"{pool.says} shares its GPUs by time among {clients or 'several'} containers",
                )


@RULES.rule(
    "pool.mps",
    cause="GPUDirect takes whole GPUs; MPS gives one GPU to several containers",
    remedy="make the pool without gpuSharingConfig",
    needs=("cluster",),
)
def _mps(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        for where, each in _accelerators(pool):
            if each.gpu_sharing_config.gpu_sharing_strategy == "MPS":
                yield Breach(
                    pointer=f"{where}/gpuSharingConfig/gpuSharingStrategy",
                    text=f"{pool.says} shares its GPUs through MPS",
                )


@RULES.rule(
    "pool.fast-socket",
    cause="NCCL loads one network plugin, and Fast Socket is another than that of GPUDirect",
    remedy="make the pool without fast socket",
    needs=("cluster",),
)
def _fast_socket(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        if pool.pool.config.fast_socket.enabled:
            yield Breach(
                pointer=pool.at("config", "fastSocket", "enabled"), text=f"{pool.says} has NCCL Fast Socket on"
            )


def _accelerators(pool: Pool) -> Iterator[tuple[str, Accelerator]]:
    for index, each in enumerate(pool.pool.config.accelerators):
        yield pool.at("config", "accelerators", index), each
