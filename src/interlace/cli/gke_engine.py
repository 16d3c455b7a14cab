"""What the verbs of ``interlace gke`` that talk to Google share: options, the state folder, a look, and errors.

Invariant: looking never changes anything; a verb that will change something holds the lock of its cluster from its
first look to its end. What answers are simulated is said.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import click

from interlace.cli.exits import Code, Exit
from interlace.cli.gke_file import file_option, judged_file, read_file, refusing

if TYPE_CHECKING:
    from interlace.gke.client import Client
    from interlace.gke.cluster import FabricCluster
    from interlace.gke.journal import Journal
    from interlace.gke.ownership import Owner
    from interlace.gke.picture import Picture
    from interlace.gke.plan import Plan
    from interlace.gke.resource import Resource

_F = TypeVar("_F", bound=Callable[..., Any])


def engine_options(function: _F) -> _F:
    """``-f``, ``--endpoint``, ``--state`` and ``--json``, as ``file``, ``endpoint``, ``state``, ``as_json``."""
    for option in reversed(
        (
            click.option("--endpoint", metavar="URL", help="Ask this server (`interlace sim gke`) instead of Google."),
            click.option(
                "--state",
                type=click.Path(file_okay=False),
                metavar="DIR",
                help="Where journals are kept; else interlace/gke in $XDG_STATE_HOME.",
            ),
            click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead."),
        )
    ):
        function = option(function)
    return file_option(function)


class Session:
    """One cluster file and where it is asked about. ``simulated`` is known after the first look."""

    def __init__(self, cluster: FabricCluster, *, endpoint: str | None, state: str | None, file: str) -> None:
        from interlace.gke.desired import desired
        from interlace.gke.ownership import owner_of
        from interlace.gke.picture import scope_of_cluster

        self.cluster = cluster
        self.file = file
        self.endpoint = endpoint
        self.state = state
        with refusing():
            self.wanted: tuple[Resource, ...] = desired(cluster)
        self.owner: Owner = owner_of(cluster)
        self.scope = scope_of_cluster(cluster, self.wanted)
        self.folder = _folder(self.owner, state=state, endpoint=endpoint)
        self.simulated = False

    @contextmanager
    def locked(self, verb: str) -> Iterator[Journal]:
        """Hold the cluster's lock, with its journal open. Raises Exit."""
        from interlace.gke.journal import Journal, JournalError
        from interlace.gke.lock import Locked, hold

        with ExitStack() as stack:
            try:
                stack.enter_context(hold(self.folder, verb=f"interlace gke {verb}"))
                journal = stack.enter_context(Journal(self.folder))
            except (Locked, JournalError) as error:
                raise Exit(Code.REFUSED, str(error)) from None
            except OSError as error:
                cause = error.strerror or str(error)
                raise Exit(Code.REFUSED, f"{self.folder}: {cause}; name another folder with --state") from None
            yield journal

    def adopted(self) -> frozenset[Any]:
        """What was taken over, from the journal, without opening it for writing. Raises Exit."""
        from interlace.gke.journal import Journal, JournalError, adopted

        try:
            return adopted(Journal(self.folder).peek())
        except JournalError as error:
            raise Exit(Code.REFUSED, str(error)) from None

    @contextmanager
    def reading(self) -> Iterator[None]:
        """What Google refuses to show means that nothing can be told. Raises Exit."""
        from interlace.gke.failures import ApiError

        try:
            yield
        except ApiError as error:
            raise Exit(Code.UNKNOWN, str(error)) from None
        except BaseExceptionGroup as group:
            refused = group.subgroup(ApiError)
            leaf: BaseException | None = refused
            while isinstance(leaf, BaseExceptionGroup):
                leaf = leaf.exceptions[0]
            if leaf is None or group.subgroup(lambda each: not isinstance(each, ApiError | BaseExceptionGroup)):
                raise
            raise Exit(Code.UNKNOWN, str(leaf)) from None

    async def look(self, client: Client) -> Picture:
        """What there is. Raises Exit, and the errors of a client."""
        from interlace.gke.observing import observe

        with self.reading():
            picture = await observe(client, self.scope)
        self.simulated = bool(client.simulated)
        return picture

    def plan(self, picture: Picture, *, adopted: frozenset[Any]) -> Plan:
        """What has to happen."""
        from interlace.gke.plan import make_plan

        return make_plan(self.wanted, picture, self.owner, adopted=adopted)

    def command(self, verb: str, *more: str) -> str:
        """A command line for the same cluster, with the same journal."""
        parts = ["interlace", "gke", verb, *(["-f", self.file] if self.file != "cluster.yaml" else [])]
        parts += ["--endpoint", self.endpoint] if self.endpoint else []
        parts += ["--state", self.state] if self.state and verb not in {"check", "validate"} else []
        return shlex.join([*parts, *more])


def session(*, file: str, endpoint: str | None, state: str | None, judged: bool = False) -> Session:
    """Read the cluster file. ``judged``: what breaks a rule is refused too. Raises Exit with all that is wrong."""
    document = judged_file(file) if judged else read_file(file)
    return Session(document.cluster, endpoint=endpoint, state=state, file=file)


def run_engine(main: Coroutine[Any, Any, Code]) -> None:
    """As ``run``; errors of Google and of the journal end with FAILED. Raises Exit."""
    from interlace.cli.running import run
    from interlace.gke.errors import GkeError
    from interlace.gke.journal import JournalError

    run(main, failures=(GkeError, JournalError))


def may_ask() -> bool:
    """Whether a person can be asked."""
    return sys.stdin is not None and sys.stdin.isatty()


def confirmed(question: str) -> bool:
    """Ask on the terminal. Raises Exit where the answer is Ctrl-C or the end of the input."""
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        raise Exit(Code.INTERRUPTED) from None


def _home() -> Path:
    return Path.home() / ".local/state"


def _folder(owner: Owner, *, state: str | None, endpoint: str | None) -> Path:
    """A folder for each cluster; what a simulation remembers is kept apart from Google's."""
    try:
        base = Path(state) if state else Path(os.environ.get("XDG_STATE_HOME") or _home()) / "interlace/gke"
    except RuntimeError:
        raise Exit(Code.REFUSED, "this account has no home folder; name one for the journal with --state") from None
    if endpoint:
        base = base / "simulated" / (urlsplit(endpoint).netloc.replace(":", "_") or "unnamed")
    return base / owner.project.replace(":", "_") / owner.location / owner.cluster
