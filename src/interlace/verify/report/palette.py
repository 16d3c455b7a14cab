"""Colours of a report, in light and in dark, and how much they differ.

Lines take the palette of Okabe and Ito (2008), darkened for light pages and lightened for dark ones; cells of a heat
map take five steps of cividis (Nunez, Anderton and Renslow, 2018), whose lightness rises with every step, so that
both read with any kind of colour vision and in grey. Invariant: text has a contrast of at least 4.5 to what is behind
it, lines and marks of at least 3 (WCAG 2.2, 1.4.3 and 1.4.11); colour never is the only sign.
"""

from __future__ import annotations

import re
from typing import Final

LIGHT: Final = {
    "page": "#ffffff",
    "panel": "#f4f6f8",
    "ink": "#1a1d21",
    "quiet": "#4d5560",
    "grid": "#d5dae0",
    "link": "#005a8c",
    "first": "#0072b2",
    "second": "#c25400",
    "bound": "#1a1d21",
    "good": "#00805d",
    "middling": "#9a6a00",
    "bad": "#a32900",
    "before": "#8f3f70",
    "none": "#e6e9ed",
}
DARK: Final = {
    "page": "#14171a",
    "panel": "#1d2125",
    "ink": "#e8eaed",
    "quiet": "#aeb6c0",
    "grid": "#3a4149",
    "link": "#7cc4f0",
    "first": "#56b4e9",
    "second": "#f0a35e",
    "bound": "#e8eaed",
    "good": "#2fc79b",
    "middling": "#e6b84c",
    "bad": "#ff8a66",
    "before": "#e0a3c6",
    "none": "#2b3036",
}
HEAT: Final = ("#00224e", "#434e6c", "#7d7c78", "#bcae6c", "#fee838")
"""From the slowest to the fastest; the same in light and dark."""
BADGES: Final = {
    "pass": ("#ffffff", "#00664b"),
    "degraded": ("#1a1d21", "#e69f00"),
    "fail": ("#ffffff", "#a32900"),
    "cannot tell": ("#ffffff", "#4d5560"),
}
"""Text and background of each verdict."""
SIGNS: Final = {"pass": "✓", "degraded": "▼", "fail": "✕", "cannot tell": "?"}
CLIQUES: Final = ("first", "second", "good", "before", "middling")
"""Variables that colour cliques, one after the other; each clique also has a letter."""

_STAND_IN = re.compile(r"#fe01([0-9a-f]{2})")
_NAMES: Final = tuple(LIGHT)


def stand_in(name: str) -> str:
    """A colour that stands for the variable in what a drawing library writes."""
    return f"#fe01{_NAMES.index(name):02x}"


def with_variables(text: str) -> str:
    """``text`` with every stand-in replaced by its CSS variable."""
    return _STAND_IN.sub(lambda found: f"var(--{_NAMES[int(found[1], 16)]})", text)


def ink_on(colour: str) -> str:
    """Black or white, whichever is easier to read on it."""
    return max(("#000000", "#ffffff"), key=lambda ink: contrast(ink, colour))


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours by WCAG 2.2: from 1 to 21."""
    lights = sorted((luminance(one), luminance(other)))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def luminance(colour: str) -> float:
    """Relative luminance of ``#rrggbb`` by WCAG 2.2: from 0 to 1."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def css() -> str:
    """The variables; paper is always light."""
    light, dark = (" ".join(f"--{name}: {value};" for name, value in each.items()) for each in (LIGHT, DARK))
    return (
        f":root {{ color-scheme: light; {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ color-scheme: dark; {dark} }} }}\n"
    )
