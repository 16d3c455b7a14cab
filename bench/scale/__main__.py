"""``python -m bench.scale SUBJECT``: measure one of crowd, sizes, churn and races, or write ``report``.

Exit code 0: what must hold was seen to hold; 1: it was not; 2: bad input; 4: it could not be measured.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import signal
import sys
from collections.abc import Sequence
from typing import Final, TypeVar

from bench.scale import crowd, page, record, shaken, sizes
from bench.scale.crowd import Crowd
from bench.scale.ground import Server
from bench.scale.shaken import Shaken
from bench.scale.sizes import Size
from interlace.kube.errors import KubeError
from interlace.kube.log import configure
from interlace.sim.observing import NotReachedError
from testbed.errors import BedError

GOOD, BAD, REFUSED, FAILED, INTERRUPTED = 0, 1, 2, 4, 130
T = TypeVar("T")
RACE_NODES: Final = (36, 20)
PER_CLIQUE: Final = 18


def tell(line: str) -> None:
    """One line of progress."""
    print(line, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=(__doc__ or "").split("\n")[0])
    verbs = parser.add_subparsers(dest="subject", required=True)

    def add(name: str, text: str, *, nodes: int | None) -> argparse.ArgumentParser:
        verb = verbs.add_parser(name, help=text, description=text)
        verb.add_argument("--server", choices=("real", "embedded"), default="real")
        if nodes is not None:
            verb.add_argument("--nodes", type=_positive, default=nodes)
        return verb

    one = add("crowd", "one more domain among many, rest, and one domain over all nodes", nodes=1000)
    one.add_argument("--domains", type=_positive, default=60)
    one.add_argument("--runs", type=_positive, default=3, help="domains formed in each state of the cluster")
    one.add_argument("--idle", type=float, default=60.0, metavar="SECONDS")
    one.add_argument("--narrow", action="store_true", help="leave out the domain over all nodes")
    one = add("sizes", "domains over several cliques on whole nodes", nodes=None)
    one.add_argument("--nodes", type=_positive, nargs="+", default=[36, 72])
    one.add_argument("--runs", type=_positive, default=5)
    one = add("churn", "random jobs, and a checker that watches", nodes=36)
    one.add_argument("--jobs", type=_positive, default=6)
    one.add_argument("--minutes", type=float, default=10.0)
    one.add_argument("--seed", type=int, help="for the same steps again; default: a new one, which is printed")
    one = add("races", "two domains of 18 that start together and are shaken", nodes=None)
    one.add_argument("--nodes", type=_positive, nargs="+", default=list(RACE_NODES))
    one.add_argument("--runs", type=_positive, default=4)
    one.add_argument("--churn", type=float, default=60.0, metavar="SECONDS")
    one.add_argument("--seed", type=int)
    verbs.add_parser("report", help="write docs/scale.md from what is kept")
    return parser


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


async def run(given: argparse.Namespace) -> bool:
    """Measure, keep, print; whether all that must hold did. Raises what the subject raises."""
    server: Server = given.server
    async with record.measuring() as about:
        match given.subject:
            case "crowd":
                found = await crowd.measure(
                    server,
                    nodes=given.nodes,
                    domains=given.domains,
                    runs=given.runs,
                    idle=given.idle,
                    wide=not given.narrow,
                    tell=tell,
                )
            case "sizes":
                measured = [
                    await sizes.measure(server, nodes=nodes, per_clique=PER_CLIQUE, runs=given.runs, tell=tell)
                    for nodes in given.nodes
                ]
            case "churn":
                seed = secrets.randbelow(2**31) if given.seed is None else given.seed
                tell(f"seed {seed}")
                shook = [
                    await shaken.churn(
                        server, nodes=given.nodes, jobs=given.jobs, seconds=60 * given.minutes, seed=seed, tell=tell
                    )
                ]
            case _:
                seed = secrets.randbelow(2**31) if given.seed is None else given.seed
                tell(f"seed {seed}")
                shook = [
                    one
                    for nodes in given.nodes
                    for one in await shaken.races(
                        server, nodes=nodes, runs=given.runs, seconds=given.churn, seed=seed, tell=tell
                    )
                ]
    match given.subject:
        case "crowd":
            record.save("crowd", server, [found], about=about)
            text, good = page.crowd_table(found), page.crowd_holds(found)
        case "sizes":
            record.save("sizes", server, measured, about=about)
            text, good = page.sizes_table(measured), page.sizes_hold(measured)
        case "churn":
            record.save("churn", server, shook, about=about)
            text, good = page.churn_table(shook[0]), page.churn_holds(shook[0])
        case _:
            record.save("races", server, shook, about=about)
            text, good = page.races_table(shook), all(page.race_holds(one) for one in shook)
    print(f"API server: {server}; nodes and nvidia-imex: simulated; machine {about.busy:.0%} busy\n\n{text}")
    return good


def report() -> int:
    """Write docs/scale.md."""
    try:
        text = page.render(
            crowds=_kept("crowd", Crowd),
            sizes=_kept("sizes", Size),
            churns=_kept("churn", Shaken),
            races=_kept("races", Shaken),
        )
    except ValueError as error:
        tell(f"bench: {error}")
        return REFUSED
    page.PAGE.write_text(text)
    return GOOD


def _kept(subject: str, kind: type[T]) -> list[record.Kept[T]]:
    """From both kinds of API server, as far as it was measured."""
    found = (record.load(subject, server, kind) for server in page.SERVERS)
    return [kept for kept in found if kept is not None]


def main(argv: Sequence[str]) -> int:
    """Exit code."""
    given = _parser().parse_args(argv)
    if given.subject == "report":
        return report()
    configure("error", json=False)
    code = INTERRUPTED
    try:
        code = GOOD if asyncio.run(_until_signal(given)) else BAD
    except* (BedError, KubeError, NotReachedError, OSError, TimeoutError) as group:
        tell(f"bench: {_first(group)}")
        code = FAILED
    except* (asyncio.CancelledError, KeyboardInterrupt):
        tell("bench: interrupted, everything is taken down")
    return code


async def _until_signal(given: argparse.Namespace) -> bool:
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await run(given)


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
