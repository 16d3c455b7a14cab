"""``interlace gke validate``: a cluster file against its form and the rules, without asking anybody."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from interlace.cli.exits import Code, Exit
from interlace.cli.gke_file import file_option, findings_in, read_file, sentence

if TYPE_CHECKING:
    from interlace.gke.reading import Document


@click.command("validate")
@file_option
@click.option("--json", "as_json", is_flag=True, help="Print a list of findings for programs instead.")
def validate(*, file: str, as_json: bool) -> None:
    """Check a cluster file: form, names, address ranges, rules. Nothing is sent.

    Exit code 0: it can be made; 2: it cannot, with the place of everything that is wrong.
    """
    document = read_file(file)
    findings = findings_in(document)
    if as_json:
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(findings), indent=2))
    else:
        for finding in findings:
            click.echo(f"{finding.severity}: {sentence(finding, document)}")
        _say(document)
    if any(each.severity == "error" for each in findings):
        raise Exit(Code.REFUSED)


def _say(document: Document) -> None:
    """What follows from the file, in a few lines."""
    from interlace.gke.addresses import plan
    from interlace.gke.desired import desired
    from interlace.gke.names import nics, primary

    cluster = document.cluster
    addresses, _ = plan(cluster)
    gpus = (
        sum(pool.nodes * (len(cluster.zones_of(pool)) or 3) for pool in cluster.spec.pools) * cluster.family.node.gpus
    )
    resources = desired(cluster)
    click.echo(
        f"{document.file}: cluster {cluster.name} in {cluster.spec.location}, {cluster.family.id}, {gpus} GPUs, "
        f"{len(resources)} resources"
    )
    rows = [("cluster", *primary(cluster), str(addresses.primary or "exists"))]
    rows += [
        (nic.of.name, nic.network, nic.subnet, str(found or "exists"))
        for nic, found in zip(nics(cluster), addresses.nics, strict=True)
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for what, network, subnet, found in rows:
        click.echo(f"  {what:<{widths[0]}}  {network:<{widths[1]}}  {subnet:<{widths[2]}}  {found}")
    if addresses.pods is not None:
        click.echo(f"  Pods {addresses.pods}, Services {addresses.services}")
