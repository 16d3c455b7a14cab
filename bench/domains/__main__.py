"""``python -m bench.domains``: measure, or write the report of what was measured.

Measuring needs a control plane (``python -m testbed get`` builds it) and gcc; the report needs result files alone.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from bench import cli, footprint
from bench.domains.known import Known, MissingProgramsError
from bench.domains.load import LoadSampler
from bench.domains.natives import NativeError
from bench.domains.ours import Interlace
from bench.domains.page import render
from bench.domains.record import write
from bench.domains.recorded import ResultError, read_all
from bench.domains.scenario import Scenario
from bench.domains.series import RESULTS, Series
from bench.domains.world import Driver
from interlace.kube.log import configure
from interlace.sim.observing import NotReachedError
from testbed.errors import BedError

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
T = TypeVar("T")
GOOD, BAD, REFUSED, FAILED, INTERRUPTED = 0, 1, 2, 4, 130


def tell(line: str) -> None:
    """One line of progress."""
    print(line, file=sys.stderr, flush=True)


async def measure(driver: Driver, series: Series) -> bool:
    """All runs of a series, a new cluster for each size; True if each ended as it should."""
    good = True
    for nodes in series.sizes:
        async with asyncio.TaskGroup() as group:
            sampler = LoadSampler()
            sampling = group.create_task(sampler.run())
            async with driver.start(series, nodes=nodes) as world:
                tell(f"{driver.name}, {nodes} nodes, Kubernetes {world.cluster.plane.version}")
                scenario = Scenario(world, driver=driver, series=series, nodes=nodes, sampler=sampler, tell=tell)
                series.clear(driver=driver.name, nodes=nodes)
                for number in range(1 - series.warmup, series.runs + 1):
                    run = await scenario.run(number)
                    write(run, series.file(driver=driver.name, nodes=nodes, run=number))
                    good = good and run.good
            sampling.cancel()
    return good


def parse_count(text: str) -> int:
    """A whole number from 1. Raises ArgumentTypeError."""
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def parse_sizes(text: str) -> tuple[int, ...]:
    """Numbers of nodes, each once, smallest first. Raises ArgumentTypeError."""
    return tuple(sorted({parse_count(word.strip()) for word in text.split(",")}))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.domains", description=__doc__.splitlines()[0])
    parser.add_argument("--driver", choices=["interlace", "upstream"], default="interlace")
    parser.add_argument("-n", type=parse_sizes, default="2,9,18,36", metavar="N,...", help="numbers of nodes")
    parser.add_argument("--runs", type=parse_count, default=3)
    parser.add_argument(
        "--warmup", type=int, choices=range(10), default=1, metavar="RUNS", help="runs before the measured ones"
    )
    parser.add_argument("--out", type=Path, help="folder of the results")
    parser.add_argument("--per-clique", type=parse_count, default=18, help="nodes of one NVLink partition")
    parser.add_argument("--pods-per-node", type=parse_count, default=1)
    parser.add_argument("--imex-ms", type=float, default=50, help="start of a simulated nvidia-imex")
    parser.add_argument("--platform-rate", type=int, help="requests a second of the platform (default: its own)")
    parser.add_argument("--volume-wait", type=float, default=0.0, help="seconds from binding to Prepare")
    parser.add_argument("--steady", type=float, default=10.0, help="seconds of rest")
    parser.add_argument("--together", action="store_true", help="our components in one process instead of one each")
    parser.add_argument("--tag", default="", help="name of a series with other settings")
    parser.add_argument("--driver-programs", type=Path, help="folder of the known driver's programs")
    parser.add_argument("--driver-source", type=Path, help="the known driver's source tree")
    return parser


def report(argv: Sequence[str]) -> int:
    """Write the page. Exit code 0, or 2 if a result file cannot be read or none is there."""
    parser = argparse.ArgumentParser(prog="python -m bench.domains report", description="Write docs/performance.md.")
    parser.add_argument("folder", type=Path, nargs="?", default=RESULTS / "interlace", help="results of ours")
    parser.add_argument("--to", type=Path, default=PAGE, help="the page")
    given = parser.parse_args(argv)
    try:
        runs = read_all([given.folder, RESULTS / "upstream"])
        if not any(run.driver == "interlace" for run in runs):
            raise ResultError(f"{given.folder} holds no result of a measured run of interlace; run the bench first")
        page = render(
            runs,
            starts=_stored(cli.RESULT, cli.Starts),
            idle=_stored(footprint.RESULT, footprint.Footprint),
        )
    except ResultError as error:
        tell(f"bench: {error}")
        return REFUSED
    given.to.write_text(page)
    tell(f"{given.to} is written from {len(runs)} runs")
    return GOOD


def _stored(path: Path, kind: type[T]) -> T | None:
    """What another script of the bench has left; None if it did not run."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise ResultError(f"{path} cannot be read: {error}") from None


def main(argv: Sequence[str]) -> int:
    """Exit code: 0 measured, 1 a run did not end as it should, 2 refused, 4 failed, 130 interrupted."""
    if argv[:1] == ["report"]:
        return report(argv[1:])
    given = _parser().parse_args(argv)
    driver: Driver = (Interlace if given.driver == "interlace" else Known)(tell=lambda line: tell(f"  {line}"))
    series = Series(
        out=(given.out or RESULTS / given.driver).absolute(),
        sizes=given.n,
        runs=given.runs,
        warmup=given.warmup,
        per_clique=given.per_clique,
        pods_per_node=given.pods_per_node,
        imex_start=given.imex_ms / 1000,
        platform_rate=given.platform_rate,
        volume_wait=given.volume_wait,
        steady=given.steady,
        together=given.together,
        tag=given.tag,
        driver_programs=given.driver_programs,
        driver_source=given.driver_source,
    )
    configure("error", json=False)
    code = INTERRUPTED
    try:
        code = GOOD if asyncio.run(_until_signal(driver, series)) else BAD
    except* MissingProgramsError as group:
        tell(f"bench: {_first(group)}")
        code = REFUSED
    except* (NativeError, BedError, NotReachedError, OSError) as group:
        tell(f"bench: {_first(group)}")
        code = FAILED
    except* (asyncio.CancelledError, KeyboardInterrupt):
        tell("bench: interrupted, everything is taken down")
    return code


async def _until_signal(driver: Driver, series: Series) -> bool:
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await measure(driver, series)


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
