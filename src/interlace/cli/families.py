"""``interlace families``: what is known about each hardware family, with sources.

Also the options about families that other verbs share. No decisions here: the facts are those of ``interlace.fabric``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from interlace.cli.exits import Code, Exit

if TYPE_CHECKING:
    from interlace.fabric.family import Family, SoftwareTuple
    from interlace.fabric.version import GkeVersion, Minor

_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.group(invoke_without_command=True)
@_JSON
@click.pass_context
def families(context: click.Context, *, as_json: bool) -> None:
    """List hardware families: machine types, GPUs, NICs and transport."""
    if context.invoked_subcommand is not None:
        if as_json:
            raise click.UsageError("--json goes behind the sub-command")
        return
    from interlace.cli import family_view as view
    from interlace.cli.printing import echo
    from interlace.fabric.family import families as known

    if as_json:
        _print_json([view.summary(family) for family in known()])
    else:
        echo(view.listing(known()))


@families.command()
@click.argument("family")
@_JSON
def show(*, family: str, as_json: bool) -> None:
    """Show every fact about FAMILY (an id or a machine type), each with source and date."""
    from interlace.cli import family_view as view
    from interlace.cli.printing import echo
    from interlace.fabric.facts import facts

    found = known_family(family)
    if as_json:
        _print_json(view.document(found, facts(found.id)))
    else:
        for part in view.page(found, facts(found.id)):
            echo(part)


@families.command()
@click.argument("family", required=False)
@click.option("--cluster-version", metavar="VERSION", help="Say whether this GKE version is new enough.")
@_JSON
def versions(*, family: str | None, cluster_version: str | None, as_json: bool) -> None:
    """Print the least GKE version of each minor, for FAMILY or for all.

    With --cluster-version the exit code is 0 if it is new enough for FAMILY (without one: for any), else 1.
    """
    from interlace.cli import family_view as view
    from interlace.cli.printing import echo
    from interlace.fabric.family import families as known
    from interlace.fabric.minimum import judge
    from interlace.fabric.version import VersionError, gke_version

    chosen = (known_family(family),) if family else known()
    if cluster_version is None:
        if as_json:
            _print_json([view.versions_document(each) for each in chosen])
        else:
            echo(view.versions_table(chosen))
        return
    try:
        version = gke_version(cluster_version)
    except VersionError as error:
        raise Exit(Code.REFUSED, f"--cluster-version: {error}") from None
    verdicts = [(each, judge(each, version)) for each in chosen]
    if as_json:
        _print_json([{"family": each.id, "ok": it.ok, "known": it.known, "why": it.why} for each, it in verdicts])
    else:
        for each, it in verdicts:
            click.echo(f"{each.id}: {'ok' if it.ok else 'no'}: {it.why}{f'; {it.remedy}' if it.remedy else ''}")
    if not any(it.ok for _, it in verdicts):
        raise Exit(Code.BAD)


def known_family(name: str) -> Family:
    """The family of that name. Raises Exit, which names the known ones."""
    from interlace.fabric.family import FamilyError, find

    try:
        return find(name)
    except FamilyError as error:
        raise Exit(Code.REFUSED, str(error)) from None


def choose_software(family: Family, *, tuple_id: str | None, cluster_version: str | None) -> SoftwareTuple:
    """The tuple that the options name. Raises Exit for one that is not known or does not fit the version."""
    from interlace.fabric.family import FamilyError
    from interlace.fabric.minimum import judge
    from interlace.fabric.version import GkeVersion

    version = known_version(cluster_version)
    if isinstance(version, GkeVersion) and not (verdict := judge(family, version)).ok:
        raise Exit(Code.REFUSED, f"{verdict.why}; {verdict.remedy}")
    try:
        software = family.software(tuple_id) if tuple_id else family.software_for(version)
    except FamilyError as error:
        raise Exit(Code.REFUSED, str(error)) from None
    if not software.fits_gke(version):
        limits = " and ".join(
            [f"from {software.gke_from}"] * bool(software.gke_from)
            + [f"below {software.gke_below}"] * bool(software.gke_below)
        )
        raise Exit(Code.REFUSED, f"software tuple {software.id} is for GKE {limits}, and the cluster has {version}")
    return software


def known_version(text: str | None) -> GkeVersion | Minor | None:
    """A GKE version, or its minor where no more is known of it. Raises Exit."""
    from interlace.fabric.version import VersionError, gke_version, minor_version

    if not text:
        return None
    try:
        return minor_version(text) if text.count(".") == 1 else gke_version(text)
    except VersionError as error:
        raise Exit(Code.REFUSED, f"--cluster-version: {error}") from None


def network_names(family: Family | None, text: str | None) -> dict[str, str]:
    """``--network-map``, read as everywhere. Raises Exit."""
    from interlace.fabric.networks import NetworkMapError, network_map

    try:
        return network_map(text or "", family=family)
    except NetworkMapError as error:
        raise Exit(Code.REFUSED, f"--network-map: {error}") from None


def _print_json(value: Any) -> None:
    import msgspec

    click.echo(msgspec.json.encode(value).decode())
