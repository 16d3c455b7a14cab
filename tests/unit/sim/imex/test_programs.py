"""The simulated programs by themselves: real processes, real loopback connections."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlace.imex.names import node_map
from interlace.imex.order import SENTINEL
from interlace.sim.imex import install, session_held
from tests.unit.imex.support import DOMAIN, OTHER_DOMAIN, loopback_net, set_faults, short_folder, until


class Tray:
    """One simulated node with its files."""

    def __init__(self, folder: Path, index: int, address: str) -> None:
        self.root = folder / f"n{index}"
        self.root.mkdir(exist_ok=True)
        self.index = index
        self.address = address
        self.process: asyncio.subprocess.Process | None = None
        install(self.root, hosts_file=self.root / "hosts", faults=folder / "faults.json", start_delay=0.0)

    def write(self, names: list[str], addresses: list[str], *, config: str = "") -> None:
        self.write_hosts(names, addresses)
        (self.root / "nodes").write_text("".join(f"{name}\n" for name in names))
        (self.root / "cfg").write_text(
            f"# comment\nBIND_INTERFACE_IP={self.address}\nSERVER_PORT=50000\n"
            f"IMEX_NODE_CONFIG_FILE={self.root}/nodes\nIMEX_CMD_ENABLED=1\n"
            f"IMEX_CMD_UNIX_DOMAIN_PATH={self.root}/cmd\n{config}"
        )

    def write_hosts(self, names: list[str], addresses: list[str]) -> None:
        (self.root / "hosts").write_text("".join(f"{a} {n}\n" for n, a in zip(names, addresses, strict=True)))

    async def start(self) -> None:
        with (self.root / "log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                str(self.root / "usr/bin/nvidia-imex"), "-c", str(self.root / "cfg"), stderr=log
            )

    async def ready(self) -> None:
        await self.start()
        await until(lambda: "] READY" in self.log, what=f"node {self.index} READY: {self.log}")

    @property
    def log(self) -> str:
        return (self.root / "log").read_text()

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    async def end(self) -> int:
        assert self.process is not None
        if self.process.returncode is None:
            self.process.terminate()
        async with asyncio.timeout(20):
            return await self.process.wait()

    async def control(self, *question: str, within: float = 20.0) -> tuple[int | None, str, str]:
        process = await asyncio.create_subprocess_exec(
            str(self.root / "usr/bin/nvidia-imex-ctl"),
            "-c",
            str(self.root / "cfg"),
            *question,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(within):
                out, error = await process.communicate()
        except TimeoutError:
            process.kill()
            await process.communicate()
            raise
        return process.returncode, out.decode(), error.decode()

    async def row(self, *, within: float = 20.0) -> dict[int, str]:
        """Own row of the connection table."""
        _, out, _ = await self.control("-N", "-j", within=within)
        connections: dict[str, Any] = json.loads(out)["nodes"][str(self.index)]["connections"]
        return {int(index): connection["status"] for index, connection in connections.items()}

    async def sees(self, peer: int, word: str, *, within: float = 20.0) -> None:
        async with asyncio.timeout(within):
            while True:
                # A question that came while a fault was still on hangs for ever.
                with contextlib.suppress(TimeoutError):
                    if (await self.row(within=2.0))[peer] == word:
                        return
                await asyncio.sleep(0.05)


class Rack:
    """Some trays of one domain."""

    def __init__(self, folder: Path, count: int, *, slots: int = 4) -> None:
        net = loopback_net()
        self.folder = folder
        self.addresses = [f"{net}.{index + 1}" for index in range(count)]
        self.trays = [Tray(folder, index, address) for index, address in enumerate(self.addresses)]
        self.names, self.map = self.node_map(DOMAIN, slots=slots)
        for tray in self.trays:
            tray.write(self.names, self.map)

    def node_map(self, domain: str, *, slots: int = 4) -> tuple[list[str], list[str]]:
        return node_map(domain, rows=enumerate(self.addresses), slots=slots)

    async def start(self) -> None:
        for tray in self.trays:
            await tray.ready()

    async def end(self) -> None:
        for tray in self.trays:
            if tray.process is not None:
                await tray.end()


@pytest.fixture
def folder() -> Iterator[Path]:
    with short_folder() as made:
        yield made


async def test_a_daemon_alone_is_ready_and_ends_on_term(folder: Path) -> None:
    rack = Rack(folder, 1)
    (tray,) = rack.trays
    await tray.ready()
    assert await tray.control("-q") == (0, "READY\n", "")
    assert session_held(tray.root)
    assert await tray.end() == 0
    assert not session_held(tray.root)
    assert not (tray.root / "cmd").exists()
    assert all("simulated" in line for line in tray.log.splitlines())
    status, out, error = await tray.control("-q")
    assert (status, out) == (1, "")
    assert "cannot reach the daemon" in error


async def test_members_connect_in_both_directions_and_unused_slots_are_never_dialled(folder: Path) -> None:
    rack = Rack(folder, 3)
    assert rack.map[3] == SENTINEL
    await rack.start()
    for tray in rack.trays:
        for peer in range(3):
            await tray.sees(peer, "CONNECTED")
        assert (await tray.row())[3] == "INVALID"
    _, out, _ = await rack.trays[0].control("-N", "-j")
    whole = json.loads(out)
    assert whole["status"] == "DEGRADED"
    assert whole["nodes"]["1"]["status"] == "READY"
    assert whole["nodes"]["2"]["connections"]["0"]["status"] == "CONNECTED"
    assert whole["nodes"]["3"]["status"] == "UNAVAILABLE"
    await rack.end()


async def test_a_full_domain_is_up_and_the_table_for_people_says_simulated(folder: Path) -> None:
    rack = Rack(folder, 2, slots=2)
    await rack.start()
    await rack.trays[0].sees(1, "CONNECTED")
    await rack.trays[1].sees(0, "CONNECTED")
    _, out, _ = await rack.trays[0].control("-N")
    assert "Domain State: UP" in out
    assert "simulated" in out
    await rack.end()


async def test_a_member_with_another_node_map_is_refused_and_named(folder: Path) -> None:
    rack = Rack(folder, 2)
    ours, stale = rack.trays
    names, addresses = rack.node_map(OTHER_DOMAIN)
    stale.write(names, addresses)
    await rack.start()
    await ours.sees(1, "NODE_MAP_MISMATCH")
    await stale.sees(0, "NODE_MAP_MISMATCH")
    await until(lambda: f"node map mismatch: {names[1]}" in ours.log, what="the log names the stale peer")
    assert f"{names[1]} (node 1)" in ours.log
    assert "connected" not in ours.log
    await rack.end()


async def test_a_second_daemon_on_a_node_is_refused(folder: Path) -> None:
    rack = Rack(folder, 1)
    (tray,) = rack.trays
    await tray.ready()
    command = [str(tray.root / "usr/bin/nvidia-imex"), "-c", str(tray.root / "cfg")]
    second = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    async with asyncio.timeout(20):
        _, error = await second.communicate()
    assert second.returncode == 1
    assert b"NV_ERR_IN_USE Failed to allocate Imex session" in error
    assert await tray.control("-q") == (0, "READY\n", "")
    await tray.end()
    await tray.ready()
    await tray.end()


async def test_files_changed_after_the_start_have_no_effect_but_hosts_at_a_reload(folder: Path) -> None:
    rack = Rack(folder, 2)
    one, two = rack.trays
    one.write_hosts(rack.names, [rack.map[0], SENTINEL, *rack.map[2:]])
    await rack.start()
    await two.sees(0, "CONNECTED")
    one.write(*rack.node_map(OTHER_DOMAIN), config="SERVER_PORT=50999\n")
    one.write_hosts(rack.names, rack.map)
    assert (await one.row())[1] == "INVALID"
    one.send(signal.SIGUSR1)
    await one.sees(1, "CONNECTED")
    await two.sees(0, "CONNECTED")
    await rack.end()


async def test_extra_reloads_inside_five_seconds_are_dropped(folder: Path) -> None:
    rack = Rack(folder, 2)
    one, two = rack.trays
    one.write_hosts(rack.names, [rack.map[0], SENTINEL, *rack.map[2:]])
    await rack.start()
    one.send(signal.SIGUSR1)
    await until(lambda: "names resolved again" in one.log, what="first reload")
    one.write_hosts(rack.names, rack.map)
    one.send(signal.SIGUSR1)
    await until(lambda: "SIGUSR1 dropped" in one.log, what="second reload dropped")
    assert (await one.row())[1] == "INVALID"
    assert two.process is not None
    await rack.end()


async def test_a_member_that_ends_tells_its_peers_and_is_connected_again_when_it_comes_back(folder: Path) -> None:
    rack = Rack(folder, 2)
    one, two = rack.trays
    await rack.start()
    await one.sees(1, "CONNECTED")
    await two.end()
    await one.sees(1, "DISCONNECTED")
    assert "shuts down; its exports end here" in one.log
    await two.start()
    await one.sees(1, "CONNECTED")
    await rack.end()


async def test_a_blocked_pair_is_disconnected_on_both_sides_and_heals(folder: Path) -> None:
    rack = Rack(folder, 3)
    await rack.start()
    one, two, three = rack.trays
    await one.sees(2, "CONNECTED")
    set_faults(folder, blocked=[[rack.names[0], 2]])
    await one.sees(2, "DISCONNECTED")
    await three.sees(0, "DISCONNECTED")
    assert (await two.row())[0] == (await two.row())[2] == "CONNECTED"
    set_faults(folder)
    await one.sees(2, "CONNECTED")
    await rack.end()


async def test_a_question_for_the_table_can_hang_while_the_state_answers(folder: Path) -> None:
    rack = Rack(folder, 1)
    (tray,) = rack.trays
    set_faults(folder, hang_health=True)
    await tray.ready()
    with pytest.raises(TimeoutError):
        await tray.control("-N", "-j", within=1.0)
    assert await tray.control("-q") == (0, "READY\n", "")
    set_faults(folder)
    await until(lambda: "as the faults file asks" in tray.log, what="said in the log")
    await tray.sees(0, "CONNECTED")
    await tray.end()


async def test_a_slow_start_answers_with_its_state_meanwhile(folder: Path) -> None:
    rack = Rack(folder, 1)
    (tray,) = rack.trays
    set_faults(folder, start_delay={"0": 600})
    await tray.start()
    await until((tray.root / "cmd").exists, what="command socket")
    assert await tray.control("-q") == (0, "INITIALIZING\n", "")
    await tray.end()


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda tray: (tray.root / "nodes").unlink(), "FileNotFoundError"),
        (lambda tray: (tray.root / "hosts").write_text(""), "resolves to own address"),
        (lambda tray: set_faults(tray.root.parent, crash_at_start=["0"]), ""),
        (lambda tray: set_faults(tray.root.parent, crash_at_start=[0]), "as the faults file asks"),
    ],
    ids=["no nodes file", "own name missing", "other node's fault", "crash"],
)
async def test_a_daemon_that_cannot_start_says_why(folder: Path, break_it: Any, said: str) -> None:
    rack = Rack(folder, 1)
    (tray,) = rack.trays
    break_it(tray)
    await tray.start()
    if not said:
        await until(lambda: "] READY" in tray.log, what="not struck")
        assert await tray.end() == 0
        return
    assert tray.process is not None
    async with asyncio.timeout(20):
        assert await tray.process.wait() == 1
    assert said in tray.log
    assert "Traceback" not in tray.log


async def test_an_address_in_use_is_named(folder: Path) -> None:
    rack = Rack(folder, 2)
    one, two = rack.trays
    await one.ready()
    two.address = one.address
    two.write(rack.names, [rack.map[1], one.address, *rack.map[2:]])
    await two.start()
    assert two.process is not None
    async with asyncio.timeout(20):
        assert await two.process.wait() == 1
    assert f"cannot listen on {one.address}:50000" in two.log
    await rack.end()


async def test_a_daemon_that_was_killed_does_not_answer_although_its_files_are_left(folder: Path) -> None:
    (tray,) = Rack(folder, 1).trays
    await tray.ready()
    assert await tray.control("-q") == (0, "READY\n", "")
    assert tray.process is not None
    tray.process.kill()
    await tray.process.wait()
    status, answer, why = await tray.control("-q")
    assert (status, answer) == (1, "")
    assert "cannot reach the daemon" in why


async def test_rubbish_on_the_peer_port_and_the_command_socket_does_no_harm(folder: Path) -> None:
    rack = Rack(folder, 1)
    (tray,) = rack.trays
    await tray.ready()
    for data in (b"\xff\x00\n", b"HELLO\n", b"HELLO x y z\n", b"STATUS\n", b"BYE\n", b"x" * 100_000):
        async with asyncio.timeout(20):
            reader, writer = await asyncio.open_connection(tray.address, 50000)
            writer.write(data)
            with contextlib.suppress(ConnectionResetError):
                await reader.read()
            writer.close()
            reader, writer = await asyncio.open_unix_connection(str(tray.root / "cmd"))
            writer.write(data)
            with contextlib.suppress(ConnectionResetError):
                await reader.read()
            writer.close()
    assert await tray.control("-q") == (0, "READY\n", "")
    await tray.end()


async def test_a_command_port_serves_when_no_socket_path_is_set(folder: Path) -> None:
    rack = Rack(folder, 1)
    (tray,) = rack.trays
    port = f"IMEX_CMD_UNIX_DOMAIN_PATH=\nIMEX_CMD_BIND_INTERFACE_IP={tray.address}\nIMEX_CMD_PORT=50005\n"
    tray.write(rack.names, rack.map, config=port)
    await tray.ready()
    assert await tray.control("-q") == (0, "READY\n", "")
    await tray.end()


def test_wrong_arguments_get_a_usage_line_and_status_2(folder: Path) -> None:
    install(folder, hosts_file=folder / "hosts", faults=folder / "faults", start_delay=0)
    for name in ("nvidia-imex", "nvidia-imex-ctl"):
        done = subprocess.run(
            [folder / "usr/bin" / name], capture_output=True, text=True, check=False, timeout=20, env=dict(os.environ)
        )
        assert done.returncode == 2
        assert "usage" in done.stderr
