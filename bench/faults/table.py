"""The fault table: all rows, in the order in which they are shown."""

from __future__ import annotations

from typing import Final

from bench.faults import clocks, files, imex, kills, nodes, objects, races, server, streams
from bench.faults.row import Row

FAMILIES: Final[tuple[tuple[str, tuple[Row, ...]], ...]] = (
    ("Processes are killed", kills.ROWS),
    ("The control plane is away", server.ROWS),
    ("Connections and credentials", streams.ROWS),
    ("Machines go and come back", nodes.ROWS),
    ("Files and disks", files.ROWS),
    ("nvidia-imex and the driver", imex.ROWS),
    ("Domains and schedulers that race", races.ROWS),
    ("Clocks", clocks.ROWS),
    ("Hostile objects", objects.ROWS),
)
ROWS: Final[tuple[Row, ...]] = tuple(row for _, rows in FAMILIES for row in rows)
