"""``interlace gke plan``: what `apply` would do, without doing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from interlace.cli.exits import Code
from interlace.cli.gke_engine import engine_options, run_engine, session

if TYPE_CHECKING:
    from interlace.cli.gke_engine import Session
    from interlace.gke.client import Client
    from interlace.gke.prices import Price


@click.command("plan")
@engine_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "json"]),
    default="text",
    show_default=True,
    help="markdown: for a pull request; json: as --json.",
)
@click.option("--all", "all_steps", is_flag=True, help="Show also what is as it is meant.")
@click.option("--live-prices", is_flag=True, help="Ask Cloud Billing for prices; else a dated table.")
@click.option("--exit-code", is_flag=True, help="Exit 1 if something differs.")
def plan(
    *,
    file: str,
    endpoint: str | None,
    state: str | None,
    as_json: bool,
    form: str,
    all_steps: bool,
    live_prices: bool,
    exit_code: bool,
) -> None:
    """Compare the file with what exists and say what has to happen: create, change, replace. Only reads.

    Exit 0; with --exit-code 1 if something differs; 2 for bad input, without credentials or network; 3 if Google does
    not let it be read.
    """
    chosen = session(file=file, endpoint=endpoint, state=state, judged=True)

    async def main() -> Code:
        from interlace.cli import gke_plan_view as view
        from interlace.gke.client import open_client

        async with open_client(endpoint=endpoint) as client:
            picture = await chosen.look(client)
            price = await price_of(chosen, client, live_prices=live_prices)
        found = chosen.plan(picture, adopted=chosen.adopted())
        if as_json or form == "json":
            import msgspec

            answer = view.document(found, price=price, simulated=chosen.simulated)
            click.echo(msgspec.json.encode(answer).decode())
        elif form == "markdown":
            click.echo(view.text_of(view.markdown(found, price=price, simulated=chosen.simulated)), nl=False)
        else:
            lines = view.tree(found, price=price, simulated=chosen.simulated, all_steps=all_steps)
            view.show(lines)
        return Code.BAD if exit_code and not found.empty else Code.GOOD

    run_engine(main())


async def price_of(chosen: Session, client: Client | None, *, live_prices: bool) -> Price:
    """An hour of the cluster that the file describes."""
    from interlace.gke.prices import live, machines, price
    from interlace.gke.shapes import shapes

    wanted = machines(chosen.wanted, zones=len(chosen.cluster.zones) or 3)
    table = None
    if live_prices and client is not None:
        table = await live(client, wanted, region=chosen.cluster.region, shapes=shapes())
        if table is None:
            click.echo("interlace: Cloud Billing gave no prices; those of the dated table are shown", err=True)
    return price(wanted, table)
