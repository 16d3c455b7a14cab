"""What NCCL's own lines tell about a run: network, paths of the channels, size of the communicator.

Invariant: a fact comes from a line that states it; a network that was chosen but carries no channel is not the
transport.
"""

from __future__ import annotations

import re

_USING = re.compile(r"Using network (.{1,60}?)\s*$", re.ASCII)
_VIA = re.compile(r" via ([A-Z0-9]+)/?([^/]*)", re.ASCII)
_COMM = re.compile(r"\bnranks (\d{1,9})\b", re.IGNORECASE | re.ASCII)
_NODES = re.compile(r"\bnNodes (\d{1,9})\b", re.ASCII)
_NVLINK = re.compile(r"\bMNNVL 1\b|\b[1-9]\d* nvls channels", re.ASCII)
WORDS = (b"Using network ", b" via ", b"nranks ", b"nRanks ", b"MNNVL ", b" nvls channels")
"""A line without one of these states no fact."""


class Facts:
    """Gathered between two tables."""

    def __init__(self) -> None:
        self.network: str | None = None
        self.paths: dict[str, None] = {}
        """Networks and other paths of channels, in the order of their first lines."""
        self.nvlink = False
        self.ranks = 0
        self.nodes = 0

    def see(self, text: str) -> None:
        """Take what one line of NCCL states."""
        if match := _VIA.search(text):
            path = match[2].strip() if match[1] == "NET" else match[1]
            if path and len(self.paths) < 16:
                self.paths[path] = None
        elif match := _USING.search(text):
            self.network = match[1]
        else:
            self.nvlink |= bool(_NVLINK.search(text))
            if match := _COMM.search(text):
                self.ranks = max(self.ranks, int(match[1]))
            if match := _NODES.search(text):
                self.nodes = max(self.nodes, int(match[1]))

    @property
    def transport(self) -> str | None:
        """What carried the data furthest: networks before NVLink across nodes, that before paths inside a node."""
        networks = [path for path in self.paths if path not in {"P2P", "SHM", "CollNet", "COLLNET"}]
        if networks:
            return "+".join(networks)
        if self.nvlink:
            return "NVLink"
        if self.paths:
            return "P2P" if "P2P" in self.paths else next(iter(self.paths))
        return None if self.nodes == 1 else self.network
