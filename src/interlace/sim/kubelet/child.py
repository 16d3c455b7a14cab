"""A component in a process of its own: ``python -m interlace.sim.kubelet.child SPEC``.

SPEC is the JSON file that the hollow node wrote. The process dies with its parent, so that a
killed test leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import ctypes
import signal
import sys
from pathlib import Path

import msgspec

from interlace.kube.log import configure
from interlace.kube.program import until_signal
from interlace.sim.kubelet.container import ContainerRecord
from interlace.sim.kubelet.programs import run_component

_PR_SET_PDEATHSIG = 1


class Spec(msgspec.Struct, frozen=True):
    """What to run, and on which machine."""

    record: ContainerRecord
    root: str
    clique: str
    gpus: int


def main() -> None:
    """Entry point."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    configure("info", json=True)
    spec = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Spec, dec_hook=lambda kind, value: kind(value))
    component = run_component(spec.record, root=Path(spec.root), clique=spec.clique, gpus=spec.gpus)
    asyncio.run(until_signal(component))


if __name__ == "__main__":
    main()
