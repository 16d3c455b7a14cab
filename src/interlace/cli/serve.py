"""``interlace serve …``: the long-running components, as their Pods start them.

SIGTERM is the normal end (exit 0). Flags and environment are parsed by each component's own
settings, so that the manifests and this command cannot disagree.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import click

from interlace.cli.exits import Code
from interlace.cli.running import run

_RAW = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


_Settings = TypeVar("_Settings")


def _parse(parse: Callable[[Sequence[str], Mapping[str, str]], _Settings], ctx: click.Context) -> _Settings:
    """Settings from what is left of the command line and the environment; bad values are refused."""
    try:
        return parse(ctx.args, os.environ)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _configure_log() -> None:
    from interlace.kube.log import configure

    configure(os.environ.get("LOG_LEVEL", "info"), json=True)


@click.group()
def serve() -> None:
    """Run a component (what the Pods of Interlace call)."""


@serve.command(context_settings=_RAW)
@click.pass_context
def controller(ctx: click.Context) -> None:
    """Reconcile ComputeDomains: claim templates, membership, status."""
    from interlace.domains import controller as program
    from interlace.domains.settings import ControllerSettings
    from interlace.kube.config import load

    _configure_log()
    settings = _parse(ControllerSettings.parse, ctx)
    run(program.serve(settings, config=load()), on_signal=Code.GOOD)


@serve.command(context_settings=_RAW)
@click.pass_context
def agent(ctx: click.Context) -> None:
    """Prepare channels on a GPU node: the DRA kubelet plugin."""
    from interlace.kube.config import load
    from interlace.node import agent as program
    from interlace.node.nvml import NvmlFacts
    from interlace.node.settings import AgentSettings

    _configure_log()
    settings = _parse(AgentSettings.parse, ctx)
    run(program.serve(settings, config=load(), facts=NvmlFacts(settings.driver_root)), on_signal=Code.GOOD)


@serve.command("imex-host", context_settings=_RAW)
@click.pass_context
def imex_host(ctx: click.Context) -> None:
    """Own the node's one ``nvidia-imex`` process."""
    # A fresh interpreter: this one has already loaded a third of the memory that imex-host may idle with.
    os.execv(sys.executable, [sys.executable, "-m", "interlace.imex", *ctx.args])  # noqa: S606  our own module
