"""What the tests around imex-host share: orders, own loopback addresses, simulated nodes, waiting."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import shlex
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from interlace.imex.control import HostLink
from interlace.imex.host import HostSettings, serve
from interlace.imex.names import node_map
from interlace.imex.order import Order, State
from interlace.sim.imex import install

DOMAIN = "6f1e8a8e-0c4e-4f57-9d0e-3f8f5f2f7a10"
OTHER_DOMAIN = "0d5a2f0e-6a53-4a55-8a6c-2b7a4c1d9e22"


def loopback_net() -> str:
    """First three numbers of a loopback net that no other test uses at the same time, most probably."""
    return f"127.{random.randint(16, 254)}.{random.randint(1, 254)}"


def make_order(
    index: int,
    present: dict[int, str],
    *,
    domain: str = DOMAIN,
    slots: int = 4,
    config: dict[str, str] | None = None,
) -> Order:
    names, addresses = node_map(domain, rows=present.items(), slots=slots)
    return Order(domain=domain, index=index, names=names, addresses=addresses, config=config or {})


async def until(condition: Callable[[], bool], *, within: float = 20.0, what: str = "") -> None:
    """Return as soon as the condition holds; AssertionError naming ``what`` when time is over."""
    try:
        async with asyncio.timeout(within):
            while not condition():  # noqa: ASYNC110  what is waited for is in other processes
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"not within {within} s: {what or condition}") from None


@contextlib.contextmanager
def short_folder() -> Iterator[Path]:
    """A folder whose path leaves room for unix sockets below it; processes that name it end with it."""
    with tempfile.TemporaryDirectory(prefix="imex") as name:
        try:
            yield Path(name)
        finally:
            for entry in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):
                    if f"{name}/".encode() in (entry / "cmdline").read_bytes():
                        os.kill(int(entry.name), signal.SIGKILL)


@dataclass
class Node:
    """One simulated node with its imex-host in this process and an agent's link to it."""

    root: Path
    address: str
    link: HostLink
    states: list[State | None]
    task: asyncio.Task[None]

    @property
    def state(self) -> State:
        return self.link.state or State()

    @property
    def log(self) -> str:
        """Everything that nvidia-imex of this node logged."""
        return "".join(path.read_text() for path in sorted(self.root.glob("r/*/imex.log")))

    def ready(self, domain: str = DOMAIN) -> bool:
        return self.state.phase == "Ready" and self.state.domain == domain

    async def until(self, condition: Callable[[State], bool], *, within: float = 20.0, what: str = "") -> None:
        try:
            await until(lambda: condition(self.state), within=within, what=what)
        except AssertionError as error:
            raise AssertionError(f"{error}; state {self.state}; log:\n{self.log}") from None


def settings_for(root: Path, address: str) -> HostSettings:
    return HostSettings(
        socket=root / "host.sock",
        run_dir=root / "r",
        driver_root=root,
        hosts_file=root / "hosts",
        address=address,
        http_port=-1,
    )


def set_faults(folder: Path, **faults: object) -> None:
    new = folder / "faults.new"
    new.write_text(json.dumps(faults))
    new.replace(folder / "faults.json")


@contextlib.asynccontextmanager
async def nodes(count: int, *, start_delay: float = 0.01) -> AsyncIterator[list[Node]]:
    """``count`` simulated nodes with idle hosts that share one faults file (``root.parent / "faults.json"``)."""
    net = loopback_net()
    with short_folder() as folder:
        async with asyncio.TaskGroup() as group:
            tasks, made = [], []
            for index in range(count):
                root, address = folder / f"n{index}", f"{net}.{index + 1}"
                root.mkdir()
                (root / "hosts").write_text("127.0.0.1\tlocalhost\n")
                install(root, hosts_file=root / "hosts", faults=folder / "faults.json", start_delay=start_delay)
                link = HostLink(root / "host.sock")
                host = group.create_task(serve(settings_for(root, address)))
                tasks += [host, group.create_task(link.run())]
                node = Node(root, address, link, [], host)
                link.on_state(node.states.append)
                made.append(node)
            for node in made:
                await until(lambda node=node: node.link.state is not None, what="the host answers")  # type: ignore[misc]
            try:
                yield made
            finally:
                for task in tasks:
                    task.cancel()


def replace_program(root: Path, body: str) -> None:
    """Put a Python program of the test in the place of ``nvidia-imex``; ``CFG`` holds the path of its config."""
    script = root / "fake.py"
    script.write_text(f"import os, signal, sys, time\nCFG = sys.argv[sys.argv.index('-c') + 1]\n{body}\n")
    program = root / "usr/bin/nvidia-imex"
    program.unlink(missing_ok=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, "-S", str(script)])} "$@"\n')
    program.chmod(0o755)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
