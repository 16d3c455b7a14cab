"""``interlace gke drift``: whether what was made is still as the file says."""

from __future__ import annotations

import click

from interlace.cli.exits import Code
from interlace.cli.gke_engine import engine_options, run_engine, session


@click.command("drift")
@engine_options
@click.option("--exit-code", is_flag=True, help="Exit 1 if something differs.")
def drift(*, file: str, endpoint: str | None, state: str | None, as_json: bool, exit_code: bool) -> None:
    """Show what differs from the file, field by field, and what is not well although nothing differs. Only reads.

    What the server fills in by itself is no difference. Exit 0; with --exit-code 1 if something differs.
    """
    chosen = session(file=file, endpoint=endpoint, state=state)

    async def main() -> Code:
        from interlace.cli import gke_plan_view as view
        from interlace.cli.gke_plan import price_of
        from interlace.gke.client import open_client

        async with open_client(endpoint=endpoint) as client:
            picture = await chosen.look(client)
        found = chosen.plan(picture, adopted=chosen.adopted())
        differs = not found.empty or any(step.trouble for step in found.steps)
        if as_json:
            import msgspec

            price = await price_of(chosen, None, live_prices=False)
            answer = view.document(found, price=price, simulated=chosen.simulated)
            click.echo(msgspec.json.encode(answer).decode())
        elif differs:
            view.show(view.tree(found, price=None, simulated=chosen.simulated))
        else:
            click.echo(f"{view.title(found, simulated=chosen.simulated)}: as the file says")
        return Code.BAD if exit_code and differs else Code.GOOD

    run_engine(main())
