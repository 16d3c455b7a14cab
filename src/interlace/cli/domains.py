"""``interlace domains``: ComputeDomains as the people who use them want to see them.

Everything is read with the caller's own rights; what may not be read is shown as unknown, since an
ML engineer has no rights in the namespace of the components.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from interlace.cli.exits import Code, Exit
from interlace.cli.running import run

if TYPE_CHECKING:
    from interlace.api.computedomain import ComputeDomain
    from interlace.cli.domain_reader import Reader
    from interlace.kube.client import Client

_F = TypeVar("_F", bound=Callable[..., Any])


def _common(function: _F) -> _F:
    """Options of every verb."""
    for option in reversed(
        (
            click.option(
                "-n", "--namespace", help="Namespace of the domain; default: that of the kubeconfig's context."
            ),
            click.option("--context", help="Context of the kubeconfig."),
            click.option("--kubeconfig", type=click.Path(dir_okay=False), help="Instead of $KUBECONFIG."),
            click.option(
                "--system-namespace",
                default="interlace-system",
                show_default=True,
                help="Where the components of Interlace run.",
            ),
            click.option("--json", "as_json", is_flag=True, help="Print JSON for programs instead."),
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
@click.option("-A", "--all-namespaces", is_flag=True, help="Of all namespaces.")
@_common
@_reading
async def list_(reader: Reader, *, all_namespaces: bool, as_json: bool) -> Code:
    """List domains, one a line: nodes ready, age and what it waits for."""
    from interlace.cli import domain_document as json
    from interlace.cli import domain_view as view
    from interlace.cli.printing import echo

    found = await reader.domains(everywhere=all_namespaces)
    if as_json:
        click.echo(json.encode(json.Domains(domains=[json.summary(domain) for domain in found])))
    elif not found:
        where = "any namespace" if all_namespaces else f"namespace {reader.namespace}; -A looks in all of them"
        click.echo(f"no ComputeDomains in {where}", err=True)
    else:
        echo(view.table(found, everywhere=all_namespaces))
    return Code.GOOD


@domains.command()
@click.argument("name")
@_common
@_reading
async def show(reader: Reader, *, name: str, as_json: bool) -> Code:
    """Show nodes by clique with index, address and channel, then conditions and events.

    Exit 0 if the domain is Ready, 1 if it is not.
    """
    return await _picture(reader, name=name, as_json=as_json, explain=False)


@domains.command()
@click.argument("name")
@_common
@_reading
async def explain(reader: Reader, *, name: str, as_json: bool) -> Code:
    """Explain for each Pod, from the Pod to IMEX, how far it came and what it waits for.

    Exit 0 if the domain is Ready and no Pod waits, else 1.
    """
    return await _picture(reader, name=name, as_json=as_json, explain=True)


async def _picture(reader: Reader, *, name: str, as_json: bool, explain: bool) -> Code:
    from interlace.cli import domain_document as json
    from interlace.cli import domain_view as view
    from interlace.cli.printing import echo

    picture = await reader.picture(name)
    if as_json:
        click.echo(json.encode(json.document(picture)))
    else:
        echo(view.explanation(picture) if explain else view.page(picture))
    waiting = explain and any(chain.waits_for for chain in picture.chains)
    return Code.GOOD if json.is_ready(picture.domain) and not waiting else Code.BAD


@domains.command()
@click.argument("name")
@_common
@_reading
async def watch(reader: Reader, *, name: str, as_json: bool) -> Code:
    """Watch a domain: a line at each change (with --json a JSON document a line), until it is deleted or Ctrl-C.

    A domain that does not exist yet is waited for. Exit 0 when it was deleted.
    """
    from interlace.cli import domain_document as json
    from interlace.cli import domain_view as view

    last = ""
    async with aclosing(reader.follow(name, tell=_tell)) as states:
        async for domain in states:
            if domain is None:
                gone = json.Deleted(namespace=reader.namespace, name=name)
                click.echo(json.encode(gone) if as_json else f"{name} was deleted")
                break
            line = json.encode(json.summary(domain)) if as_json else view.line(domain)
            if line != last:
                click.echo(line)
            last = line
    return Code.GOOD


@domains.command()
@click.argument("name")
@click.option(
    "--timeout",
    default=300.0,
    show_default=True,
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="How long.",
)
@click.option(
    "--nodes",
    default=None,
    type=click.IntRange(min=0),
    metavar="COUNT",
    help="Also wait until so many nodes are Ready.",
)
@_common
@_reading
async def wait(reader: Reader, *, name: str, timeout: float, nodes: int | None, as_json: bool) -> Code:
    """Wait until the domain is Ready; what it waits for goes to stderr.

    A domain that does not exist yet is waited for too; one without nodes is Ready, so give --nodes for a job that
    is only starting. Exit 0 when it is Ready, 1 when it is deleted, 4 when the time is over.
    """
    from interlace.cli import domain_document as json
    from interlace.cli import domain_view as view

    path = f"{reader.namespace}/{name}"
    seen: ComputeDomain | None = None
    try:
        async with asyncio.timeout(timeout), aclosing(reader.follow(name, tell=_tell)) as states:
            async for domain in states:
                if domain is None:
                    raise Exit(Code.BAD, f"ComputeDomain {path} was deleted while it was waited for")
                if json.is_ready(domain) and (nodes is None or json.nodes_ready(domain) >= nodes):
                    click.echo(json.encode(json.summary(domain)) if as_json else view.line(domain))
                    break
                if seen is None or view.line(domain) != view.line(seen):
                    _tell(view.line(domain))
                seen = domain
    except TimeoutError:
        if seen is None:
            raise Exit(Code.FAILED, f"ComputeDomain {path} did not appear within {timeout:g} s") from None
        wanted = "Ready" if nodes is None else f"Ready with {nodes} nodes"
        raise Exit(
            Code.FAILED,
            f"ComputeDomain {path} was not {wanted} within {timeout:g} s ({view.line(seen).rstrip('.')}); "
            f"`interlace domains explain {name} -n {reader.namespace}` tells why",
        ) from None
    return Code.GOOD


@domains.command()
@click.option("--remove", is_flag=True, help="Remove what is free to go, after showing it.")
@click.option("--yes", is_flag=True, help="With --remove: do not ask.")
@click.option("--context", help="Context of the kubeconfig.")
@click.option("--kubeconfig", type=click.Path(dir_okay=False), help="Instead of $KUBECONFIG.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs instead.")
def leftovers(*, remove: bool, yes: bool, context: str | None, kubeconfig: str | None, as_json: bool) -> None:
    """List what the driver that Interlace took over from has left: in all namespaces, with what still uses it.

    That is per-domain DaemonSets, claim templates and cliques, node labels and slices. What is ours or in use is
    never removed. Exit 0 if nothing is left, 1 if something is.
    """
    from interlace.cli.domain_reader import open_client
    from interlace.cli.leftovers import Answer, may_ask

    if remove and not yes and not may_ask(as_json=as_json):
        raise Exit(Code.REFUSED, "nobody can be asked here; say --remove --yes to remove what is free to go")
    answer = Answer(as_json=as_json)

    async def connected(step: Callable[[Client], Coroutine[Any, Any, Code]]) -> Code:
        async with open_client(context=context, kubeconfig=kubeconfig) as client:
            return await step(client)

    run(connected(answer.find))
    if remove and answer.free and (yes or _confirmed(f"Remove the {len(answer.free)} that are free to go?")):
        run(connected(answer.remove))
    if (code := answer.end()) is not Code.GOOD:
        raise Exit(code)


def _confirmed(question: str) -> bool:
    """Ask on the terminal. Raises Exit where the answer is Ctrl-C or the end of the input."""
    try:
        return click.confirm(question)
    except click.Abort:
        raise Exit(Code.INTERRUPTED) from None


def _tell(sentence: str) -> None:
    """What goes on beside the answer."""
    click.echo(f"interlace: {sentence}", err=True)
