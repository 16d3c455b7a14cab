"""``interlace env``: the NCCL environment of a hardware family, and what the plugin on a node would say to one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import click

from interlace.cli.exits import Code, Exit
from interlace.cli.families import choose_software, known_family

if TYPE_CHECKING:
    from interlace.fabric.environment import Environment, Interfaces
    from interlace.fabric.family import Family

Format = Literal["sh", "dotenv", "k8s", "json"]

_INTERFACE = re.compile(r"[A-Za-z0-9._-]{1,15}\Z")
_MOST_BYTES = 1 << 20


@click.command("env")
@click.option("--family", "family_name", required=True, metavar="F", help="Id of the family or machine type.")
@click.option("--profile", default="default", show_default=True, metavar="P", help="Profile of the software tuple.")
@click.option("--tuple", "tuple_id", metavar="T", help="Software tuple; else the preferred one.")
@click.option("--cluster-version", metavar="VERSION", help="GKE version (or minor) that the preferred tuple must fit.")
@click.option("--interfaces", metavar="A,B,…", help="Interfaces for traffic of GPUs in the Pod, in order of the NICs.")
@click.option("--control", default="eth0", show_default=True, metavar="NAME", help="Interface of the Pod network.")
@click.option(
    "--format", "form", default="sh", show_default=True, type=click.Choice(["sh", "dotenv", "k8s", "json"]), help="How."
)
@click.option("--explain", is_flag=True, help="Say what each variable does, and which are left out and why.")
@click.option("--check", metavar="FILE", help="Guest config of the plugin (text-proto, - for stdin) to check against.")
@click.option("--env-file", metavar="FILE", help="With --check: lines NAME=value to check instead of the profile.")
def env(
    *,
    family_name: str,
    profile: str,
    tuple_id: str | None,
    cluster_version: str | None,
    interfaces: str | None,
    control: str,
    form: Format,
    explain: bool,
    check: str | None,
    env_file: str | None,
) -> None:
    """Print the NCCL environment of a hardware family, or check one against the plugin's guest config.

    With --check: exit 1 if the plugin would end a job with this environment, 3 if the config holds something that is
    not known here, else 0.
    """
    from interlace.cli import env_view as view
    from interlace.fabric.environment import environment
    from interlace.fabric.family import FamilyError

    family: Family = known_family(family_name)
    software = choose_software(family, tuple_id=tuple_id, cluster_version=cluster_version)
    names = _interfaces(family, control=control, data=interfaces)
    try:
        found = environment(family, software=software, profile=profile, interfaces=names)
    except FamilyError as error:
        raise Exit(Code.REFUSED, str(error)) from None
    if env_file and not check:
        raise Exit(Code.REFUSED, "--env-file is checked against a guest config; name one with --check FILE")
    if check == env_file == "-":
        raise Exit(Code.REFUSED, "--check and --env-file: standard input can be read once; give one of them as a file")
    if check:
        if software.environment == "source" and not env_file:
            click.echo(f"interlace: {found.script} on the node may set more than is known here", err=True)
        _check(check, found, env_file=env_file, as_json=form == "json")
        return
    what = view.Subject(family=family.id, software=software.id, profile=profile)
    click.echo(view.render(found, what=what, form=form, explain=explain), nl=False)


def _interfaces(family: Family, *, control: str, data: str | None) -> Interfaces:
    from interlace.fabric.environment import Interfaces, default_interfaces

    default = default_interfaces(family).data
    names = default if data is None else tuple(data.split(","))
    for name in (control, *names):
        if not _INTERFACE.match(name):
            raise Exit(
                Code.REFUSED, f"{name!r} is not the name of a network interface (1 to 15 letters, digits, . _ -)"
            )
    if len({control, *names}) != len(names) + 1:
        raise Exit(Code.REFUSED, f"an interface is named twice: {', '.join((control, *names))}")
    if family.node.whole_node and len(names) != len(default):
        raise Exit(
            Code.REFUSED,
            f"{family.id} has {len(default)} NICs for traffic of GPUs and a Pod uses all of them; "
            f"--interfaces names {len(names)}",
        )
    return Interfaces(control=control, data=names)


def _check(path: str, found: Environment, *, env_file: str | None, as_json: bool) -> None:
    from interlace.cli import env_view as view
    from interlace.fabric.guest_config import GuestConfigError, check, read
    from interlace.fabric.textproto import TextProtoError

    try:
        config = read(_read(path))
    except (TextProtoError, GuestConfigError) as error:
        raise Exit(Code.REFUSED, f"{path}: {error}") from None
    given = view.parse_dotenv(_read(env_file), name=env_file) if env_file else view.plain(found)
    findings = check(config, given)
    click.echo(view.findings_document(findings, config) if as_json else view.findings(findings, config), nl=False)
    if any(finding.ends for finding in findings):
        raise Exit(Code.BAD)
    if any(rule.policy == "unknown" for rule in config.rules):
        raise Exit(Code.UNKNOWN)


def _read(path: str) -> str:
    """The text of a file or of stdin. Raises Exit."""
    try:
        with click.open_file(path, "rb") as stream:
            data = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise Exit(Code.REFUSED, f"{path}: {error.strerror or error}") from None
    if len(data) > _MOST_BYTES:
        raise Exit(
            Code.REFUSED, f"{path}: it is larger than 1 MiB; guest configs and environments are small text files"
        )
    try:
        text: str = data.decode()
    except UnicodeDecodeError:
        raise Exit(Code.REFUSED, f"{path}: it is not text in UTF-8") from None
    return text
