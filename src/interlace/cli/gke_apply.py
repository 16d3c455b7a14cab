"""``interlace gke apply``: make the cluster as the file says, and go on where an earlier run was ended."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from interlace.cli.exits import Code, Exit
from interlace.cli.gke_engine import confirmed, engine_options, may_ask, run_engine, session

if TYPE_CHECKING:
    from interlace.cli.gke_engine import Session
    from interlace.gke.client import Client
    from interlace.gke.journal import Journal
    from interlace.gke.picture import Picture
    from interlace.gke.plan import Plan, Task
    from interlace.gke.progress import Progress
    from interlace.gke.scheduling import Ending


@click.command("apply")
@engine_options
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--replace", is_flag=True, help="Also delete and make again what cannot be changed in place.")
@click.option("--prune", is_flag=True, help="Also delete what was made and the file does not have any more.")
@click.option(
    "--parallel",
    type=click.IntRange(1, 64),
    default=16,
    show_default=True,
    metavar="N",
    help="Most resources at a time; of one cluster always one.",
)
@click.option("--no-objects", is_flag=True, help="Leave out the Kubernetes objects of `interlace manifests`.")
@click.option(
    "--part",
    "parts",
    multiple=True,
    type=click.Choice(["components", "networks", "installer"]),
    help="Only this part of the Kubernetes objects; may be given again.",
)
@click.option("--kubeconfig", metavar="FILE", help="For the Kubernetes objects; else the new cluster's own address.")
@click.option("--context", metavar="NAME", help="Context of the kubeconfig.")
@click.option(
    "--objects-timeout",
    type=click.FloatRange(min=0),
    default=1200.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait until GPUs, networks and installer are ready.",
)
def apply(
    *,
    file: str,
    endpoint: str | None,
    state: str | None,
    as_json: bool,
    yes: bool,
    replace: bool,
    prune: bool,
    parallel: int,
    no_objects: bool,
    parts: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    objects_timeout: float,
) -> None:
    """Make the cluster as the file says: show the plan, ask, then create and change what differs.

    A run that was ended goes on with the same command. What is not ours is never changed. At the end stands what is
    done, failed, blocked and unknown, with the next command.

    Exit 0 if all is done; 1 if something that exists is not well; 2 if it was refused before anything was sent; 3 if
    nothing could be read; 4 if something failed or may still go on; 130 after Ctrl-C.
    """
    chosen = session(file=file, endpoint=endpoint, state=state, judged=True)
    if not yes and not may_ask():
        raise Exit(Code.REFUSED, "nobody can be asked here; look at `interlace gke plan`, then say --yes")
    if (kubeconfig or context) and not no_objects:
        from interlace.cli.gke_objects import check_kubeconfig

        check_kubeconfig(kubeconfig, context=context)
    run = Run(chosen, replace=replace, prune=prune, parallel=parallel, as_json=as_json)
    for option, values in (("--part", parts), ("--kubeconfig", (kubeconfig,)), ("--context", (context,))):
        run.more += tuple(word for value in values if value for word in (option, value))
    run.more += ("--no-objects",) if no_objects else ()
    with chosen.locked("apply") as journal:
        if not yes:
            run_engine(run.look(journal))
            if run.work and not confirmed("Do this?"):
                raise Exit(Code.REFUSED, "nothing was changed")
        run_engine(run.do(journal))
    if run.code is Code.GOOD and not no_objects:
        from interlace.cli.gke_objects import Objects, apply_objects

        objects = Objects(parts=parts, kubeconfig=kubeconfig, context=context, timeout=objects_timeout)
        try:
            run_engine(apply_objects(chosen, run, objects))
        except Exit as end:  # the cluster stands all the same, and its result is still to be shown
            run.code = Code.INTERRUPTED if end.code is Code.INTERRUPTED else Code.FAILED
            run.objects = f"Kubernetes objects: {end.message or 'not all applied'}"
    run.show()
    if run.code is not Code.GOOD:
        raise Exit(run.code)


class Run:
    """One call of the verb. ``code`` and ``objects`` are known at its end."""

    def __init__(self, chosen: Session, *, replace: bool, prune: bool, parallel: int, as_json: bool) -> None:
        self.chosen = chosen
        self.replace = replace
        self.prune = prune
        self.parallel = parallel
        self.as_json = as_json
        self.work: dict[Task, set[Task]] = {}
        self.endings: dict[Task, Ending[Task]] = {}
        self.plan: Plan | None = None
        self.code = Code.GOOD
        self.objects = ""
        self.more: tuple[str, ...] = ()
        """What was said about the Kubernetes objects, for the command that goes on."""

    async def look(self, journal: Journal) -> Code:
        """Show the plan; nothing is changed. Raises Exit if it cannot be carried out."""
        from interlace.gke.client import open_client

        async with open_client(endpoint=self.chosen.endpoint) as client:
            await self._plan(client, journal)
        return Code.GOOD

    async def do(self, journal: Journal) -> Code:
        """Look again and carry out what is to be done."""
        from interlace.cli.gke_progress import shown
        from interlace.gke.applying import apply as carry_out
        from interlace.gke.client import open_client

        agreed = self.work if self.plan is not None else None
        async with open_client(endpoint=self.chosen.endpoint) as client:
            plan, picture = await self._plan(client, journal, quiet=agreed is not None)
            if agreed is not None and agreed != self.work:
                raise Exit(Code.REFUSED, "what exists has changed meanwhile; look at the plan again")
            command = self.chosen.command("apply", *self.options())
            with shown(self.work) as progress, telling(journal, progress, command=command):
                self.endings = await carry_out(
                    client, journal, picture, plan, self.work, parallel=self.parallel, watcher=progress
                )
        self._judge(plan)
        return Code.GOOD

    async def _plan(self, client: Client, journal: Journal, *, quiet: bool = False) -> tuple[Plan, Picture]:
        from interlace.cli import gke_plan_view as view
        from interlace.cli.gke_plan import price_of
        from interlace.gke.journal import adopted
        from interlace.gke.plan import in_the_way, tasks

        picture, ours = await self.chosen.look(client), adopted(journal.entries)
        plan = self.plan = self.chosen.plan(picture, adopted=ours)
        self.work = tasks(plan, region=self.chosen.scope.region, replace=self.replace, prune=self.prune)
        if not quiet:
            price = await price_of(self.chosen, None, live_prices=False)
            lines = view.tree(plan, price=price, simulated=self.chosen.simulated)
            view.show(lines, stream=sys.stderr)
        self._refuse(plan)
        for key, users in in_the_way(picture, plan, self.work, adopted=ours).items():
            names = ", ".join(map(str, users))
            raise Exit(
                Code.REFUSED,
                f"{key}: it would be deleted, but {names} in it was not made here; "
                "nothing was changed, take that away or adopt it first",
            )
        return plan, picture

    def _refuse(self, plan: Plan) -> None:
        foreign, again = plan.of("foreign"), plan.of("replace")
        if foreign:
            names = ", ".join(str(step.key) for step in foreign)
            remedy = f"take them over with `{self.chosen.command('adopt')}`, or choose other names in the file"
            raise Exit(Code.REFUSED, f"{names}: exists and was not made for this cluster; {remedy}")
        if again and not self.replace:
            first = next((step for step in again if step.differences), again[0])
            what = next((each.path for each in first.differences if each.replaces), "")
            names = ", ".join(str(step.key) for step in again)
            raise Exit(
                Code.REFUSED,
                f"{names}: must be deleted and made again, since {what} of {first.key} cannot be changed; "
                "nothing was changed, say --replace if that is meant",
            )

    def _judge(self, plan: Plan) -> None:
        from interlace.cli.gke_result_view import code_of, results, troubles

        self.code = code_of(results(self.endings), ill=bool(troubles(plan.steps)))

    def show(self) -> None:
        """The result, on stdout."""
        import msgspec

        from interlace.cli import gke_result_view as view
        from interlace.cli.printing import echo

        found, owner = view.results(self.endings), self.chosen.owner
        ill = view.troubles(self.plan.steps if self.plan else ())
        if self.as_json:
            answer = view.RunDocument(
                project=owner.project,
                location=owner.location,
                cluster=owner.cluster,
                simulated=self.chosen.simulated,
                results=found,
                summary=view.summary(found),
                troubles=ill,
                objects=self.objects,
                next=self.next(),
            )
            click.echo(msgspec.json.encode(answer).decode())
            return
        if found:
            echo(view.table(found))
        for line in (*view.reasons(found), *ill):
            click.echo(f"\n{line}")
        counted = ", ".join(f"{count} {state}" for state, count in view.summary(found).items() if count)
        mark = " (simulated)" if self.chosen.simulated else ""
        click.echo(f"\ncluster {owner.cluster}{mark}: {counted or 'nothing to do'}")
        if self.objects:
            click.echo(self.objects)
        click.echo(f"next: {self.next()}")

    def next(self) -> str:
        """The command that comes next."""
        if self.code not in {Code.GOOD, Code.BAD}:
            return self.chosen.command("apply", *self.options())
        return self.chosen.command("drift") if self.code is Code.BAD else self.chosen.command("check")

    def options(self) -> tuple[str, ...]:
        """What the same run was called with, for a command that goes on with it."""
        given = {"--yes": not may_ask(), "--replace": self.replace, "--prune": self.prune}
        return (*(option for option, is_given in given.items() if is_given), *self.more)


@contextmanager
def telling(journal: Journal, progress: Progress | None = None, *, command: str) -> Iterator[None]:
    """Say after Ctrl-C what goes on and how to go on oneself."""
    try:
        yield
    except asyncio.CancelledError:
        tell_what_goes_on(journal, progress, command=command)
        raise


def tell_what_goes_on(journal: Journal, progress: Progress | None, *, command: str) -> None:
    """After Ctrl-C: what is done, what Google goes on with, and how to go on oneself."""
    from interlace.gke.journal import unfinished

    left = unfinished(journal.entries)
    for key, entry in left.items():
        named = entry.operation.rpartition(" ")[2]
        known = f"operation {named}" if named else "sent, its operation is not known yet"
        click.echo(f"interlace: {entry.verb} {key} goes on at Google ({known})", err=True)
    under_way = f"{len(left)} under way" if left else "nothing under way"
    done = f"{progress.done} of {progress.total} done, " if progress else ""
    click.echo(f"interlace: stopped, nothing more is sent: {done}{under_way}; to go on: {command}", err=True)
