"""``interlace gke adopt``: take over what exists under the names of the file."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING

import click

from interlace.cli.exits import Code, Exit
from interlace.cli.gke_engine import confirmed, engine_options, may_ask, run_engine, session

if TYPE_CHECKING:
    from interlace.cli.gke_engine import Session
    from interlace.gke.client import Client
    from interlace.gke.journal import Journal
    from interlace.gke.picture import Picture
    from interlace.gke.plan import Step


@click.command("adopt")
@engine_options
@click.argument("names", nargs=-1, metavar="[KIND/NAME]...")
@click.option("--yes", is_flag=True, help="Do not ask.")
def adopt(
    *, file: str, endpoint: str | None, state: str | None, as_json: bool, names: tuple[str, ...], yes: bool
) -> None:
    """Take over resources that exist under names of the file: all of them, or those named (network/mega-net-*).

    From then on plans change them and `interlace gke destroy` deletes them. Nothing is changed but the mark of
    ownership, where Google lets one be written. What belongs to another cluster is refused.

    Exit 0 if all was taken over; 1 if there is nothing to take over; 2 refused; 3 nothing could be read; 4 failed.
    """
    chosen = session(file=file, endpoint=endpoint, state=state)
    if not yes and not may_ask():
        raise Exit(Code.REFUSED, "nobody can be asked here; look at `interlace gke plan`, then say --yes")
    with chosen.locked("adopt") as journal:
        run = _Run(chosen, names=names, as_json=as_json)
        if not yes:
            run_engine(run.look(journal))
            if run.steps and not confirmed("Take these over?"):
                raise Exit(Code.REFUSED, "nothing was taken over")
        run_engine(run.do(journal))
    if not run.steps:
        raise Exit(Code.BAD, "" if as_json else "there is nothing to take over")


class _Run:
    def __init__(self, chosen: Session, *, names: tuple[str, ...], as_json: bool) -> None:
        self.chosen = chosen
        self.names = names
        self.as_json = as_json
        self.steps: tuple[Step, ...] = ()

    async def look(self, journal: Journal) -> Code:
        """Show what can be taken over."""
        from interlace.gke.client import open_client

        async with open_client(endpoint=self.chosen.endpoint) as client:
            await self._choose(client, journal)
        return Code.GOOD

    async def do(self, journal: Journal) -> Code:
        """Take over."""
        from interlace.cli.gke_apply import telling
        from interlace.gke.adopting import adopt as carry_out
        from interlace.gke.client import open_client

        agreed = {step.key for step in self.steps}
        async with open_client(endpoint=self.chosen.endpoint) as client:
            picture = await self._choose(client, journal, quiet=bool(agreed))
            if agreed and {step.key for step in self.steps} != agreed:
                raise Exit(Code.REFUSED, "what exists has changed meanwhile; look again")
            command = self.chosen.command("adopt", *self.names, *(() if may_ask() else ("--yes",)))
            with telling(journal, command=command):
                await carry_out(client, journal, picture, self.steps, self.chosen.owner)
        if self.as_json:
            import msgspec

            owner = self.chosen.owner
            answer = {
                "project": owner.project,
                "location": owner.location,
                "cluster": owner.cluster,
                "simulated": self.chosen.simulated,
                "adopted": [{"kind": s.key.kind, "place": s.key.place, "name": s.key.name} for s in self.steps],
                "next": self.chosen.command("plan"),
            }
            click.echo(msgspec.json.encode(answer).decode())
        elif self.steps:
            mark = " (simulated)" if self.chosen.simulated else ""
            click.echo(f"{len(self.steps)} taken over{mark}; next: {self.chosen.command('plan')}")
        return Code.GOOD

    async def _choose(self, client: Client, journal: Journal, *, quiet: bool = False) -> Picture:
        from interlace.gke.adopting import adoptable
        from interlace.gke.journal import adopted
        from interlace.gke.ownership import other_owner

        picture = await self.chosen.look(client)
        plan = self.chosen.plan(picture, adopted=adopted(journal.entries))
        free, others = adoptable(plan)
        wanted = [step for step in others if self._named(step)]
        if self.names and wanted:
            step = wanted[0]
            owner = other_owner(step.key.kind, step.have or {})
            raise Exit(Code.REFUSED, f"{step.key} belongs to {owner}; let that cluster go first, or use another name")
        self.steps = tuple(step for step in free if self._named(step))
        known = [step.key for step in plan.steps]
        for name in self.names:
            if not any(fnmatch.fnmatchcase(str(key), name) for key in known):
                raise Exit(
                    Code.REFUSED, f"{name}: the file has no such resource; `interlace gke plan --all` lists them"
                )
        if not quiet:
            for step in self.steps:
                click.echo(f"  {step.key}: {len(step.differences)} fields differ from the file", err=True)
            for step in others:
                click.echo(f"! {step.key} belongs to {other_owner(step.key.kind, step.have or {})}", err=True)
        return picture

    def _named(self, step: Step) -> bool:
        return not self.names or any(fnmatch.fnmatchcase(str(step.key), name) for name in self.names)
