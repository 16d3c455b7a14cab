"""``interlace gke export``: a cluster file in the languages of other tools."""

from __future__ import annotations

import click

from interlace.cli.gke_file import file_option, judged_file, refusing


@click.command("export")
@file_option
@click.option(
    "--as",
    "form",
    required=True,
    type=click.Choice(["gcloud", "terraform", "requests"]),
    help="gcloud: a shell script that may be run again; terraform: *.tf.json; requests: bare REST requests.",
)
def export(*, file: str, form: str) -> None:
    """Print the cluster as a gcloud script, as Terraform JSON or as REST requests. Nothing is sent.

    What the other tool says otherwise goes to stderr, and stands in the text as a comment.
    """
    from interlace.gke.desired import desired
    from interlace.gke.export.gcloud import as_script
    from interlace.gke.export.requests import as_requests
    from interlace.gke.export.terraform import as_terraform

    cluster = judged_file(file).cluster
    title = f"GKE cluster {cluster.name} in {cluster.spec.location}, family {cluster.family.id}"
    with refusing():
        resources = desired(cluster)
        if form == "gcloud":
            exported = as_script(resources, title=title)
        elif form == "terraform":
            exported = as_terraform(resources, title=title)
        else:
            exported = as_requests(resources)
    click.echo(exported.text, nl=False)
    for note in exported.notes:
        click.echo(f"interlace: {note}", err=True)
