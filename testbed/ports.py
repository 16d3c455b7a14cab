"""Ports on loopback for clusters that start side by side, also from different processes.

A port is claimed by an abstract unix socket named after it. Such a name lives in the same network
namespace as the port, exists once, leaves no file, and goes when the last process that holds it dies:
programs inherit the claim, so it lasts as long as they run. Ports come from below the range from which
the kernel takes ports for outgoing connections, or one of these could be in the way later.
"""

from __future__ import annotations

import errno
import random
import socket
from pathlib import Path
from types import TracebackType
from typing import Self

from testbed.errors import BedError

LOWEST = 20000
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
TRIES = 1000


def port_range() -> range:
    """Ports to choose from: from 20000 up to the kernel's own range."""
    try:
        first = int(EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        first = 32768
    return range(LOWEST, first) if first > LOWEST + 1000 else range(LOWEST, 60000)


class Claim:
    """A port that no other cluster takes while the claim is held."""

    def __init__(self, port: int, holder: socket.socket) -> None:
        self.port = port
        self._holder = holder

    def fileno(self) -> int:
        """Descriptor for a program to inherit."""
        return self._holder.fileno()

    def release(self) -> None:
        """Give the port back, as far as this process is concerned."""
        self._holder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def claim(*, choice: random.Random | None = None) -> Claim:
    """Claim a port on which nobody listens; ``BedError`` if there is none."""
    choice = choice or random.Random()
    ports = port_range()
    for _ in range(TRIES):
        port = choice.choice(ports)
        holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            holder.bind(f"\0interlace-testbed-port-{port}")
            if _free(port):
                return Claim(port, holder)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        holder.close()
    raise BedError(f"no free port found on 127.0.0.1 from {ports.start} to {ports.stop - 1}; end some clusters")


def _free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
