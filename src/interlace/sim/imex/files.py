"""Files that the simulated programs read: config, hosts, node map, faults; and the one way they log.

Shared by both programs and installed beside them. Like them it keeps to modules written in C,
because each import of a Python module would cost more than all the work done here.
"""

import _socket
import posix
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def log(level: str, text: str) -> None:
    """Write one line to stderr."""
    posix.write(2, f"[{time.strftime('%b %d %Y %H:%M:%S')}] [simulated nvidia-imex] [{level}] {text}\n".encode())


def read_text(path: str) -> str:
    """The whole file."""
    with open(path, encoding="utf-8") as file:  # noqa: PTH123  pathlib costs more than this whole program
        return file.read()


def read_config(path: str) -> dict[str, str]:
    """Keys and values of a config file; later lines win."""
    config = {}
    for line in read_text(path).splitlines():
        key, separator, value = line.partition("=")
        if separator and not key.lstrip().startswith("#"):
            config[key.strip()] = value.strip()
    return config


def read_hosts(path: str) -> dict[str, str]:
    """Name to address, the first line wins, as in the C library."""
    table: dict[str, str] = {}
    for line in read_text(path).splitlines():
        address, *names = line.partition("#")[0].split() or [""]
        for name in names:
            table.setdefault(name, address)
    return table


def map_hash(names: list[str]) -> str:
    """FNV-1a over the node names in order: members with another list are refused."""
    value = 0xCBF29CE484222325
    for byte in "\n".join(names).encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def family(address: str) -> int:
    """Socket family of an address."""
    return _socket.AF_INET6 if ":" in address else _socket.AF_INET


class Faults:
    """The faults file, read again when it changes; every fault is True or a list of indexes, names or addresses."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.stamp: tuple[int, int] | None = None
        self.table: dict[str, Any] = {}
        self.pairs: list[list[object]] = []
        """Pairs of nodes that cannot reach each other."""

    def refresh(self) -> bool:
        """True if the file changed since the last look."""
        try:
            status = posix.stat(self.path)
            stamp = (status.st_mtime_ns, status.st_size)
        except OSError:
            stamp = None
        if stamp == self.stamp:
            return False
        self.stamp = stamp
        self.table = {}
        if stamp is not None and stamp[1] > 2:
            import json  # noqa: PLC0415  most runs have no faults

            try:
                self.table = dict(json.loads(read_text(self.path)))
            except (OSError, ValueError, TypeError) as error:
                log("ERROR", f"faults file {self.path} ignored: {error}")
        blocked = self.table.get("blocked")
        pairs = blocked if isinstance(blocked, list) else []
        self.pairs = [pair for pair in pairs if isinstance(pair, list) and len(pair) == 2]
        return True
