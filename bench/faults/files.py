"""Files and disks of a node: full, read-only, damaged, emptied.

No row needs root but those that mount: elsewhere a limit on the size of files makes each write of one process fail,
as a full disk does.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Final

from bench.faults.imex import until_said
from bench.faults.kills import kill_agent, kill_host
from bench.faults.row import Row
from bench.faults.stage import Stage, eventually
from interlace.api.computedomain import DRIVER
from interlace.api.core import Event, Pod
from interlace.sim.kubelet.cdi import UnresolvableDeviceError, resolve
from interlace.sim.kubelet.dra import Claim, PluginError

HOME: Final = "var/lib/kubelet/plugins/compute-domain.nvidia.com"


def root(stage: Stage, node: str) -> Path:
    """The machine's root folder."""
    return stage.cluster.fleet.nodes[node].tray.root


def process(stage: Stage, component: str, node: str) -> int:
    """Process id of a component that runs separately, 0 while it does not run."""
    pod = stage.component(component, node=node).metadata.name
    return stage.cluster.fleet.programs.processes.get(pod, 0)


async def restarted(stage: Stage, component: str, node: str, *, before: int) -> None:
    """Wait until another process of the component runs there and its Pod is Ready."""

    async def same() -> list[str]:
        there = process(stage, component, node) not in (0, before)
        return [] if there and stage.component(component, node=node).ready else [f"{component} on {node} is not back"]

    await eventually(same, within=stage.limit)


async def prepared_again(stage: Stage, pod: Pod) -> None:
    """Call Prepare as kubelet does for a new sandbox, and resolve what it answers, until both are good."""
    node = stage.cluster.fleet.nodes[pod.spec.node_name]
    claims = [
        Claim(namespace=claim.metadata.namespace, name=claim.metadata.name, uid=claim.metadata.uid)
        for claim in stage.cluster.claims.items()
        if any(user.uid == pod.metadata.uid for user in claim.status.reserved_for)
    ]

    async def failing() -> list[str]:
        try:
            ids = await node.plugins.prepare(DRIVER, claims, deadline=45)
            edits = resolve(ids, root=node.cdi_root)
        except (PluginError, UnresolvableDeviceError) as error:
            return [str(error)]
        return [] if "/dev/nvidia-caps-imex-channels/channel0" in edits.device_nodes else [f"no channel in {edits}"]

    await eventually(failing, within=stage.limit)


def _garble(path: Path) -> None:
    path.write_bytes(b'{"version":1,"sha256":"\xff\xfe' + path.read_bytes()[: path.stat().st_size // 2])


async def checkpoint_damaged(stage: Stage) -> None:
    """Half a checkpoint is what the next agent finds."""
    await stage.start("job", count=2)
    pods = await stage.formed("job", count=2)
    node = pods[0].spec.node_name
    before = process(stage, "agent", node)
    stage.strike()
    _garble(root(stage, node) / HOME / "checkpoint.json")
    await kill_agent(stage, node)
    await restarted(stage, "agent", node, before=before)
    await prepared_again(stage, pods[0])
    stage.end()

    async def silent() -> list[str]:
        listing = await stage.cluster.client.list(Event, fields=f"involvedObject.name={node}")
        told = [event for event in listing.items if event.reason == "CheckpointDamaged"]
        stage.notes[:] = [f"event `CheckpointDamaged` on the Node: {event.message}" for event in told[-1:]]
        return [] if told else [f"no event CheckpointDamaged about {node}"]

    await eventually(silent, within=stage.limit)
    stage.notes[:] = ["event `CheckpointDamaged` on the Node"]
    await stage.formed("job", count=2)


async def spec_damaged(stage: Stage) -> None:
    """The CDI spec of a running Pod is cut short; a Prepare for a new sandbox finds and mends it."""
    await stage.start("job", count=2)
    pods = await stage.formed("job", count=2)
    folder = stage.cluster.fleet.nodes[pods[0].spec.node_name].cdi_root
    stage.strike()
    for path in folder.glob("*claim*"):
        path.write_bytes(path.read_bytes()[:40])
    await prepared_again(stage, pods[0])


async def folder_emptied(stage: Stage) -> None:
    """Everything in the CDI folder is gone, and the folder too, under a running agent."""
    await stage.start("job", count=2)
    pods = await stage.formed("job", count=2)
    stage.strike()
    for name in stage.cluster.gpu_nodes:
        shutil.rmtree(stage.cluster.fleet.nodes[name].cdi_root)
    await prepared_again(stage, pods[0])
    await prepared_again(stage, pods[1])
    await stage.scale("job", count=3)
    await stage.formed("job", count=3)


async def order_damaged(stage: Stage) -> None:
    """Half an order is what the next imex-host finds, and nobody ended ``nvidia-imex`` in an orderly way."""
    await stage.start("job", count=2)
    before = {pod.metadata.uid: pod.spec.node_name for pod in await stage.formed("job", count=2)}
    node = next(iter(before.values()))
    host = process(stage, "imex-host", node)
    old = stage.imex(node)
    (path,) = root(stage, node).glob("**/order.json")
    stage.strike()
    _garble(path)
    await kill_host(stage, node)
    await restarted(stage, "imex-host", node, before=host)

    async def same() -> list[str]:
        now = stage.imex(node)
        return [] if len(now) == 1 and now != old else [f"nvidia-imex is {now}, was {old}"]

    await eventually(same, within=stage.limit)
    await stage.formed("job", count=2)
    stage.end()
    assert before.keys() <= stage.uids("job"), "a Pod that ran was replaced"


@contextlib.contextmanager
def no_room(pid: int) -> Iterator[None]:
    """No file of the process may grow: each write fails, as on a full disk, with another number of the error."""
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


async def _forms_with_room(
    stage: Stage, node: str, *, said: str, limit: contextlib.AbstractContextManager[None]
) -> None:
    with limit:
        stage.strike()
        await stage.start("job", count=1, nodes=[node])
        await until_said(stage, said)
    stage.mend()
    await stage.formed("job", count=1)


async def agent_without_room(stage: Stage) -> None:
    """The agent can write neither checkpoint nor CDI spec."""
    node = stage.cluster.gpu_nodes[0]
    await _forms_with_room(stage, node, said="cannot be written", limit=no_room(process(stage, "agent", node)))


async def host_without_room(stage: Stage) -> None:
    """The imex-host can write neither config nor hosts."""
    node = stage.cluster.gpu_nodes[0]
    await _forms_with_room(stage, node, said="cannot be written", limit=no_room(process(stage, "imex-host", node)))


async def _mount(*words: str) -> None:
    done = await asyncio.create_subprocess_exec(*words, stderr=asyncio.subprocess.PIPE)
    _, complaint = await done.communicate()
    if done.returncode != 0:
        raise OSError(f"{' '.join(words)}: {complaint.decode(errors='replace').strip()}")


@contextlib.asynccontextmanager
async def full(folder: Path) -> AsyncIterator[None]:
    """A disk of 4 KiB over the folder, with nothing free."""
    await _mount("mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(folder))
    try:
        (folder / "filler").write_bytes(bytes(4096))
        yield
    finally:
        await _mount("umount", "-l", str(folder))


@contextlib.asynccontextmanager
async def read_only(folder: Path) -> AsyncIterator[None]:
    """The folder as it is, but nothing in it can be changed."""
    await _mount("mount", "--bind", str(folder), str(folder))
    try:
        await _mount("mount", "-o", "remount,bind,ro", str(folder))
        yield
    finally:
        await _mount("umount", "-l", str(folder))


async def _forms_after(
    stage: Stage, *, where: str, trouble: Callable[[Path], contextlib.AbstractAsyncContextManager[None]]
) -> None:
    node = stage.cluster.gpu_nodes[0]
    async with trouble(root(stage, node) / where):
        stage.strike()
        await stage.start("job", count=1, nodes=[node])
        await until_said(stage, "cannot be written")
    stage.mend()
    await stage.formed("job", count=1)


async def cdi_full(stage: Stage) -> None:
    """The disk of the CDI folder is full."""
    await _forms_after(stage, where="var/run/cdi", trouble=full)


async def home_read_only(stage: Stage) -> None:
    """The folder of the checkpoint is read-only."""
    await _forms_after(stage, where=HOME, trouble=read_only)


async def cdi_read_only(stage: Stage) -> None:
    """The CDI folder is read-only."""
    await _forms_after(stage, where="var/run/cdi", trouble=read_only)


_ROOM: Final = "The node and its Pod are Ready once there is room; before, the condition names the file."
ROWS: Final = (
    Row(
        name="checkpoint-damaged",
        fault="the agent's checkpoint is damaged and the agent is killed",
        when="while a domain of 2 nodes runs",
        made="half of the file and bytes that are no text; SIGKILL",
        holds="The claims are known again and can be prepared anew; the Pods are the same; the file is kept aside.",
        act=checkpoint_damaged,
        cheap=True,
    ),
    Row(
        name="cdi-spec-damaged",
        fault="the CDI spec of a Pod is damaged",
        when="while a domain of 2 nodes runs",
        made="the file is cut to 40 bytes",
        holds="Prepare, called for a new sandbox, gives a spec that can be used.",
        act=spec_damaged,
        cheap=True,
    ),
    Row(
        name="cdi-folder-removed",
        fault="the CDI folder is removed",
        when="under running agents, while a domain of 2 nodes runs",
        made="the folder is removed on every node",
        holds="Prepare, called for a new sandbox, gives a spec that can be used; a third node joins the domain.",
        act=folder_emptied,
        cheap=True,
    ),
    Row(
        name="order-damaged",
        fault="the order of an imex-host is damaged and the imex-host is killed",
        when="while a domain of 2 nodes runs",
        made="half of the file and bytes that are no text; SIGKILL",
        holds="nvidia-imex runs again, once; both nodes are Ready and the Pods are the same.",
        act=order_damaged,
        cheap=True,
    ),
    Row(
        name="agent-without-room",
        fault="the disk of the agent is full",
        when="while a domain forms on its node",
        made="a limit of 0 bytes on the files of the process",
        holds=_ROOM,
        act=agent_without_room,
        limit=200,
    ),
    Row(
        name="imex-host-without-room",
        fault="the disk of the imex-host is full",
        when="while a domain forms on its node",
        made="a limit of 0 bytes on the files of the process",
        holds=_ROOM,
        act=host_without_room,
        cheap=True,
    ),
    Row(
        name="cdi-disk-full",
        fault="the disk of the CDI folder is full",
        when="while a domain forms on its node",
        made="a file system in memory of 4 KiB over the folder, filled",
        holds=_ROOM,
        act=cdi_full,
        root=True,
        limit=200,
    ),
    Row(
        name="cdi-folder-read-only",
        fault="the CDI folder is read-only",
        when="while a domain forms on its node",
        made="a read-only bind mount over the folder",
        holds=_ROOM,
        act=cdi_read_only,
        root=True,
        limit=200,
    ),
    Row(
        name="checkpoint-read-only",
        fault="the folder of the checkpoint is read-only",
        when="while a domain forms on its node",
        made="a read-only bind mount over the folder",
        holds=_ROOM,
        act=home_read_only,
        root=True,
        limit=200,
    ),
)
