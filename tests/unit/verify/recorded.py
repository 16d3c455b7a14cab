"""Tables that were published: all_gather on 2 x 8 H100 (GKE guide on GPUDirect), as time in us by size.

Only their numbers are kept here; the lines around them are those that the program prints.
"""

from __future__ import annotations

from typing import Final

MIB: Final = 2**20

TCPXO: Final = (
    (4654.5, 0.23, 0.21, 3890.9, 0.27, 0.25),
    (4117.2, 0.51, 0.48, 5153.5, 0.41, 0.38),
    (6417.4, 0.65, 0.61, 7295.5, 0.57, 0.54),
    (7872.1, 1.07, 1.00, 6451.4, 1.30, 1.22),
    (6990.7, 2.40, 2.25, 5609.3, 2.99, 2.80),
    (8254.0, 4.07, 3.81, 7415.1, 4.53, 4.24),
    (5546.3, 12.10, 11.34, 6484.0, 10.35, 9.70),
    (6507.3, 20.63, 19.34, 6015.4, 22.31, 20.92),
    (6744.1, 39.80, 37.32, 7023.1, 38.22, 35.83),
    (8939.8, 60.05, 56.30, 11706, 45.86, 43.00),
    (8241.7, 130.28, 122.14, 8375.2, 128.20, 120.19),
)
"""A3 Mega with TCPXO: 1 MiB to 1 GiB."""

TCPX: Final = (
    (696.8, 1.50, 1.41, 729.0, 1.44, 1.35),
    (776.4, 2.70, 2.53, 726.7, 2.89, 2.71),
    (774.3, 5.42, 5.08, 805.1, 5.21, 4.88),
    (812.1, 10.33, 9.68, 817.6, 10.26, 9.62),
    (1035.2, 16.21, 15.19, 1067.8, 15.71, 14.73),
    (1183.3, 28.36, 26.59, 1211.8, 27.69, 25.96),
    (1593.4, 42.12, 39.49, 1510.5, 44.43, 41.65),
    (2127.8, 63.08, 59.13, 2312.7, 58.03, 54.41),
    (3603.0, 74.50, 69.85, 3586.2, 74.85, 70.17),
    (7101.7, 75.60, 70.87, 7060.9, 76.03, 71.28),
)
"""A3 High with TCPX: 1 MiB to 512 MiB."""


def published(rows: tuple[tuple[float, ...], ...], average: str) -> list[str]:
    """The table as it was published: no configuration, no ranks, no name."""
    half = "     time   algbw   busbw #wrong"
    lines = [f"#{'size':>11}{'count':>14}{'type':>7}{'redop':>8}{'root':>8}{half}{half}"]
    for step, (time, algbw, busbw, time_in, algbw_in, busbw_in) in enumerate(rows):
        size = MIB << step
        lines.append(
            f"{size:12d}  {size // 64:12d}     float    none      -1  {time:>7}  {algbw:6.2f}  {busbw:6.2f}      0"
            f"  {time_in:>7}  {algbw_in:6.2f}  {busbw_in:6.2f}      0"
        )
    return [*lines, "# Out of bounds values : 0 OK", f"# Avg bus bandwidth    : {average}"]
