"""Fabric information of the GPUs, from the NVIDIA driver.

The library is asked in a short-lived child process, for three reasons: a call into the driver can
block for minutes and a process can be ended at the deadline; a crash inside the library ends the child
alone; and between two readings nothing holds the driver open, so it can be upgraded.
Run as ``python -m interlace.node.nvml DRIVER_ROOT`` the module prints the GPUs as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import uuid
from pathlib import Path
from typing import Any

import msgspec

from interlace.node.facts import FabricHealth, FabricState, FactsError, GpuFabric

LIBRARY = "libnvidia-ml.so.1"
FOLDERS = (
    "usr/lib64",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "lib64",
    "lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
    "usr/lib",
    "usr/local/nvidia/lib64",
)
"""Where the driver's libraries are under the driver root, in the order of search."""
DEADLINE = 20.0
"""Seconds that one reading may take."""
_KILL_WAIT = 2.0
_STATES = {int(state): state for state in FabricState}
_HEALTHS = {int(health): health for health in FabricHealth}


class NvmlFacts:
    """The real source of facts."""

    def __init__(self, driver_root: Path, *, deadline: float = DEADLINE) -> None:
        self._driver_root = driver_root
        self._deadline = deadline

    async def read(self) -> list[GpuFabric]:
        """All GPUs. Raises ``FactsError`` after the deadline at the latest."""
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "interlace.node.nvml",
            str(self._driver_root),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(self._deadline):
                out, err = await child.communicate()
        except TimeoutError:
            raise FactsError(
                f"NVML under {self._driver_root} did not answer within {self._deadline:g} s; a GPU may have fallen "
                "off the bus (see the kernel log for Xid errors)."
            ) from None
        finally:
            if child.returncode is None:
                await _end(child)
        if child.returncode != 0:
            last = err.decode(errors="replace").strip().rpartition("\n")[2]
            raise FactsError(last or f"reading NVML under {self._driver_root} ended with status {child.returncode}.")
        try:
            return msgspec.json.decode(out, type=list[GpuFabric])
        except ValueError as error:
            raise FactsError(f"reading NVML under {self._driver_root} gave no GPU list: {error}.") from None


async def _end(child: asyncio.subprocess.Process) -> None:
    """Kill, and do not wait long: a process in a driver call may not end at once."""
    with contextlib.suppress(ProcessLookupError):
        child.kill()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_KILL_WAIT):
            await child.wait()


def find_library(driver_root: Path) -> Path:
    """The library under the driver root. Raises ``FactsError`` that names the folders searched."""
    for folder in FOLDERS:
        path = driver_root / folder / LIBRARY
        if path.exists():
            return path
    raise FactsError(
        f"{LIBRARY} is not under {driver_root} (searched {', '.join(FOLDERS)}); install the NVIDIA driver or correct "
        "the driver root."
    )


def read_gpus(nvml: Any) -> list[GpuFabric]:
    """Ask each GPU through ``nvml``, the module ``pynvml`` (its library loaded and initialised) or one like it."""
    return [_read_gpu(nvml, nvml.nvmlDeviceGetHandleByIndex(index)) for index in range(nvml.nvmlDeviceGetCount())]


def _read_gpu(nvml: Any, handle: Any) -> GpuFabric:
    identity, product = _text(nvml.nvmlDeviceGetUUID(handle)), _text(nvml.nvmlDeviceGetName(handle))
    info = _fabric_info(nvml, handle)
    if info is None:
        return GpuFabric(uuid=identity, product=product)
    # The C field is one byte and the binding reads four: the other three are padding.
    state = int(info.state) & 0xFF
    health = int(getattr(info, "healthSummary", 0))
    return GpuFabric(
        uuid=identity,
        product=product,
        state=_STATES.get(state, FabricState.NOT_STARTED),
        status=int(info.status),
        cluster_uuid=str(uuid.UUID(bytes=bytes(info.clusterUuid))),
        clique=int(info.cliqueId),
        health=_HEALTHS.get(health, FabricHealth.NOT_SUPPORTED),
        health_mask=int(getattr(info, "healthMask", 0)),
    )


def _fabric_info(nvml: Any, handle: Any) -> Any | None:
    """Version 3 of the structure, else 2, else 1; None: this GPU has no fabric."""
    import ctypes  # noqa: PLC0415 - in the child alone, as below

    for make in (nvml.c_nvmlGpuFabricInfo_v3_t, nvml.c_nvmlGpuFabricInfo_v2_t):
        info = make()
        if make is nvml.c_nvmlGpuFabricInfo_v3_t:
            info.version = nvml.nvmlGpuFabricInfo_v3
        try:
            nvml.nvmlDeviceGetGpuFabricInfoV(handle, ctypes.byref(info))
            return info
        except nvml.NVMLError as error:
            if error.value == nvml.NVML_ERROR_NOT_SUPPORTED:
                return None
            if error.value not in _older(nvml):
                raise
    info = nvml.c_nvmlGpuFabricInfo_t()
    try:
        nvml.nvmlDeviceGetGpuFabricInfo(handle, ctypes.byref(info))
    except nvml.NVMLError as error:
        if error.value in (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_FUNCTION_NOT_FOUND):
            return None
        raise
    return info


def _older(nvml: Any) -> tuple[int, ...]:
    """The errors that mean: the library is older than this version of the structure."""
    return (
        nvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        nvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
        nvml.NVML_ERROR_INVALID_ARGUMENT,
    )


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def main(argv: list[str]) -> int:
    """Print the GPUs as JSON; on failure one sentence on stderr and status 1."""
    # Imported in the child alone: the binding costs several megabytes.
    import ctypes  # noqa: PLC0415

    import pynvml  # noqa: PLC0415

    root = Path(argv[0])
    try:
        library = find_library(root)
        pynvml.nvmlLib = ctypes.CDLL(str(library))
        # Without GPUs is no error: they may be passed through to a guest.
        pynvml.nvmlInitWithFlags(pynvml.NVML_INIT_FLAG_NO_GPUS)
        gpus = read_gpus(pynvml)
    except (FactsError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except pynvml.NVMLError as error:
        sys.stderr.write(f"NVML of {library} refused: {error}.\n")
        return 1
    sys.stdout.buffer.write(msgspec.json.encode(gpus))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
