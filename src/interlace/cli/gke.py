"""``interlace gke``: the group of verbs around one file that describes a GKE cluster."""

from __future__ import annotations

from typing import ClassVar

import click

from interlace.cli.main import Verbs


class Steps(Verbs):
    """Verbs of ``gke``, each imported when it is called."""

    table: ClassVar[dict[str, tuple[str, str]]] = {
        "init": ("interlace.cli.gke_init:init", "Write a commented start of a cluster file."),
        "export": ("interlace.cli.gke_export:export", "Print it as gcloud script, Terraform JSON or requests."),
    }


@click.group(cls=Steps)
def gke() -> None:
    """Make a GKE cluster for GPUDirect from one file, and keep it as the file says."""
