"""``interlace gke versions``: what to write as the version of a cluster.

What is new enough is decided in ``interlace.fabric.minimum``; what is offered, by GKE at the location.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlace.cli.exits import Code, Exit

if TYPE_CHECKING:
    from interlace.fabric.family import Family
    from interlace.gke.versions import Offer


@click.command("versions")
@click.option("--family", "name", required=True, metavar="FAMILY", help="Hardware family or machine type.")
@click.option("--location", metavar="L", help="Zone or region; else the one of gcloud's configuration.")
@click.option("--project", metavar="P", help="Else the one of gcloud's configuration.")
@click.option(
    "--server-config",
    metavar="FILE",
    help="Read this instead of asking: JSON of `gcloud container get-server-config`; - is stdin.",
)
@click.option(
    "--all", "everything", is_flag=True, help="Also versions that are too old for the family, with the reason."
)
@click.option("--endpoint", metavar="URL", help="Ask a simulation (`interlace sim gke`) instead of Google.")
@click.option("--json", "as_json", is_flag=True, help="Print a list for programs instead.")
def versions(*, name: str, server_config: str | None, everything: bool, as_json: bool, **live: str | None) -> None:
    """List the GKE versions that a location offers and that the family works on, newest first.

    Exit code 0: there is one; 1: there is none; 2: bad input; 3: GKE could not be asked.
    """
    from interlace.cli.families import known_family
    from interlace.cli.gke_file import refusing
    from interlace.cli.running import run
    from interlace.gke.versions import offers, read_config

    family = known_family(name)
    if not family.node.gke:
        raise Exit(Code.REFUSED, f"{family.id} is not offered on GKE")
    if server_config is not None:
        with refusing():
            config = read_config(_document(server_config), what=server_config)
        _show(family, offers(family, config), everything=everything, as_json=as_json)
        return

    async def ask() -> Code:
        answer, what = await _asked(**live)
        with refusing():
            found = offers(family, read_config(answer, what=what))
        _show(family, found, everything=everything, as_json=as_json)
        return Code.GOOD

    run(ask())


def _document(file: str) -> Any:
    import msgspec

    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return msgspec.json.decode(data)
    except OSError as error:
        raise Exit(Code.REFUSED, f"{file}: {error.strerror or error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Exit(Code.REFUSED, f"{file} is no JSON document: {error}") from None


async def _asked(*, project: str | None, location: str | None, endpoint: str | None) -> tuple[Any, str]:
    import os

    from interlace.gke.client import open_client
    from interlace.gke.defaults import configured
    from interlace.gke.failures import ApiError, Unreachable
    from interlace.gke.request import Request

    found = configured(os.environ, home=Path.home())
    project, location = project or found.project, location or found.location
    missing = [option for option, value in (("--project", project), ("--location", location)) if not value]
    if missing:
        raise Exit(Code.REFUSED, f"name {' and '.join(missing)}: gcloud's configuration does not say it")
    path = f"/v1/projects/{project}/locations/{location}/serverConfig"
    async with open_client(endpoint=endpoint, patience=60.0) as client:
        try:
            answer = await client.ask(Request(service="container", method="GET", path=path, query={"alt": "json"}))
        except (ApiError, Unreachable) as error:
            raise Exit(Code.UNKNOWN, str(error)) from None
        if client.simulated:
            click.echo("interlace: these versions are simulated", err=True)
    return answer, f"the answer for {location}"


def _show(family: Family, found: tuple[Offer, ...], *, everything: bool, as_json: bool) -> None:
    """Print. Raises Exit where the family works on none."""
    import msgspec

    from interlace.cli.printing import columns, echo

    fitting = [each for each in found if each.supported]
    shown = found if everything else fitting
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(shown), indent=2))
    elif shown:
        table = columns("VERSION", "CHANNELS", "DEFAULT OF", family.id.upper())
        for each in shown:
            word = "supported" if each.supported and each.known else "unknown" if each.supported else "too old"
            note = each.why if word != "supported" else each.why.partition("; ")[2]
            table.add_row(
                each.version,
                ", ".join(each.channels),
                ", ".join(each.default_of) or "-",
                f"{word}: {note}" if note else word,
            )
        echo(table)
    if not fitting:
        raise Exit(Code.BAD, f"none of the {len(found)} versions that are offered is new enough for {family.id}")
