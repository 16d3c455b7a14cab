"""A component that also says how many asyncio tasks it has: ``python -m bench.scale.counted SPEC``.

Runs what ``interlace.sim.kubelet.child`` runs, and writes the number into SPEC with ``.tasks`` behind, once a
second. The process dies with its parent.
"""

from __future__ import annotations

import asyncio
import ctypes
import signal
import sys
from pathlib import Path
from typing import Final

import msgspec

from interlace.kube.log import configure
from interlace.kube.program import until_signal
from interlace.sim.kubelet.child import Spec
from interlace.sim.kubelet.programs import run_component

SUFFIX: Final = ".tasks"
_PR_SET_PDEATHSIG: Final = 1


async def _count(file: Path) -> None:
    new = file.with_name(file.name + ".new")
    while True:
        new.write_text(str(len(asyncio.all_tasks())))
        new.replace(file)
        await asyncio.sleep(1)


async def _run(spec: Spec, *, file: Path) -> None:
    component = run_component(spec.record, root=Path(spec.root), clique=spec.clique, gpus=spec.gpus)
    async with asyncio.TaskGroup() as group:
        counting = group.create_task(_count(file))
        try:
            await component
        finally:
            counting.cancel()


def main() -> None:
    """Entry point."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    configure("error", json=True)
    path = Path(sys.argv[1])
    spec = msgspec.json.decode(path.read_bytes(), type=Spec, dec_hook=lambda kind, value: kind(value))
    asyncio.run(until_signal(_run(spec, file=path.with_name(path.name + SUFFIX))))


if __name__ == "__main__":
    main()
