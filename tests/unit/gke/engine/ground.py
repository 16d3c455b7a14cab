"""The simulated cloud over HTTP in a thread of its own, and the command line beside it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from click.testing import CliRunner, Result

from interlace.cli.main import main
from interlace.sim.gke import Fault, GkeServer, serve_gke
from tests.unit.gke.engine.sky import SMALL

SECONDS = 0.01
"""Of each operation; nothing in a test depends on it."""


class Ground:
    """A server, and verbs that are pointed at it."""

    def __init__(self, server: GkeServer, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.file = folder / "cluster.yaml"
        self.write(SMALL)

    def write(self, text: str) -> None:
        """Make ``text`` the cluster file."""
        self.file.write_text(text, encoding="utf-8")

    def arguments(self, verb: str, *more: str) -> list[str]:
        """A whole command line after the program's name."""
        state = str(self.folder / "state")
        return ["gke", verb, "-f", str(self.file), "--endpoint", self.server.url, "--state", state, *more]

    def run(self, verb: str, *more: str, input: str | None = None) -> Result:
        """Call a verb in this process."""
        return CliRunner().invoke(main, self.arguments(verb, *more), input=input)

    def mutations(self) -> list[str]:
        """What came to change something: method, path, and what is made."""
        found = []
        for entry in self.server.log.mutations():
            body = entry.request.body or {}
            name = (body.get("cluster") or body.get("nodePool") or body).get("name", "")
            found.append(f"{entry.line} {name}".rstrip())
        return found

    def made(self) -> list[str]:
        """Paths of what did not stand there before."""
        store = self.server.store
        return sorted(set(store.objects) - store.foreign)


@contextmanager
def ground(folder: Path, *faults: Fault, seconds: float = SECONDS) -> Iterator[Ground]:
    """Serve until the block ends."""
    ready, stop = threading.Event(), threading.Event()
    served: list[GkeServer] = []

    async def serve() -> None:
        async with serve_gke(latency=seconds, faults=faults) as server:
            served.append(server)
            ready.set()
            await asyncio.to_thread(stop.wait, 110)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    try:
        assert ready.wait(30)
        yield Ground(served[0], folder)
    finally:
        stop.set()
        thread.join(30)
