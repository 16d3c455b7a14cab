"""Recorded measurements as logs: two that were published with the GKE guide on GPUDirect, and the real ones."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).parents[2] / "data"
HALF = "     time   algbw   busbw #wrong"


def published(name: str) -> list[str]:
    """``nccl-tcpxo`` (A3 Mega) or ``nccl-tcpx`` (A3 High) as it was published: no configuration, ranks or name.

    The file holds the numbers as they were printed; the program's layout is put around them again.
    """
    *rows, average = [
        each.split("\t")
        for each in (DATA / "seeds" / f"{name}.tsv").read_text().splitlines()
        if each and not each.startswith("#")
    ]
    lines = [f"#{'size':>11}{'count':>14}{'type':>7}{'redop':>8}{'root':>8}{HALF}{HALF}"]
    for size, count, kind, redop, root, *halves in rows:
        lines.append(f"{size:>12}  {count:>12}  {kind:>8}  {redop:>6}  {root:>6}  " + "  ".join(halves))
    return [*lines, "# Out of bounds values : 0 OK", f"# Avg bus bandwidth    : {average[-1]}"]


def recorded(name: str) -> list[str]:
    """A real log, of two GPUs joined by NVLink."""
    return (DATA / "nccl-logs" / name).read_text().splitlines()


def failed(name: str) -> list[str]:
    """A real log of a start that failed."""
    return (DATA / "nccl-failures" / f"{name}.txt").read_text().splitlines()
