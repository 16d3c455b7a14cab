"""Reading GPUs: versions of the structure, and a child process that does not answer, fails or is fine."""

from __future__ import annotations

import ctypes
import uuid
from pathlib import Path
from typing import Any

import pynvml
import pytest

from interlace.node.facts import FabricHealth, FabricState, FactsError, GpuFabric
from interlace.node.nvml import NvmlFacts, find_library, read_gpus

CLUSTER = uuid.UUID("8d9b8a9e-0b63-4c2f-9d34-3e5f7f1f0a11")
OLD = pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH


class Library:
    """The binding with a library behind it that knows the structure up to ``version``; 0: no fabric at all."""

    def __init__(self, version: int, *, error: int = OLD, state: int = 3) -> None:
        self.version = version
        self.error = error
        self.state = state

    def __getattr__(self, name: str) -> Any:
        """Structures and constants are the binding's own."""
        return getattr(pynvml, name)

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802  # the binding's name
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> bytes:  # noqa: N802
        return f"GPU-{handle}".encode()

    def nvmlDeviceGetName(self, handle: int) -> str:  # noqa: N802
        return "NVIDIA GB200"

    def nvmlDeviceGetGpuFabricInfoV(self, handle: int, pointer: Any) -> None:  # noqa: N802
        if self.version == 0:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        info = pointer._obj
        if (info.version >> 24) > self.version:
            raise pynvml.NVMLError(self.error)
        self._fill(info)
        if info.version >> 24 == 3:
            info.healthMask, info.healthSummary = 0x5, 2

    def nvmlDeviceGetGpuFabricInfo(self, handle: int, pointer: Any) -> None:  # noqa: N802
        if self.version == -1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        self._fill(pointer._obj)

    def _fill(self, info: Any) -> None:
        info.clusterUuid = (ctypes.c_uint8 * 16)(*CLUSTER.bytes)
        # The C field has one byte; what follows it is padding that may hold anything.
        info.status, info.cliqueId, info.state = 0, 7, 0xAB00 | self.state


def expected(number: int, **more: Any) -> GpuFabric:
    values = {
        "uuid": f"GPU-{number}",
        "product": "NVIDIA GB200",
        "state": FabricState.COMPLETED,
        "cluster_uuid": str(CLUSTER),
        "clique": 7,
        **more,
    }
    return GpuFabric(**values)


def test_the_newest_structure_brings_the_health() -> None:
    more = {"health": FabricHealth.UNHEALTHY, "health_mask": 5}
    assert read_gpus(Library(3)) == [expected(0, **more), expected(1, **more)]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    "error", [OLD, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, pynvml.NVML_ERROR_INVALID_ARGUMENT], ids=str
)
def test_an_older_library_is_asked_in_its_own_version(version: int, error: int) -> None:
    assert read_gpus(Library(version, error=error)) == [expected(0), expected(1)]


@pytest.mark.parametrize("version", [0, -1])
def test_a_library_or_gpu_without_a_fabric_has_none(version: int) -> None:
    assert [gpu.state for gpu in read_gpus(Library(version))] == [FabricState.NOT_SUPPORTED] * 2


def test_a_state_that_is_not_known_is_not_taken_for_a_good_one() -> None:
    assert read_gpus(Library(3, state=9))[0].state is FabricState.NOT_STARTED


def test_other_errors_are_not_swallowed() -> None:
    with pytest.raises(pynvml.NVMLError):
        read_gpus(Library(1, error=pynvml.NVML_ERROR_GPU_IS_LOST))


def test_the_library_is_looked_for_under_the_driver_root(tmp_path: Path) -> None:
    with pytest.raises(FactsError, match=r"libnvidia-ml\.so\.1 is not under .* \(searched usr/lib64, "):
        find_library(tmp_path)
    library = tmp_path / "usr" / "lib" / "aarch64-linux-gnu" / "libnvidia-ml.so.1"
    library.parent.mkdir(parents=True)
    library.touch()
    assert find_library(tmp_path) == library


async def test_a_missing_driver_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(FactsError, match="install the NVIDIA driver or correct the driver root") as caught:
        await NvmlFacts(tmp_path).read()
    assert "\n" not in str(caught.value)


async def test_a_library_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    library = tmp_path / "usr" / "lib64" / "libnvidia-ml.so.1"
    library.parent.mkdir(parents=True)
    library.write_text("not a library")
    with pytest.raises(FactsError, match=r"libnvidia-ml\.so\.1") as caught:
        await NvmlFacts(tmp_path).read()
    assert "Traceback" not in str(caught.value)


async def test_a_driver_that_does_not_answer_is_cut_at_the_deadline(tmp_path: Path) -> None:
    with pytest.raises(FactsError, match=r"did not answer within 0\.001 s"):
        await NvmlFacts(tmp_path, deadline=0.001).read()
