"""Simulated machines: trays of NVLink racks, each with a root folder and loopback addresses.

Invariant: no two trays of any cluster on this computer share an address. A cluster claims a
block of ``127.0.0.0/8`` by holding a bound socket for as long as it lives.
"""

from __future__ import annotations

import random
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

_CLAIM_PORT = 49999
_LISTEN = "0A"
"""The state in ``/proc/net/tcp``."""
_NODES_PER_BLOCK = 250


class Tray(msgspec.Struct, frozen=True, kw_only=True):
    """One simulated machine."""

    name: str
    root: Path
    """Stands for ``/`` of the machine; what a pod mounts from the host lies below it."""
    network: str
    """First three octets of its addresses: the machine is ``.1``, pods follow."""
    clique: str = ""
    """``<cluster uuid>.<number>`` of its NVLink partition; empty without a fabric."""
    gpus: int = 4
    labels: dict[str, str] = {}

    @property
    def address(self) -> str:
        """Address of the machine itself."""
        return f"{self.network}.1"


@contextmanager
def claim_networks(count: int) -> Iterator[list[str]]:
    """Yield ``count`` networks (``127.a.b``) that nobody else on this computer holds.

    Blocks in which somebody listens are left out too: a ``nvidia-imex`` outlives what started it, also the test
    run that was killed, and would keep its address from ours.

    Raises OSError when a hundred random blocks were all taken.
    """
    blocks = -(-count // _NODES_PER_BLOCK)
    held: list[socket.socket] = []
    taken = _listening()
    try:
        for _ in range(100):
            first = random.randrange(16, 240 - blocks)
            if not taken.isdisjoint(range(first, first + blocks)):
                continue
            try:
                for block in range(first, first + blocks):
                    claim = socket.socket()
                    held.append(claim)
                    claim.bind((f"127.{block}.255.254", _CLAIM_PORT))
            except OSError:
                _close(held)
                continue
            yield [f"127.{first + i // _NODES_PER_BLOCK}.{i % _NODES_PER_BLOCK + 1}" for i in range(count)]
            return
        message = f"no block of {blocks} free loopback networks was found in 100 tries"
        raise OSError(message)
    finally:
        _close(held)


def _listening(table: Path = Path("/proc/net/tcp")) -> set[int]:
    """The second octets of all 127.x addresses on which somebody listens; 127.0 apart."""
    rows = [line.split() for line in table.read_text().splitlines()[1:]]
    addresses = [bytes.fromhex(row[1].partition(":")[0])[::-1] for row in rows if row[3] == _LISTEN]
    return {address[1] for address in addresses if address[0] == 127} - {0}


def _close(sockets: list[socket.socket]) -> None:
    for one in sockets:
        one.close()
    sockets.clear()


def build_trays(
    networks: list[str], *, root: Path, per_clique: int = 18, fabric: bool = True, prefix: str = "tray"
) -> list[Tray]:
    """One tray a network, named ``<prefix>-00``…, with ``per_clique`` of them to an NVLink partition."""
    rack = uuid.uuid4()
    return [
        Tray(
            name=f"{prefix}-{i:02d}",
            root=root / f"{prefix}-{i:02d}",
            network=network,
            clique=f"{rack}.{i // per_clique}" if fabric else "",
        )
        for i, network in enumerate(networks)
    ]


def control_machine(network: str, *, root: Path) -> Tray:
    """A machine without GPUs, for the control programs."""
    return Tray(name="control-0", root=root / "control-0", network=network, gpus=0)
