"""``interlace domains``: ComputeDomains as the people who use them want to see them.

Everything is read with the caller's own rights; what may not be read is shown as unknown, since an
ML engineer has no rights in the namespace of the components.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from interlace.cli.exits import Code, Exit
from interlace.cli.running import run

if TYPE_CHECKING:
    from interlace.api.computedomain import ComputeDomain
    from interlace.cli.domain_reader import Reader

_F = TypeVar("_F", bound=Callable[..., Any])


def _common(function: _F) -> _F:
    """Options of every verb."""
    for option in reversed(
        (
            click.option(
                "-n", "--namespace", help="Namespace of the domain; default: that of the kubeconfig's context."
            ),
            click.option("--context", help="Context of the kubeconfig."),
            click.option("--kubeconfig", type=click.Path(dir_okay=False), help="File instead of $KUBECONFIG."),
            click.option(
                "--system-namespace",
                default="interlace-system",
                show_default=True,
                help="Where the components of Interlace run.",
            ),
            click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout."),
        )
    ):
        function = option(function)
    return function


@click.group()
def domains() -> None:
    """See ComputeDomains and what they wait for."""


def _reading(main: Callable[..., Coroutine[Any, Any, Code]]) -> Callable[..., None]:
    """Give the verb a connected reader instead of the connection options."""

    @wraps(main)
    def call(
        namespace: str | None,
        context: str | None,
        kubeconfig: str | None,
        system_namespace: str,
        **options: Any,
    ) -> None:
        async def connected() -> Code:
            from interlace.cli.domain_reader import connect

            async with connect(
                namespace=namespace, context=context, kubeconfig=kubeconfig, system=system_namespace
            ) as reader:
                return await main(reader, **options)

        run(connected())

    return call


@domains.command("list")
@click.option("-A", "--all-namespaces", is_flag=True)
@_common
@_reading
async def list_(reader: Reader, *, all_namespaces: bool, as_json: bool) -> Code:
    """One line a domain: nodes ready, status and what it waits for."""
    from interlace.cli import domain_view as view

    found = await reader.domains(everywhere=all_namespaces)
    if as_json:
        click.echo(view.encode({"domains": [view.summary(domain) for domain in found]}))
    elif not found:
        click.echo(f"no ComputeDomains in {'any namespace' if all_namespaces else f'namespace {reader.namespace}'}")
    else:
        view.echo(view.table(found))
    return Code.GOOD


@domains.command()
@click.argument("name")
@_common
@_reading
async def show(reader: Reader, *, name: str, as_json: bool) -> Code:
    """Nodes by clique with index, address, channel and since when; then conditions and events."""
    from interlace.cli import domain_view as view

    picture = await reader.picture(name)
    if as_json:
        click.echo(view.encode(view.document(picture)))
    else:
        view.echo(view.page(picture))
    return Code.GOOD if view.is_ready(picture.domain) else Code.BAD


@domains.command()
@click.argument("name")
@_common
@_reading
async def explain(reader: Reader, *, name: str, as_json: bool) -> Code:
    """Say for each Pod, from the Pod to IMEX, how far it came and what it waits for. Exit 1 if any waits."""
    from interlace.cli import domain_view as view

    picture = await reader.picture(name)
    if as_json:
        click.echo(view.encode(view.document(picture)))
    else:
        view.echo(view.explanation(picture))
    waiting = any(chain.waits_for for chain in picture.chains)
    return Code.BAD if waiting or not view.is_ready(picture.domain) else Code.GOOD


@domains.command()
@click.argument("name")
@_common
@_reading
async def watch(reader: Reader, *, name: str, as_json: bool) -> Code:
    """Print a line (with --json a JSON line) at each change, until the domain is deleted or Ctrl-C."""
    from interlace.cli import domain_view as view

    last = ""
    async for domain in reader.follow(name):
        if domain is None:
            click.echo(view.encode({"name": name, "deleted": True}) if as_json else f"{name} was deleted")
            return Code.GOOD
        line = view.encode(view.summary(domain)) if as_json else view.line(domain)
        if line != last:
            click.echo(line)
        last = line
    return Code.GOOD


@domains.command()
@click.argument("name")
@click.option("--timeout", default=300.0, show_default=True, type=click.FloatRange(min=0), help="Seconds.")
@click.option("--nodes", default=None, type=click.IntRange(min=0), help="Also wait until so many nodes are Ready.")
@_common
@_reading
async def wait(reader: Reader, *, name: str, timeout: float, nodes: int | None, as_json: bool) -> Code:
    """Return when the domain is Ready (exit 0), is deleted (1) or the time is over (4)."""
    from interlace.cli import domain_view as view

    seen: ComputeDomain | None = None
    try:
        async with asyncio.timeout(timeout):
            async for domain in reader.follow(name):
                if domain is None:
                    raise Exit(Code.BAD, f"ComputeDomain {reader.namespace}/{name} was deleted while it was waited for")
                seen = domain
                if view.is_ready(domain) and (nodes is None or view.nodes_ready(domain) >= nodes):
                    click.echo(view.encode(view.summary(domain)) if as_json else view.line(domain))
                    return Code.GOOD
    except TimeoutError:
        state = view.line(seen) if seen else f"ComputeDomain {reader.namespace}/{name} was never seen"
        raise Exit(
            Code.FAILED, f"not Ready after {timeout:g} s: {state}; `interlace domains explain {name}` tells why"
        ) from None
    return Code.FAILED
