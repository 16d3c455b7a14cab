"""Stand-ins in C, compiled once a series: NVML with fabric information, a small container box, a no-op IMEX.

Simulated: there is no GPU. What reads them is real: the agents load the NVML stand-in as they would load the
driver's library. Needs gcc.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

NVML = "libnvidia-ml.so.1"
_SOURCES = Path(__file__).parent / "native"
_COMPILE_LIMIT = 60.0


class NativeError(Exception):
    """A stand-in could not be compiled; the message says why and what to install."""


async def compile_native(name: str, target: Path, *options: str) -> Path:
    """Compile ``native/<name>.c`` to ``target``. Raises NativeError."""
    compiler = shutil.which("gcc")
    if compiler is None:
        raise NativeError(f"native/{name}.c cannot be compiled: gcc is not on PATH; install it")
    target.parent.mkdir(parents=True, exist_ok=True)
    process = await asyncio.create_subprocess_exec(
        compiler,
        "-O2",
        *options,
        "-o",
        str(target),
        str(_SOURCES / f"{name}.c"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_COMPILE_LIMIT):
            _, complaints = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise NativeError(f"gcc refused native/{name}.c: {complaints.decode(errors='replace').strip()[-300:]}")
    return target


async def compile_nvml(folder: Path) -> Path:
    """The NVML stand-in as a library in ``folder``."""
    return await compile_native("nvml_stub", folder / NVML, "-shared", "-fPIC")


def install_nvml(library: Path, *, driver_root: Path) -> None:
    """Put the library where the driver's would be; again is no error."""
    target = driver_root / "usr/lib64" / NVML
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.is_symlink():
        target.symlink_to(library)


def fabric_env(clique: str, *, gpus: int) -> dict[str, str]:
    """Environment that makes the NVML stand-in show ``gpus`` of the partition ``<cluster uuid>.<number>``, if any."""
    cluster, _, number = clique.rpartition(".")
    env = {"STUB_GPUS": str(gpus)}
    return env | {"STUB_CLUSTER": cluster.replace("-", ""), "STUB_CLIQUE": number} if clique else env
