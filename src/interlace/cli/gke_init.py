"""``interlace gke init``: the start of a cluster file."""

from __future__ import annotations

import click


@click.command("init")
@click.option("--family", "family_name", required=True, metavar="F", help="Hardware family or machine type: a3-mega.")
@click.option("--name", default="", metavar="NAME", help="Of the cluster; else that of the family.")
@click.option("--project", default="", metavar="ID", help="Else the one of gcloud's configuration.")
@click.option("--location", default="", metavar="ZONE", help="Zone or region; else the one of gcloud's configuration.")
def init(*, family_name: str, name: str, project: str, location: str) -> None:
    """Write a commented start of a cluster file to stdout: interlace gke init --family a3-mega > cluster.yaml

    Project and location are those of gcloud's configuration on this machine, if it has any; gcloud is not run.
    """
    import os
    from datetime import UTC, datetime
    from pathlib import Path

    from interlace.cli.families import known_family
    from interlace.cli.gke_file import refusing
    from interlace.gke.defaults import configured
    from interlace.gke.start import start

    family = known_family(family_name)
    found = configured(os.environ, home=Path.home())
    with refusing():
        text = start(
            family,
            name=name or family.id,
            project=project or found.project,
            location=location or found.location,
            today=datetime.now(UTC).date(),
        )
    click.echo(text, nl=False)
    taken = [
        word
        for word, given, value in (("project", project, found.project), ("location", location, found.location))
        if value and not given
    ]
    if taken:
        click.echo(f"interlace: {' and '.join(taken)} taken from {found.source}", err=True)
    missing = [
        word
        for word, value in (("project", project or found.project), ("location", location or found.location))
        if not value
    ]
    if missing:
        click.echo(f"interlace: write your {' and '.join(missing)} into the file", err=True)
