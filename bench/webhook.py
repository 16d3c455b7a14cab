"""How long the webhook takes for one Pod: ``python -m bench.webhook [--first] [ADMISSIONS]``.

A real kube-apiserver in front, the installed ``interlace serve webhook`` as a process of its own behind it, one Pod
after another: Pods of an A3 Mega node that ask for their fabric, each in turn with one that does not. The handler's
time is its own, from the request read to the answer ready; what the API server takes is beside it. On a machine with
other work ``--first`` gives the webhook its core whenever it asks (SCHED_FIFO, needs root), as an idle machine would.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.figures import table
from interlace.api import webhook as names
from interlace.api.core import Pod
from interlace.kube.client import Client
from interlace.kube.errors import ApiError
from interlace.kube.untyped import apply_manifest, untyped
from interlace.manifests import NAMESPACE
from interlace.manifests.webhook import configurations, webhook_manifests
from testbed.flags import Settings
from testbed.plane import ControlPlane

RESULT = Path(__file__).parent / "results" / "webhook.json"
BUDGET = 5.0
"""Milliseconds, p99 of the handler."""
ADMISSIONS = 1000
WARM = 20
"""Pods before the count begins."""
START_LIMIT = 60.0
_USER = f"system:serviceaccount:{NAMESPACE}:{names.SERVICE}"
_PODS = untyped(Pod.resource)


class Admissions(msgspec.Struct, kw_only=True):
    """Result file; milliseconds each, in the order in which they happened."""

    python: str
    cores: int
    load_before: float
    server: str
    first: bool
    """The webhook was never made to wait for a core by other programs."""
    handler: dict[str, list[float]]
    """By path of the webhook."""
    cpu: dict[str, list[float]]
    """The part of it that the process worked; the rest it waited for a core."""
    asking: list[float]
    """Creation of a Pod that asks, as its creator sees it."""
    plain: list[float]
    """Creation of one that does not."""


def percentile(values: Sequence[float], part: float) -> float:
    """The least value that ``part`` of all are at most as large as."""
    return sorted(values)[max(0, math.ceil(part * len(values)) - 1)]


def render(found: Admissions) -> str:
    """A table of what was measured beside the budget."""
    rows: list[list[object]] = []
    creations = [("creation, asks", found.asking), ("creation, plain", found.plain)]
    for name, values in [*sorted(found.handler.items()), *creations]:
        handler = name in found.handler
        p99 = percentile(values, 0.99)
        rows.append(
            [
                name,
                len(values),
                *(f"{figure:.2f}" for figure in (percentile(values, 0.5), p99, max(values))),
                f"{BUDGET:.0f}" if handler else "–",
                ("met" if p99 <= BUDGET else "**missed**") if handler else "–",
                f"{percentile(found.cpu[name], 0.99):.2f}" if handler else "–",
            ]
        )
    return table(["milliseconds", "calls", "median", "p99", "longest", "budget of p99", "", "p99 of CPU"], rows)


async def measure(admissions: int = ADMISSIONS, *, first: bool = False) -> Admissions:
    """Raises ``BedError`` or ``KubeError`` if the cluster, ``TimeoutError`` if the webhook does not come up."""
    load = os.getloadavg()[0]
    settings = Settings(scheduler=False, controller_manager=False)
    with tempfile.TemporaryDirectory(prefix="interlace-bench-") as folder:
        async with ControlPlane(state_dir=Path(folder), settings=settings) as plane:
            config = plane.credentials("bench", groups=["system:masters"])
            async with Client(config, user_agent="bench", qps=0) as client:
                await _install(client)
                log = Path(folder) / "webhook.log"
                async with _webhook(plane, log, first=first) as port:
                    await _register(client, port)
                    for number in range(WARM):
                        await _create(client, f"warm-{number}", asks=True)
                    before = len(_decided(log))
                    asking, plain = [], []
                    for number in range(admissions):
                        asking.append(await _create(client, f"asks-{number}", asks=True))
                        plain.append(await _create(client, f"plain-{number}", asks=False))
                handler: dict[str, list[float]] = {}
                cpu: dict[str, list[float]] = {}
                for line in _decided(log)[before:]:
                    handler.setdefault(line["path"], []).append(line["milliseconds"])
                    cpu.setdefault(line["path"], []).append(line["cpu"])
        return Admissions(
            python=sys.version.split()[0],
            cores=os.cpu_count() or 1,
            load_before=round(load, 2),
            server=plane.version,
            first=first,
            handler=handler,
            cpu=cpu,
            asking=asking,
            plain=plain,
        )


async def _install(client: Client) -> None:
    for manifest in webhook_manifests(replicas=0):
        if "admissionregistration" not in manifest["apiVersion"]:
            await apply_manifest(client, manifest, manager="bench")
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}}
    await apply_manifest(client, account, manager="bench")  # there is no controller that makes it


@contextlib.asynccontextmanager
async def _webhook(plane: ControlPlane, log: Path, *, first: bool) -> AsyncIterator[int]:
    """The installed command as a process, with the rights of its ServiceAccount; yields its port."""
    kubeconfig = log.with_suffix(".kubeconfig")
    plane.write_kubeconfig(kubeconfig, _USER)
    command = [
        str(Path(sys.executable).with_name("interlace")),
        "serve",
        "webhook",
        "--listen=127.0.0.1:0",
        "--http-endpoint=127.0.0.1:0",
        "--certificate-names=127.0.0.1",
        f"--kubeconfig={kubeconfig}",
    ]
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            *command, stdout=out, stderr=out, env=os.environ | {"LOG_LEVEL": "debug"}
        )
    try:
        if first:
            os.sched_setscheduler(process.pid, os.SCHED_FIFO, os.sched_param(1))
        async with asyncio.timeout(START_LIMIT):
            ports: list[Any] = []
            while not ports:
                await asyncio.sleep(0.05)
                ports = [line["port"] for line in _lines(log) if line.get("event") == "listening"]
        yield int(ports[0])
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def _register(client: Client, port: int) -> None:
    """Have the API server call it, and wait until it does and trusts it."""
    for manifest in configurations(url=f"https://127.0.0.1:{port}"):
        await apply_manifest(client, manifest, manager="bench")
    async with asyncio.timeout(START_LIMIT):
        called = False
        while not called:
            await asyncio.sleep(0.05)
            try:
                called = "initContainers" in await _dry(client)
            except ApiError as error:  # it has no caBundle yet, or the API server has not heard of it
                if error.status != 500:
                    raise


async def _dry(client: Client) -> dict[str, Any]:
    made = await client.create(_PODS, _pod("first", asks=True), namespace="default", dry_run=True)
    spec: dict[str, Any] = made["spec"]
    return spec


async def _create(client: Client, name: str, *, asks: bool) -> float:
    """Milliseconds for one Pod."""
    began = time.perf_counter()
    made = await client.create(_PODS, _pod(name, asks=asks), namespace="default")
    taken = 1000 * (time.perf_counter() - began)
    assert ("initContainers" in made["spec"]) == asks
    return taken


def _pod(name: str, *, asks: bool) -> dict[str, Any]:
    main = {
        "name": "main",
        "image": "docker.io/library/train:1",
        "command": ["python3", "train.py"],
        "resources": {"limits": {"nvidia.com/gpu": "8"}},
    }
    labels = {names.FABRIC_LABEL: "auto"} if asks else {}
    spec = {"nodeSelector": {"cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb"}, "containers": [main]}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def _lines(log: Path) -> list[dict[str, Any]]:
    found = []
    for line in log.read_bytes().splitlines():
        with contextlib.suppress(msgspec.DecodeError):
            found.append(msgspec.json.decode(line, type=dict[str, Any]))
    return found


def _decided(log: Path) -> list[dict[str, Any]]:
    """The line of each decision so far."""
    return [line for line in _lines(log) if line.get("event") == "decided"]


def main() -> int:
    """Exit code 0 if the budget is met, else 1."""
    words = [word for word in sys.argv[1:] if word != "--first"]
    found = asyncio.run(measure(int(words[0]) if words else ADMISSIONS, first="--first" in sys.argv))
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_bytes(msgspec.json.encode(found) + b"\n")
    print(render(found))
    return 1 if any(percentile(values, 0.99) > BUDGET for values in found.handler.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
