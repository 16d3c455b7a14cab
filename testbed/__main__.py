"""``python -m testbed``: build the programs of a control plane, and keep named clusters."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from testbed import build, clusters, flags, images
from testbed.errors import BedError, Refused
from testbed.programs import CONTROL_PLANE, MODULES, NODE, cache_root, pinned_version
from testbed.progress import Progress

T = TypeVar("T")
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")
by_name = click.option("--name", default="default", show_default=True, help="Name of the cluster.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Real etcd, kube-apiserver, kube-scheduler and kube-controller-manager on this machine."""


@main.command()
@click.option("--control-plane", is_flag=True, help="Leave out what only real nodes need.")
@as_json
def get(*, control_plane: bool, as_json: bool) -> None:
    """Build all programs into the cache (about 7 minutes on 2 cores the first time, then nothing)."""
    started = time.monotonic()
    names = CONTROL_PLANE if control_plane else (*CONTROL_PLANE, *NODE)
    programs = _run(build.get(cache_root(), progress=Progress(), wanted=names))
    if as_json:
        document = {
            "go": programs.go_version,
            "versions": {module.name: pinned_version(module) for module in MODULES},
            "programs": {name: str(programs.path(name)) for name in names},
            "seconds": round(time.monotonic() - started, 1),
        }
        _print_json(document)
    else:
        for name in names:
            click.echo(programs.path(name))


@main.command()
@click.argument("target", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--name", default="localhost/interlace:test", show_default=True, help="Whole name of the image.")
@click.option("--layer", is_flag=True, help="Write the root file system alone, as a plain tar.")
def image(*, target: Path, name: str, layer: bool) -> None:
    """Pack the components, with this interpreter and environment, as an OCI tar; no registry is asked."""

    async def write() -> None:
        with images.own_root() as root:
            if layer:
                with target.open("wb") as file:
                    images.write_layer(file, root)
            else:
                images.write_image(target, name=name, root=root)

    _run(write())


@main.command()
@by_name
@click.option("--no-scheduler", is_flag=True, help="Leave kube-scheduler out.")
@click.option("--no-controller-manager", is_flag=True, help="Leave kube-controller-manager out.")
@click.option(
    "--client-qps", type=click.IntRange(1), help="Client rate of scheduler and controller manager [platform default]."
)
@click.option(
    "--node-monitor-grace-period", type=click.FloatRange(1), help="Seconds without a Lease until a node is Unknown."
)
@click.option(
    "--toleration-seconds", type=click.IntRange(0), help="Seconds that pods stay on a node that is not ready."
)
@click.option("--feature-gate", multiple=True, metavar="NAME=true|false", help="May be repeated.")
@click.option("--runtime-config", multiple=True, metavar="GROUP/VERSION=true|false", help="May be repeated.")
@click.option("--user", multiple=True, metavar="NAME[=GROUP,...]", help="Also write NAME.kubeconfig. May be repeated.")
@as_json
def up(
    *,
    name: str,
    no_scheduler: bool,
    no_controller_manager: bool,
    client_qps: int | None,
    node_monitor_grace_period: float | None,
    toleration_seconds: int | None,
    feature_gate: tuple[str, ...],
    runtime_config: tuple[str, ...],
    user: tuple[str, ...],
    as_json: bool,
) -> None:
    """Start a cluster that runs until `down`; clears what a killed run left under its name."""
    settings = flags.Settings(
        scheduler=not no_scheduler,
        controller_manager=not no_controller_manager,
        client_qps=client_qps,
        node_monitor_grace_period=node_monitor_grace_period,
        toleration_seconds=toleration_seconds,
        feature_gates=_switches("--feature-gate", feature_gate),
        runtime_config=_switches("--runtime-config", runtime_config),
    )
    users = []
    for text in user:
        who, _, groups = text.partition("=")
        users.append(clusters.User(name=who, groups=tuple(group for group in groups.split(",") if group)))

    async def start() -> clusters.Record:
        programs = await build.built(cache_root())
        return await clusters.up(clusters.state_root(), name, programs=programs, settings=settings, users=users)

    record = _run(start())
    if as_json:
        _print_json(record)
    else:
        click.echo(
            f"cluster {name}: Kubernetes {record.version} at {record.url}, ready after {record.seconds} s", err=True
        )
        click.echo(f"export KUBECONFIG={record.kubeconfig}")


@main.command()
@by_name
@click.option("--all", "everything", is_flag=True, help="All clusters.")
def down(*, name: str, everything: bool) -> None:
    """End a cluster and remove its data."""
    root = clusters.state_root()
    names = [standing.name for standing in clusters.status(root)] if everything else [name]
    for each in names:
        found = _run(clusters.down(root, each))
        click.echo(f"cluster {each}: {'ended' if found else 'was not there'}", err=True)


@main.command()
@as_json
def status(*, as_json: bool) -> None:
    """List the clusters and their programs. Exit 1 if one is not whole."""
    found = clusters.status(clusters.state_root())
    if as_json:
        _print_json({"clusters": found})
    else:
        for standing in found:
            click.echo(
                f"{standing.name}: {standing.state} {standing.version} {standing.url} {standing.kubeconfig}".rstrip()
            )
            for part in standing.components:
                what = f"pid {part.pid}, {part.rss_mib} MiB" if part.pid else "not running"
                click.echo(f"  {part.name}: {what}")
        if not found:
            click.echo("no clusters", err=True)
    sys.exit(0 if all(standing.state == "up" for standing in found) else 1)


def _switches(option: str, values: tuple[str, ...]) -> dict[str, bool]:
    result = {}
    for text in values:
        key, _, value = text.partition("=")
        if not key or value not in {"true", "false"}:
            raise click.UsageError(f"{option} {text!r} is not NAME=true or NAME=false")
        result[key] = value == "true"
    return result


def _print_json(document: object) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(document), indent=2))


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end; SIGTERM cancels like Ctrl-C does, and what was started is ended first."""

    async def cancellable() -> T:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(work)
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return task.result()

    try:
        return asyncio.run(cancellable())
    except* (KeyboardInterrupt, asyncio.CancelledError):
        code, message = 130, "interrupted"
    except* Refused as group:
        code, message = 2, str(group.exceptions[0])
    except* (BedError, OSError) as group:
        code, message = 4, str(group.exceptions[0])
    click.echo(f"testbed: {message}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main(prog_name="python -m testbed")
