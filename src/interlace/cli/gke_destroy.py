"""``interlace gke destroy``: take away what was made for a cluster, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from interlace.cli.exits import Code, Exit
from interlace.cli.gke_engine import confirmed, engine_options, may_ask, run_engine, session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from interlace.cli.gke_engine import Session
    from interlace.cli.gke_result_view import ResultDocument
    from interlace.gke.destroying import Teardown
    from interlace.gke.journal import Journal
    from interlace.gke.plan import Task
    from interlace.gke.resource import Key
    from interlace.gke.scheduling import Ending


@click.command("destroy")
@engine_options
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--with-foreign-rules",
    is_flag=True,
    help="Also delete firewall rules that others, GKE among them, left in networks that were made here.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be deleted, and delete nothing.")
@click.option(
    "--parallel", type=click.IntRange(1, 64), default=16, show_default=True, metavar="N", help="Most at a time."
)
def destroy(
    *,
    file: str,
    endpoint: str | None,
    state: str | None,
    as_json: bool,
    yes: bool,
    with_foreign_rules: bool,
    dry_run: bool,
    parallel: int,
) -> None:
    """Delete the cluster, its pools, firewall rules, subnets, networks and policies, in this order.

    Only what carries our mark or was adopted goes. What others put into our networks is shown; it stays, and the
    networks with it, unless --with-foreign-rules is given.

    Exit 0 if nothing is left; 1 if something stays since others use it; 2 refused; 3 nothing could be read; 4 if
    something failed; 130 after Ctrl-C.
    """
    from interlace.gke.journal import adopted

    chosen = session(file=file, endpoint=endpoint, state=state)
    if not yes and not dry_run and not may_ask():
        raise Exit(Code.REFUSED, "nobody can be asked here; look with --dry-run, then say --yes")
    run = _Run(chosen, with_rules=with_foreign_rules, parallel=parallel, as_json=as_json)
    if dry_run:
        run_engine(run.look(chosen.adopted()))
        run.show_plan()
        return
    with chosen.locked("destroy") as journal:
        if not yes:
            run_engine(run.look(adopted(journal.entries)))
            run.announce()
            if run.plan and not run.plan.empty and not confirmed("Delete this? It cannot be undone."):
                raise Exit(Code.REFUSED, "nothing was deleted")
        run_engine(run.do(journal))
    run.show()
    if run.code is not Code.GOOD:
        raise Exit(run.code)


class _Run:
    def __init__(self, chosen: Session, *, with_rules: bool, parallel: int, as_json: bool) -> None:
        self.chosen = chosen
        self.with_rules = with_rules
        self.parallel = parallel
        self.as_json = as_json
        self.plan: Teardown | None = None
        self.endings: dict[Task, Ending[Task]] = {}
        self.code = Code.GOOD

    async def look(self, ours: frozenset[Key]) -> Code:
        """Find out what would go; ``ours`` was adopted."""
        from interlace.gke.client import open_client
        from interlace.gke.destroying import teardown

        async with open_client(endpoint=self.chosen.endpoint) as client:
            picture = await self.chosen.look(client)
        keys = {resource.key for resource in self.chosen.wanted}
        self.plan = teardown(picture, self.chosen.owner, adopted=ours, wanted=keys)
        return Code.GOOD

    async def do(self, journal: Journal) -> Code:
        """Look again and delete."""
        from interlace.cli.gke_apply import telling
        from interlace.cli.gke_progress import shown
        from interlace.gke.client import open_client
        from interlace.gke.destroying import destroy as carry_out
        from interlace.gke.destroying import settle, teardown
        from interlace.gke.journal import adopted

        agreed, ours = self.plan, adopted(journal.entries)
        keys = {resource.key for resource in self.chosen.wanted}
        async with open_client(endpoint=self.chosen.endpoint) as client:
            picture = await self.chosen.look(client)
            going = self.chosen.command("destroy", *self._options())
            with self.chosen.reading(), telling(journal, command=going):
                picture = await settle(client, journal, picture, keys, told=_wait_for)
            self.plan = teardown(picture, self.chosen.owner, adopted=ours, wanted=keys)
            if agreed is None:
                self.announce()
            elif not {*self.plan.ours} <= {*agreed.ours}:
                raise Exit(Code.REFUSED, "there is more than was shown; look again")
            with shown(self.plan.tasks()) as progress, telling(journal, progress, command=going):
                self.endings = await carry_out(
                    client,
                    journal,
                    picture,
                    self.chosen.owner,
                    self.plan,
                    with_foreign_rules=self.with_rules,
                    adopted=ours,
                    parallel=self.parallel,
                    watcher=progress,
                )
        self._judge()
        return Code.GOOD

    def announce(self) -> None:
        """What would go, for people, on stderr."""
        for line in _lines(self.plan, with_rules=self.with_rules) if self.plan else ():
            click.echo(line, err=True)

    def show_plan(self) -> None:
        """What would go, on stdout."""
        import msgspec

        from interlace.cli.gke_result_view import TeardownDocument

        if self.plan is None:
            return
        if not self.as_json:
            for line in _lines(self.plan, with_rules=self.with_rules):
                click.echo(line)
            return
        plan, owner = self.plan, self.chosen.owner
        answer = TeardownDocument(
            project=owner.project,
            location=owner.location,
            cluster=owner.cluster,
            simulated=self.chosen.simulated,
            delete=tuple(map(str, (*plan.ours, *plan.inside))),
            foreign={str(key): tuple(map(str, users)) for key, users in plan.foreign.items()},
            other=tuple(map(str, plan.other)),
        )
        click.echo(msgspec.json.encode(answer).decode())

    def _judge(self) -> None:
        from interlace.gke.destroying import InUse

        bad = {task: ending for task, ending in self.endings.items() if ending.state != "done"}
        kept = {task for task, ending in bad.items() if isinstance(ending.reason, InUse)}
        if all(task in kept or ending.because in kept for task, ending in bad.items()):
            self.code = Code.BAD if bad else Code.GOOD
        else:
            self.code = Code.FAILED

    def show(self) -> None:
        """The result, on stdout."""
        import msgspec

        from interlace.cli import gke_result_view as view
        from interlace.cli.printing import echo

        found, owner = view.results(self.endings), self.chosen.owner
        kept = tuple(f"{each.kind}/{each.name}" for each in found if each.state != "done")
        if self.as_json:
            answer = view.RunDocument(
                project=owner.project,
                location=owner.location,
                cluster=owner.cluster,
                simulated=self.chosen.simulated,
                results=found,
                summary=view.summary(found),
                kept=kept,
                next=self._next(found),
            )
            click.echo(msgspec.json.encode(answer).decode())
            return
        if found:
            echo(view.table(found))
        for line in view.reasons(found):
            click.echo(f"\n{line}")
        mark = " (simulated)" if self.chosen.simulated else ""
        left = f"{len(kept)} left: {', '.join(kept)}" if kept else "nothing is left of it"
        click.echo(f"\ncluster {owner.cluster}{mark}: {left}")
        if command := self._next(found):
            click.echo(f"next: {command}")

    def _next(self, found: tuple[ResultDocument, ...]) -> str:
        if all(each.state == "done" for each in found):
            return ""
        return self.chosen.command("destroy", *self._options())

    def _options(self) -> tuple[str, ...]:
        return (*(() if may_ask() else ("--yes",)), *(("--with-foreign-rules",) if self.with_rules else ()))


def _wait_for(key: Key) -> None:
    click.echo(f"interlace: waiting for what is at work on {key} already", err=True)


def _lines(plan: Teardown, *, with_rules: bool) -> Iterator[str]:
    if plan.empty:
        yield "interlace: nothing of this cluster was made here"
    for key in plan.ours:
        yield f"- {key}"
    for key in plan.inside:
        yield f"- {key} (goes with its cluster)"
    for key, users in plan.foreign.items():
        rules = all(user.kind == "firewall" for user in users)
        fate = "is deleted too" if rules and with_rules else f"so {key} stays while it is there"
        yield f"! not ours, in {key}: {', '.join(map(str, users))}; {fate}"
    for key in plan.other:
        yield f"! {key} was not made here and is left alone"
