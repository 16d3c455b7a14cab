"""Kubernetes quantities (``500m``, ``2Gi``, ``1e3``) as exact numbers.

Invariant: parsing never goes through binary floating point, so equal quantities compare equal
whatever their notation. As in Kubernetes, anything finer than one nano is rounded away from zero
and anything above 2**63 - 1 is cut to it.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Final

_PATTERN: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<digits>\d+\.?\d*|\.\d+)(?P<suffix>|[KMGTPE]i|[numkMGTPE]|[eE](?P<exponent>[+-]?\d+))",
    re.ASCII,
)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_LARGEST: Final = Fraction(2**63 - 1)
_NANO: Final = 10**9
_MAX_EXPONENT: Final = 1000
"""Far beyond both limits; keeps a hostile exponent from building a giant number."""


class QuantityError(ValueError):
    """The text is no quantity."""


def parse_quantity(value: str | float) -> Fraction:
    """The number that a quantity stands for; JSON numbers are quantities too.

    Raises ``QuantityError``.
    """
    text = value if isinstance(value, str) else repr(value)
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise QuantityError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    number = Fraction(match["digits"].rstrip(".") if match["digits"] != "." else "0")
    suffix = match["suffix"]
    if match["exponent"] is not None:
        exponent = max(-_MAX_EXPONENT, min(_MAX_EXPONENT, int(match["exponent"])))
        number *= Fraction(10) ** exponent
    elif suffix in _BINARY:
        number *= 1024 ** _BINARY[suffix]
    else:
        number *= Fraction(10) ** _DECIMAL[suffix]
    number = min(Fraction(math.ceil(number * _NANO), _NANO), _LARGEST)
    return -number if match["sign"] == "-" else number


def compare_quantities(left: str | float, right: str | float) -> int:
    """-1, 0 or 1 as ``left`` is smaller than, equal to or larger than ``right``."""
    a, b = parse_quantity(left), parse_quantity(right)
    return (a > b) - (a < b)


def is_quantity(value: object) -> bool:
    """Whether the value can be parsed."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    try:
        parse_quantity(value)
    except QuantityError:
        return False
    return True
