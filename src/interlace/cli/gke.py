"""``interlace gke``: the group of verbs around one file that describes a GKE cluster."""

from __future__ import annotations

from typing import ClassVar

import click

from interlace.cli.main import Verbs


class Steps(Verbs):
    """Verbs of ``gke``, each imported when it is called."""

    table: ClassVar[dict[str, tuple[str, str]]] = {
        "init": ("interlace.cli.gke_init:init", "Write a commented start of a cluster file."),
        "validate": ("interlace.cli.gke_validate:validate", "Check a cluster file; nothing is sent."),
        "plan": ("interlace.cli.gke_plan:plan", "Say what has to happen so that it is as the file says."),
        "apply": ("interlace.cli.gke_apply:apply", "Make it so; go on where a run was ended."),
        "drift": ("interlace.cli.gke_drift:drift", "Show what differs from the file by now."),
        "adopt": ("interlace.cli.gke_adopt:adopt", "Take over what exists under the names of the file."),
        "destroy": ("interlace.cli.gke_destroy:destroy", "Take away what was made, and nothing else."),
        "import": ("interlace.cli.gke_import:import_", "Read gcloud commands: a cluster file, or requests."),
        "export": ("interlace.cli.gke_export:export", "Print it as gcloud script, Terraform JSON or requests."),
        "check": ("interlace.cli.gke_check:check", "Say what is wrong with a cluster, or in the way of one."),
        "versions": ("interlace.cli.gke_versions:versions", "List GKE versions that a family works on."),
    }


@click.group(cls=Steps)
def gke() -> None:
    """Make a GKE cluster for GPUDirect from one file, and keep it as the file says."""
