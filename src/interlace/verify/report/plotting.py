"""matplotlib, asked for only when a figure is drawn, and set up so that nothing of the machine shows in it.

Invariant: the same data give the same bytes, whatever settings the user has for matplotlib; text stays text, and is
never read as mathematics.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from interlace.verify.report.palette import stand_in

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class PlottingError(Exception):
    """Figures cannot be drawn; the message is a sentence with the remedy."""


_SETTINGS: Final[dict[str, Any]] = {
    "svg.hashsalt": "interlace",
    "svg.fonttype": "none",
    "svg.image_inline": True,
    "text.parse_math": False,
    "text.usetex": False,
    "axes.unicode_minus": False,
    "path.simplify": False,
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "legend.frameon": False,
    "text.color": stand_in("ink"),
    "axes.labelcolor": stand_in("ink"),
    "axes.edgecolor": stand_in("quiet"),
    "xtick.color": stand_in("quiet"),
    "ytick.color": stand_in("quiet"),
    "xtick.labelcolor": stand_in("ink"),
    "ytick.labelcolor": stand_in("ink"),
    "legend.labelcolor": stand_in("ink"),
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
}


@contextmanager
def figure(*, width: float, height: float) -> Iterator[Figure]:
    """An empty figure of that many inches, with our settings while it is drawn. Raises PlottingError."""
    try:
        import matplotlib as mpl  # noqa: PLC0415  only those who want figures have it
        from matplotlib.figure import Figure as Canvas  # noqa: PLC0415
    except ImportError as error:
        raise PlottingError(
            f"the figures of a report need matplotlib, which cannot be imported ({error});"
            " install it with `pip install 'interlace[report]'`, or ask for --json, --csv or --markdown"
        ) from None
    with mpl.rc_context():
        mpl.rcdefaults()
        for name, value in _SETTINGS.items():
            mpl.rcParams[name] = value  # type: ignore[index]  # the stubs want literal names
        yield Canvas(figsize=(width, height))


def svg_of(drawn: Figure) -> str:
    """The figure as SVG without date or maker, as large as what is drawn and written in it."""
    buffer = io.StringIO()
    with warnings.catch_warnings():
        # Names may hold characters that no font of ours measures; the browser has fonts of its own.
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from font", category=UserWarning)
        nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
        drawn.savefig(buffer, format="svg", metadata=nothing, bbox_inches="tight", pad_inches=0.05)
    return buffer.getvalue()
