"""``interlace serve …``: the long-running components, as their Pods start them.

Each becomes a fresh interpreter that loads the component alone: this one has already loaded a third of
the memory that imex-host may idle with. Flags and environment are parsed by each component's own
settings, so that the manifests and this command cannot disagree. SIGTERM is the normal end (exit 0).
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import click

_RAW = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


_SMALL = ("-OO", "-X", "no_debug_ranges")
"""For what idles on every node: without docstrings and columns of tracebacks it takes 2 MB less."""


def _become(module: str, ctx: click.Context, *options: str) -> NoReturn:
    os.execv(sys.executable, [sys.executable, "-P", *options, "-m", module, *ctx.args])  # noqa: S606  our own module


@click.group()
def serve() -> None:
    """Run a component (what the Pods of Interlace call)."""


@serve.command(context_settings=_RAW)
@click.pass_context
def controller(ctx: click.Context) -> None:
    """Reconcile ComputeDomains: claim templates, membership, status."""
    _become("interlace.domains", ctx)


@serve.command(context_settings=_RAW)
@click.pass_context
def agent(ctx: click.Context) -> None:
    """Prepare channels on a GPU node: the DRA kubelet plugin."""
    _become("interlace.node", ctx, *_SMALL)


@serve.command(context_settings=_RAW)
@click.pass_context
def webhook(ctx: click.Context) -> None:
    """Inject the fabric into Pods, guard device annotations, validate ComputeDomains and claims."""
    _become("interlace.pods", ctx)


@serve.command("imex-host", context_settings=_RAW | {"help_option_names": ["-h", "--help"]})
@click.pass_context
def imex_host(ctx: click.Context) -> None:
    """Own the node's one nvidia-imex process.

    \b
    Flags, each with the variable that it wins over:
      --imex-socket PATH            INTERLACE_IMEX_SOCKET   where the agent gives orders
      --imex-run-dir PATH           INTERLACE_IMEX_RUN_DIR  config, state, own order
      --container-driver-root PATH  DRIVER_ROOT_CTR_PATH    of the NVIDIA driver
      --hosts-path PATH             HOSTS_PATH              hosts file that it writes
      --pod-ip ADDRESS              POD_IP                  own address
      --healthcheck-port PORT       HEALTHCHECK_PORT        0 any free one, -1 none
    """  # noqa: D301  click wants the control character
    _become("interlace.imex", ctx, *_SMALL)
