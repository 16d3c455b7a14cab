"""How long to wait after the n-th failure in a row.

Invariant: never more than the cap, never less than half of the exponential step, and spread at
random in between, so that many who failed together do not come back together.
"""

from __future__ import annotations

import random


def backoff(failures: int, *, base: float, cap: float) -> float:
    """Seconds to wait after ``failures`` failures in a row (1 or more): about ``base * 2**(failures - 1)``."""
    step = min(cap, base * 2.0 ** min(failures - 1, 60))
    return step * random.uniform(0.5, 1.0)
