"""What goes wrong with ``nvidia-imex`` (simulated) itself, and with the driver that it comes from."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.faults.kills import until_prepare_waits
from bench.faults.row import Row
from bench.faults.stage import Stage, eventually
from interlace.sim.imex import install
from interlace.sim.trouble import break_imex, mend_imex


async def until_said(stage: Stage, *words: str, name: str = "job") -> None:
    """Wait until the domain's condition Ready is False with all of ``words`` in its message."""

    def said() -> bool:
        found = stage.condition(name)
        return found is not None and found.status == "False" and all(word in found.message for word in words)

    await stage.until(f"a condition that says {' and '.join(words)}", said, instead=lambda: str(stage.condition(name)))


async def crash_loop(stage: Stage) -> None:
    """It crashes at each start until the fault is mended."""
    nodes = stage.cluster.gpu_nodes[:2]
    break_imex(stage.cluster, nodes)
    try:
        stage.strike()
        await stage.start("job", count=2, nodes=nodes)
        await until_said(stage, "ended")
    finally:
        mend_imex(stage.cluster, nodes)
    stage.mend()
    await stage.formed("job", count=2)


async def never_ready(stage: Stage) -> None:
    """It runs and never gets READY until the fault is mended; the condition says so."""
    nodes = stage.cluster.gpu_nodes[:2]
    break_imex(stage.cluster, nodes, fault="never_ready")
    try:
        stage.strike()
        await stage.start("job", count=2, nodes=nodes)
        await until_said(stage, "not READY")
    finally:
        mend_imex(stage.cluster, nodes)
    stage.mend()
    await stage.formed("job", count=2)


async def hanging_question(stage: Stage) -> None:
    """``nvidia-imex-ctl -N`` gets no answer: the Pods start all the same, and the peers count as unknown until then."""
    nodes = stage.cluster.gpu_nodes[:2]
    break_imex(stage.cluster, nodes, fault="hang_health")
    try:
        stage.strike()
        await stage.start("job", count=2, nodes=nodes)
        await stage.formed("job", count=2)
        state = stage.condition("job", "PeersConnected")
        assert state is None or state.status != "True", "peers count as connected though nobody could ask"
    finally:
        mend_imex(stage.cluster, nodes)
    stage.mend()

    def connected() -> bool:
        found = stage.condition("job", "PeersConnected")
        return found is not None and found.status == "True"

    await stage.until(
        "peers that see each other", connected, instead=lambda: str(stage.condition("job", "PeersConnected"))
    )


@contextlib.contextmanager
def session_taken(root: Path) -> Iterator[None]:
    """Hold the node's one IMEX session, as ``nvidia-imex.service`` of the host does."""
    path = root / "run/imex-session"
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(lock)


async def service_of_the_host(stage: Stage) -> None:
    """The condition names the service until somebody masks it; then the domain forms by itself."""
    node = stage.cluster.gpu_nodes[0]
    with session_taken(stage.cluster.fleet.nodes[node].tray.root):
        stage.strike()
        await stage.start("job", count=1, nodes=[node])
        await until_said(stage, "nvidia-imex.service", node)
    stage.mend()
    await stage.formed("job", count=1)


def _equip(stage: Stage, node: str) -> None:
    tray = stage.cluster.fleet.nodes[node].tray
    install(
        tray.root,
        hosts_file=tray.root / "etc/hosts",
        faults=tray.root / "etc/imex-faults.json",
        start_delay=stage.cluster.fleet.programs.imex_start,
    )


async def binary_missing(stage: Stage) -> None:
    """The program is away while a domain forms, and is put back: an upgrade of the driver that takes its time."""
    node = stage.cluster.gpu_nodes[0]
    binary = stage.cluster.fleet.nodes[node].tray.root / "usr/bin/nvidia-imex"
    stage.strike()
    binary.unlink()
    try:
        await stage.start("job", count=1, nodes=[node])
        await until_said(stage, "nvidia-imex", "install")
    finally:
        _equip(stage, node)
    stage.mend()
    await stage.formed("job", count=1)


async def binary_replaced(stage: Stage) -> None:
    """Another file takes the program's place under a running domain: it runs on, and a third node joins it."""
    await stage.start("job", count=2)
    before = {pod.metadata.uid: pod.spec.node_name for pod in await stage.formed("job", count=2)}
    processes = {node: stage.imex(node) for node in before.values()}
    stage.strike()
    for node in stage.cluster.gpu_nodes:
        _equip(stage, node)
    await stage.scale("job", count=3)
    await stage.formed("job", count=3)
    stage.end()
    assert before.keys() <= stage.uids("job"), "a Pod that ran was replaced"
    assert processes == {node: stage.imex(node) for node in before.values()}, "nvidia-imex was started again"


async def driver_root_replaced(stage: Stage) -> None:
    """The folder of the driver is another one under a running agent; the next domain uses it."""
    await stage.start("job", count=2)
    await stage.formed("job", count=2)
    stage.strike()
    for node in stage.cluster.gpu_nodes:
        folder = stage.cluster.fleet.nodes[node].tray.root / "usr"
        old = folder.with_name("usr.old")
        folder.rename(old)
        _equip(stage, node)
        shutil.rmtree(old)
    await stage.remove("job")
    await stage.gone()
    await stage.start("next", count=4)
    await stage.formed("next", count=4)


async def killed_again_and_again(stage: Stage) -> None:
    """It is killed the moment it runs, ten times; the pauses grow and the Pod starts in the end."""
    node = stage.cluster.gpu_nodes[0]
    break_imex(stage.cluster, [node], fault="never_ready")
    try:
        await stage.start("job", count=1, nodes=[node])
        await until_prepare_waits(stage)
        stage.strike()
        for _ in range(4):

            async def absent() -> list[str]:
                return [] if stage.imex(node) else ["no nvidia-imex"]

            await eventually(absent, within=stage.limit)
            for pid in stage.imex(node):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)
    finally:
        mend_imex(stage.cluster, [node])
    stage.mend()
    await stage.formed("job", count=1)


ROWS: Final = (
    Row(
        name="imex-crash-loop",
        fault="nvidia-imex crashes at each start",
        when="while a domain of 2 nodes forms",
        made="fault `crash_at_start` of the simulated program, until the condition shows it",
        holds="Both nodes and Pods are Ready once it no longer crashes; before, the condition says that it does.",
        act=crash_loop,
        cheap=True,
    ),
    Row(
        name="imex-never-ready",
        fault="nvidia-imex never gets READY",
        when="while a domain of 2 nodes forms",
        made="fault `never_ready` of the simulated program, until the condition shows it",
        holds="Both nodes and Pods are Ready once it is; before, the condition says that it is overdue.",
        act=never_ready,
    ),
    Row(
        name="imex-killed-four-times",
        fault="nvidia-imex is killed each time it runs",
        when="while a Prepare call waits for it",
        made="SIGKILL, four times in a row",
        holds="The node and its Pod are Ready.",
        act=killed_again_and_again,
    ),
    Row(
        name="imex-question-hangs",
        fault="nvidia-imex-ctl -N gets no answer",
        when="while a domain of 2 nodes forms",
        made="fault `hang_health` of the simulated program",
        holds="The Pods start all the same; PeersConnected is True only once the question is answered.",
        act=hanging_question,
        cheap=True,
    ),
    Row(
        name="imex-service-of-the-host",
        fault="nvidia-imex.service of the host runs",
        when="while a domain forms on its node",
        made="the session of the simulated driver is held",
        holds="The node and its Pod are Ready once the service is gone; before, the condition names service and node.",
        act=service_of_the_host,
        cheap=True,
        human="The driver has one IMEX session. Whoever switched the service on may need it, so it is left alone. "
        "The condition says: disable and mask nvidia-imex.service on the node.",
    ),
    Row(
        name="imex-binary-missing",
        fault="nvidia-imex is missing under the driver root",
        when="while a domain forms",
        made="the file is removed, and put back once the condition shows it",
        holds="The node and its Pod are Ready once the file is there; before, the condition says what to install.",
        act=binary_missing,
        cheap=True,
    ),
    Row(
        name="imex-binary-replaced",
        fault="nvidia-imex is replaced",
        when="under a running domain of 2 nodes",
        made="another file takes its place",
        holds="nvidia-imex of the 2 nodes runs on; a third node joins them.",
        act=binary_replaced,
    ),
    Row(
        name="driver-root-replaced",
        fault="the driver root is replaced",
        when="under a running agent and domain",
        made="its folder is renamed, made anew and the old one removed",
        holds="The domain can be deleted, and the next one, of all 4 nodes, is Ready.",
        act=driver_root_replaced,
        cheap=True,
    ),
)
