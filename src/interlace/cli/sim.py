"""``interlace sim``: serve what Interlace talks to, simulated, to try things out without a cluster or a project.

Invariant: what is served is simulated, and the first line on stdout says so.
"""

from __future__ import annotations

from typing import ClassVar

import click

from interlace.cli.main import Verbs


class Simulations(Verbs):
    """Verbs of ``sim``, each imported when it is called."""

    table: ClassVar[dict[str, tuple[str, str]]] = {
        "gke": ("interlace.cli.sim_gke:gke", "Serve a simulation of the Google APIs, for --endpoint."),
    }


@click.group(cls=Simulations)
def sim() -> None:
    """Serve a simulation of what Interlace talks to."""
