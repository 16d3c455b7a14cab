"""Where ``verify judge``, ``report`` and ``compare`` get their runs from: files, stdin, or the Pods of a Job."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import click
import msgspec

from interlace.cli.exits import Code, Exit

if TYPE_CHECKING:
    from interlace.verify.events import LogEvent
    from interlace.verify.run import Run

JOB: Final = "job/"
_DOCUMENT: Final = re.compile(rb'\s*\{\s*"runs"\s*:')
_HEAD: Final = 64


def job_options(command: Callable[..., None]) -> Callable[..., None]:
    """Which cluster a ``job/NAME`` is on: ``namespace``, ``context`` and ``kubeconfig`` of ``read_logs``."""
    for option in (
        click.option("--kubeconfig", type=click.Path(dir_okay=False), help="Instead of $KUBECONFIG."),
        click.option("--context", help="Context of the kubeconfig."),
        click.option("-n", "--namespace", help="Namespace of job/NAME; default: that of the kubeconfig's context."),
    ):
        command = option(command)
    return command


class Logs(msgspec.Struct, kw_only=True):
    """What was read, from everywhere together."""

    runs: list[Run]
    events: list[LogEvent]

    def add(self, other: Logs) -> None:
        """Put what another source gave behind this."""
        self.runs += other.runs
        self.events += other.events


def stdin() -> BinaryIO:
    """Raises Exit where there is none."""
    if sys.stdin is None:
        raise Exit(Code.REFUSED, "-: stdin is closed; give a file, or pipe a log into the command")
    return sys.stdin.buffer


def read_files(names: Iterable[str]) -> Logs:
    """Logs of nccl-tests, or documents of ``verify parse``; ``-`` is stdin. Raises Exit for what cannot be opened.

    Each is read once and in one go, so that pipes (``<(kubectl logs ...)``) lose nothing.
    """
    logs = Logs(runs=[], events=[])
    for name in names:
        try:
            if name == "-":
                logs.add(_read(stdin(), source=name))
            else:
                with open(name, "rb") as file:  # noqa: PTH123  an empty name is no folder
                    logs.add(_read(file, source=name))
        except (OSError, ValueError) as error:
            cause = (error.strerror if isinstance(error, OSError) else None) or str(error)
            raise Exit(Code.REFUSED, f"{name}: {cause}; give logs that can be read, or - for stdin") from None
    return logs


def _read(file: BinaryIO, *, source: str) -> Logs:
    from interlace.verify.baseline import decode
    from interlace.verify.reader import BLOCK, read

    logs = Logs(runs=[], events=[])
    blocks = iter(lambda: file.read(BLOCK), b"")
    head = file.read(_HEAD)
    if _DOCUMENT.match(head):
        head += file.read()
        if (runs := decode(head, source=source)) is not None:
            logs.runs += runs
            return logs
    logs.runs += read(chain([head], blocks), source=source, events=logs.events.append, begun=True)
    return logs


def read_logs(names: Iterable[str], *, namespace: str | None, context: str | None, kubeconfig: str | None) -> Logs:
    """What `read_files` reads, and for each ``job/NAME`` the logs of the Job's Pods. Raises Exit.

    A Job without Pods ends with UNKNOWN. A file whose path begins like a Job is given as ``./job/NAME``.
    """
    from interlace.cli.running import run as run_async

    given = list(names)
    logs = read_files(name for name in given if not name.startswith(JOB))

    async def main() -> Code:
        for name in given:
            if name.startswith(JOB):
                job = name.removeprefix(JOB)
                logs.add(await _read_job(job, namespace=namespace, context=context, kubeconfig=kubeconfig))
        return Code.GOOD

    if any(name.startswith(JOB) for name in given):
        run_async(main())
    return logs


async def _read_job(name: str, *, namespace: str | None, context: str | None, kubeconfig: str | None) -> Logs:
    """Raises Exit with UNKNOWN if the Job has no Pods, and the errors of ``kube``."""
    from interlace.kube.client import Client
    from interlace.kube.config import load, load_kubeconfig
    from interlace.verify.podlogs import job_logs

    path = Path(kubeconfig) if kubeconfig else None
    config = load_kubeconfig(path, context=context) if kubeconfig or context else load()
    where = namespace or config.namespace or "default"
    async with Client(config, user_agent="interlace-cli") as client:
        found = await job_logs(client, name, namespace=where)
    if not found.pods:
        raise Exit(
            Code.UNKNOWN, f"Job {where}/{name} has no Pods; see `kubectl get pods -n {where}` and give -n NAMESPACE"
        )
    for each in found.missing:
        click.echo(f"interlace: {each}", err=True)
    return Logs(runs=list(found.runs), events=list(found.events))
