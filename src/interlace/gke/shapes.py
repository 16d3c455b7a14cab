"""What machines consist of, as the price catalogue sells it: for live prices only.

Sources: GPUs from the family files; vCPUs and memory of A3 machines from the machine page of Compute Engine. The words
in the catalogue's descriptions were not verified against a live answer, so a price is shown only where each part has
exactly one row.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from interlace.gke.prices import Shape

_SHAPES: Final[Mapping[str, Shape]] = MappingProxyType(
    {
        "a3-highgpu-8g": Shape(family="A3", cores=208, ram_gib=1872, gpus=8, gpu="Nvidia H100 80GB"),
        "a3-megagpu-8g": Shape(family="A3Plus", cores=208, ram_gib=1872, gpus=8, gpu="Nvidia H100 80GB Mega"),
    }
)


def shapes() -> Mapping[str, Shape]:
    """By machine type."""
    return _SHAPES
