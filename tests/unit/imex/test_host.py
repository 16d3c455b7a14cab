"""imex-host whole: real hosts, real links, real simulated nvidia-imex processes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path

import msgspec
import pytest

from interlace.imex import runner as runner_module
from interlace.imex.host import HostError, HostSettings, SettingsError, serve
from interlace.imex.names import domain_hash
from interlace.imex.order import MAX_LINE, Order, State, decode, encode
from interlace.imex.reasons import Reason
from interlace.imex.supervisor import RELOAD_WINDOW
from interlace.sim.imex import install, session_held
from tests.unit.imex.support import (
    DOMAIN,
    OTHER_DOMAIN,
    Node,
    alive,
    loopback_net,
    make_order,
    nodes,
    replace_program,
    set_faults,
    settings_for,
    short_folder,
    until,
)


def order_for(made: list[Node], index: int, *, domain: str = DOMAIN, only: set[int] | None = None) -> Order:
    present = {i: node.address for i, node in enumerate(made) if only is None or i in only}
    return make_order(index, present, domain=domain)


async def form(made: list[Node], *, domain: str = DOMAIN) -> None:
    for index, node in enumerate(made):
        node.link.order(order_for(made, index, domain=domain))
    for node in made:
        await node.until(lambda state: state.phase == "Ready" and state.domain == domain, what=f"{domain} READY")


async def test_a_domain_forms_connects_and_goes() -> None:
    async with nodes(3) as made:
        assert not any(session_held(node.root) for node in made)
        await form(made)
        for node in made:
            await node.until(lambda state: state.peers == "Connected", what="peers connected")
        phases = [state.phase for state in made[0].states if state is not None]
        assert list(dict.fromkeys(phases)) == ["Idle", "Starting", "Ready"]
        for node in made:
            node.link.release(DOMAIN)
        for node in made:
            await node.until(lambda state: state == State(), what="idle")
            assert not session_held(node.root)
            assert (node.root / "hosts").read_text() == "127.0.0.1\tlocalhost\n"
            assert [path.name for path in node.root.glob("r/*")] == ["lock"]


async def test_the_same_order_again_changes_nothing() -> None:
    async with nodes(1) as made:
        await form(made)
        before = len(made[0].states)
        pid = made[0].state.pid
        order = order_for(made, 0)
        reader, writer = await asyncio.open_unix_connection(str(made[0].root / "host.sock"))
        writer.write(encode(order) * 3 + b"nonsense\n")
        assert isinstance(decode(await reader.readline()), State)
        assert "is no message" in json.loads(await reader.readline())["message"]
        assert made[0].state.pid == pid
        assert [state.pid for state in made[0].states[before:] if state is not None and state.pid != pid] == []
        writer.close()


async def test_another_domain_replaces_the_process_and_its_folder() -> None:
    async with nodes(2) as made:
        await form(made)
        old = [node.state.pid for node in made]
        await form(made, domain=OTHER_DOMAIN)
        assert not any(alive(pid) for pid in old)
        folders = {path.name for path in made[0].root.glob("r/*-*")}
        assert folders == {f"{domain_hash(DOMAIN)}-0", f"{domain_hash(OTHER_DOMAIN)}-0"}
        assert domain_hash(DOMAIN) not in (made[0].root / "hosts").read_text()


async def test_another_index_restarts_because_the_own_id_is_fixed_at_start() -> None:
    async with nodes(1) as made:
        await form(made)
        pid = made[0].state.pid
        made[0].link.order(make_order(2, {2: made[0].address}))
        await made[0].until(lambda state: state.phase == "Ready" and state.index == 2, what="READY as index 2")
        assert made[0].state.pid != pid
        assert f"node 2 (imex-{domain_hash(DOMAIN)}-0002)" in made[0].log


async def test_a_newcomer_is_a_hosts_write_and_a_reload_of_the_same_process() -> None:
    async with nodes(2) as made:
        made[0].link.order(order_for(made, 0, only={0}))
        await made[0].until(lambda state: state.phase == "Ready", what="alone READY")
        pid = made[0].state.pid
        for index, node in enumerate(made):
            node.link.order(order_for(made, index))
        for node in made:
            await node.until(lambda state: state.peers == "Connected" and state.phase == "Ready", what="both connected")
        assert made[0].state.pid == pid
        assert made[0].log.count("names resolved again") == 1


async def test_the_last_change_inside_the_window_is_reloaded_after_it_and_none_is_dropped() -> None:
    async with nodes(2) as made:
        made[0].link.order(order_for(made, 0, only={0}))
        await made[0].until(lambda state: state.phase == "Ready", what="alone READY")
        stranger = make_order(0, {0: made[0].address, 1: made[0].address.rpartition(".")[0] + ".99"})
        made[0].link.order(stranger)
        await until(lambda: "names resolved again" in made[0].log, what="first reload")
        for index, node in enumerate(made):
            node.link.order(order_for(made, index))
        await until(
            lambda: made[0].log.count("names resolved again") == 2, within=RELOAD_WINDOW + 5, what="trailing reload"
        )
        assert "dropped" not in made[0].log
        for node in made:
            await node.until(lambda state: state.peers == "Connected", what="connected after the trailing reload")


async def test_a_process_that_dies_is_started_again_and_counted() -> None:
    async with nodes(2) as made:
        await form(made)
        pid = made[0].state.pid
        os.kill(pid, signal.SIGKILL)
        await made[0].until(lambda state: state.restarts == 1 and state.phase == "Ready", what="started again")
        assert made[0].state.pid != pid
        failed = [state for state in made[0].states if state is not None and state.phase == "Failed"]
        assert failed[0].reason == Reason.CRASHED
        assert "SIGKILL" in failed[0].message


async def test_a_crash_loop_is_named_with_the_last_line_of_the_log() -> None:
    async with nodes(1) as made:
        set_faults(made[0].root.parent, crash_at_start=True)
        made[0].link.order(order_for(made, 0))
        await made[0].until(lambda state: state.reason == Reason.CRASH_LOOP, what="crash loop")
        assert made[0].state.phase == "Failed"
        assert "as the faults file asks" in made[0].state.message
        set_faults(made[0].root.parent)
        await made[0].until(lambda state: state.phase == "Ready", what="READY once the fault is gone")
        assert made[0].state.reason == ""


async def test_a_foreign_nvidia_imex_on_the_node_is_named_with_the_remedy() -> None:
    async with nodes(2) as made:
        foreign, node = made
        await form([foreign])
        # The service of the node itself: it holds the session of the other node's driver root.
        lock = node.root / "run/imex-session"
        lock.unlink(missing_ok=True)
        lock.symlink_to(foreign.root / "run/imex-session")
        node.link.order(make_order(1, {1: node.address}))
        await node.until(lambda state: state.reason == Reason.IMEX_IN_USE, what="in use")
        assert "disable and mask nvidia-imex.service" in node.state.message
        foreign.link.release(DOMAIN)
        await node.until(lambda state: state.phase == "Ready", what="READY when the session is free")


async def test_a_missing_program_is_named_and_found_later() -> None:
    async with nodes(1) as made:
        program = made[0].root / "usr/bin/nvidia-imex"
        aside = program.rename(program.with_suffix(".aside"))
        made[0].link.order(order_for(made, 0))
        await made[0].until(lambda state: state.reason == Reason.BINARY_MISSING, what="missing")
        assert str(made[0].root) in made[0].state.message
        aside.rename(program)
        await made[0].until(lambda state: state.phase == "Ready", what="READY")


async def test_a_config_key_outside_the_allow_list_fails_the_order_without_a_start() -> None:
    async with nodes(1) as made:
        made[0].link.order(msgspec.structs.replace(order_for(made, 0), config={"DAEMONIZE": "1"}))
        await made[0].until(lambda state: state.reason == Reason.CONFIG_REFUSED, what="refused")
        assert made[0].state.pid == 0
        assert not list(made[0].root.glob("r/*-*"))


async def test_a_slow_start_is_ready_late_and_ready_is_asked_not_assumed() -> None:
    async with nodes(1) as made:
        set_faults(made[0].root.parent, never_ready=True)
        made[0].link.order(order_for(made, 0))
        await until(lambda: "WAITING_FOR_RECOVERY" in made[0].log, what="waits for recovery")
        assert made[0].state.phase == "Starting"
        set_faults(made[0].root.parent)
        await made[0].until(lambda state: state.phase == "Ready", what="READY")


STUBBORN = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(CFG + ".started", "w").close()
while True:
    signal.pause()
"""


async def test_a_program_that_ignores_term_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlace.imex.supervisor.TERM_PATIENCE", 0.5)
    async with nodes(1) as made:
        replace_program(made[0].root, STUBBORN)
        made[0].link.order(order_for(made, 0))
        await until(lambda: bool(list(made[0].root.glob("r/*/*.started"))), what="the program ignores TERM")
        pid = made[0].state.pid
        made[0].link.release(DOMAIN)
        await made[0].until(lambda state: state == State(), what="idle")
        assert not alive(pid)


async def test_a_host_that_is_told_to_stop_kills_a_program_that_ignores_term(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_module, "EXIT_PATIENCE", 0.5)
    async with nodes(1) as made:
        replace_program(made[0].root, STUBBORN)
        made[0].link.order(order_for(made, 0))
        await until(lambda: bool(list(made[0].root.glob("r/*/*.started"))), what="the program ignores TERM")
        pid = made[0].state.pid
        made[0].task.cancel()
        await asyncio.wait([made[0].task], timeout=20)
        assert not alive(pid)
        await until(lambda: made[0].link.state is None, what="the agent hears that the host is gone")


async def test_a_blocked_pair_is_disconnected_within_ten_seconds_and_named_on_both_sides() -> None:
    async with nodes(3) as made:
        await form(made)
        for node in made:
            await node.until(lambda state: state.peers == "Connected", what="connected")
        set_faults(made[0].root.parent, blocked=[[0, 2]])
        async with asyncio.timeout(10):
            await made[0].until(lambda state: state.disconnected == [2], what="0 misses 2")
            await made[2].until(lambda state: state.disconnected == [0], what="2 misses 0")
        assert made[0].state.peers == "Disconnected"
        assert made[0].state.reason == Reason.PEERS_DISCONNECTED
        assert f"2 (imex-{domain_hash(DOMAIN)}-0002)" in made[0].state.message
        assert (made[1].state.peers, made[1].state.disconnected) == ("Connected", [])
        set_faults(made[0].root.parent)
        for node in made:
            await node.until(lambda state: state.peers == "Connected", what="connected again")


async def test_a_health_question_that_hangs_is_cut_and_the_peers_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    async with nodes(2) as made:
        await form(made)
        for node in made:
            await node.until(lambda state: state.peers == "Connected", what="connected")
        set_faults(made[0].root.parent, hang_health=[made[0].address])
        await made[0].until(lambda state: state.peers == "Unknown", what="unknown")
        assert made[0].state.phase == "Ready"
        assert made[0].state.reason == Reason.HEALTH_UNKNOWN
        assert "did not answer within 3 s and was killed" in made[0].state.message
        assert made[1].state.peers == "Connected"
        set_faults(made[0].root.parent)
        await made[0].until(lambda state: state.peers == "Connected", what="connected again")


class Separate:
    """imex-host as a process of its own, to be killed."""

    def __init__(self, settings: HostSettings) -> None:
        self.settings = settings
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        flags = {
            "imex-socket": self.settings.socket,
            "imex-run-dir": self.settings.run_dir,
            "container-driver-root": self.settings.driver_root,
            "hosts-path": self.settings.hosts_file,
            "pod-ip": self.settings.address,
            "healthcheck-port": "-1",
        }
        words = [f"--{flag}={value}" for flag, value in flags.items()]
        with (self.settings.driver_root / "host.log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "interlace.imex", *words, stdout=log, stderr=log
            )

    async def end(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)
        async with asyncio.timeout(20):
            await self.process.wait()


@contextlib.asynccontextmanager
async def separate_node(folder: Path):  # type: ignore[no-untyped-def]  # noqa: ANN201
    from interlace.imex.control import HostLink

    root, address = folder / "n0", loopback_net() + ".1"
    root.mkdir()
    (root / "hosts").write_text("127.0.0.1\tlocalhost\n")
    install(root, hosts_file=root / "hosts", faults=folder / "faults.json", start_delay=0.01)
    host = Separate(settings_for(root, address))
    link = HostLink(root / "host.sock")
    async with asyncio.TaskGroup() as group:
        task = group.create_task(link.run())
        node = Node(root, address, link, [], task)
        link.on_state(node.states.append)
        await host.start()
        try:
            yield host, node
        finally:
            if host.process is not None and host.process.returncode is None:
                await host.end(signal.SIGTERM)
            task.cancel()


async def test_a_restarted_host_adopts_the_living_process_and_watches_it() -> None:
    with short_folder() as folder:
        async with separate_node(folder) as (host, node):
            node.link.order(make_order(0, {0: node.address}))
            await node.until(lambda state: state.phase == "Ready", what="READY")
            pid = node.state.pid
            await host.end(signal.SIGKILL)
            await until(lambda: node.link.state is None, what="the link notices")
            assert alive(pid)
            await host.start()
            await node.until(lambda state: state.phase == "Ready", what="READY again")
            assert node.state.pid == pid
            assert node.state.restarts == 0
            os.kill(pid, signal.SIGKILL)
            await node.until(lambda state: state.restarts == 1 and state.phase == "Ready", what="its end is noticed")
            assert node.state.pid != pid


async def test_a_restarted_host_replaces_a_process_whose_order_differs() -> None:
    with short_folder() as folder:
        async with separate_node(folder) as (host, node):
            node.link.order(make_order(0, {0: node.address}))
            await node.until(lambda state: state.phase == "Ready", what="READY")
            pid = node.state.pid
            await host.end(signal.SIGKILL)
            await until(lambda: node.link.state is None, what="the link notices")
            node.link.order(make_order(0, {0: node.address}, domain=OTHER_DOMAIN))
            await host.start()
            await node.until(lambda state: state.domain == OTHER_DOMAIN and state.phase == "Ready", what="other READY")
            assert not alive(pid)


async def test_when_host_and_process_were_both_killed_the_stored_order_starts_again_by_itself() -> None:
    with short_folder() as folder:
        async with separate_node(folder) as (host, node):
            node.link.order(make_order(0, {0: node.address}))
            await node.until(lambda state: state.phase == "Ready", what="READY")
            pid = node.state.pid
            await host.end(signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)
            (node.root / "hosts").write_text("127.0.0.1\tlocalhost\n")
            node.link.release(OTHER_DOMAIN)
            await host.start()
            await node.until(lambda state: state.domain == DOMAIN and state.phase == "Ready", what="READY again")
            assert node.state.pid != pid
            assert node.address in (node.root / "hosts").read_text()


async def test_a_process_that_nothing_is_stored_about_is_ended_before_another_starts() -> None:
    with short_folder() as folder:
        async with separate_node(folder) as (host, node):
            node.link.order(make_order(0, {0: node.address}))
            await node.until(lambda state: state.phase == "Ready", what="READY")
            pid = node.state.pid
            await host.end(signal.SIGKILL)
            (node.root / "r/order.json").write_bytes(b'{"version":1,"wan')
            await host.start()
            await node.until(lambda state: state.phase == "Ready" and state.pid != pid, what="a fresh process")
            assert not alive(pid)
            assert (node.root / "r/order.damaged").exists()


async def test_a_process_whose_files_were_removed_is_replaced_and_not_adopted() -> None:
    with short_folder() as folder:
        async with separate_node(folder) as (host, node):
            node.link.order(make_order(0, {0: node.address}))
            await node.until(lambda state: state.phase == "Ready", what="READY")
            pid = node.state.pid
            await host.end(signal.SIGKILL)
            (node.root / f"r/{domain_hash(DOMAIN)}-0/imex.cfg").unlink()
            await host.start()
            await node.until(lambda state: state.phase == "Ready" and state.pid != pid, what="a fresh process")
            assert not alive(pid)


async def test_a_host_that_is_told_to_stop_stops_imex_and_keeps_the_order() -> None:
    with short_folder() as folder:
        async with separate_node(folder) as (host, node):
            node.link.order(make_order(0, {0: node.address}))
            await node.until(lambda state: state.phase == "Ready", what="READY")
            pid = node.state.pid
            await host.end(signal.SIGTERM)
            assert host.process.returncode == 0
            assert not alive(pid)
            assert "shut down" in node.log
            said = (node.root / "host.log").read_text()
            assert "[simulated nvidia-imex] [INFO] shut down" in said
            assert "Traceback" not in said
            assert not (node.root / "host.sock").exists()
            node.link.release(OTHER_DOMAIN)
            await host.start()
            await node.until(lambda state: state.phase == "Ready", what="READY by the stored order")


async def ask_line(root: Path, data: bytes) -> list[object]:
    """Send bytes on a fresh connection and return the messages until the end mark's refusal."""
    reader, writer = await asyncio.open_unix_connection(str(root / "host.sock"), limit=MAX_LINE)
    heard: list[object] = []
    try:
        async with asyncio.timeout(20):
            writer.write(data + b"end mark\n")
            while not (heard and "end mark" not in str(heard[-1]) and "line of 8 bytes" in str(heard[-1])):
                heard.append(decode(await reader.readline()))
    finally:
        writer.close()
    return heard


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x00\xff\xfe\n", "is no message"),
        (b"[1,2]\n", "is no message"),
        (b'{"type":"order"}\n', "is damaged"),
        (b'{"type":"order","version":9,"domain":"x"}\n', "this program speaks 1"),
        (b'{"type":"state"}\n', "only an order or a release"),
        (b"x" * (MAX_LINE + 5) + b"\n", "longer than"),
        (b"[" * 500_000 + b"\n", "is no message"),
    ],
    ids=["binary", "list", "no fields", "newer version", "a state", "too long", "nested"],
)
async def test_a_bad_line_gets_a_refusal_and_the_connection_goes_on(data: bytes, said: str) -> None:
    async with nodes(1) as made:
        heard = await ask_line(made[0].root, data)
        assert said in str(heard[1])
        assert heard[1].supported == [1]  # type: ignore[attr-defined]
        made[0].link.order(order_for(made, 0))
        await made[0].until(lambda state: state.phase == "Ready", what="READY after the bad line")


async def test_two_agents_hear_the_same_and_the_last_order_wins() -> None:
    from interlace.imex.control import HostLink

    async with nodes(1) as made, asyncio.TaskGroup() as group:
        new = HostLink(made[0].root / "host.sock")
        task = group.create_task(new.run())
        made[0].link.order(order_for(made, 0))
        await until(lambda: new.state is not None and new.state.phase == "Ready", what="the other agent hears it")
        new.order(order_for(made, 0, domain=OTHER_DOMAIN))
        await made[0].until(lambda state: state.domain == OTHER_DOMAIN and state.phase == "Ready", what="last wins")
        task.cancel()


async def test_the_socket_is_for_its_owner_alone_and_a_stale_one_is_replaced() -> None:
    with short_folder() as folder:
        (folder / "n").mkdir()
        settings = settings_for(folder / "n", "127.0.0.1")
        import socket

        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(str(settings.socket))
        async with asyncio.TaskGroup() as group:
            task = group.create_task(serve(settings))
            await until(lambda: settings.socket.stat().st_mode & 0o777 == 0o600, what="own socket")
            with pytest.raises(HostError, match="only one may run on a node"):
                await serve(settings)
            elsewhere = msgspec.structs.replace(settings, run_dir=folder / "other")
            with pytest.raises(HostError, match=f"another imex-host serves {settings.socket}"):
                await serve(elsewhere)
            assert settings.socket.exists()
            task.cancel()


def test_settings_come_from_flags_then_environment_then_defaults() -> None:
    env = {"POD_IP": "FD00::5", "HEALTHCHECK_PORT": "-1", "INTERLACE_IMEX_SOCKET": "/run/a.sock", "HOSTS_PATH": ""}
    settings = HostSettings.parse(["--imex-socket", "/run/b.sock", "--container-driver-root=/drivers"], env)
    assert settings.socket == Path("/run/b.sock")
    assert settings.driver_root == Path("/drivers")
    assert (settings.address, settings.http_port) == ("fd00::5", -1)
    assert settings.hosts_file == Path("/etc/hosts")


@pytest.mark.parametrize(
    ("argv", "env", "said"),
    [
        (["--sockets", "/x"], {}, "unknown argument '--sockets'"),
        (["run"], {}, "unknown argument 'run'"),
        (["--imex-socket"], {}, "needs a value"),
        (["--hosts-path=etc/hosts"], {}, "must be an absolute path"),
        ([], {"POD_IP": "node-1"}, "POD_IP is 'node-1', must be an IP address"),
        ([], {"HEALTHCHECK_PORT": "65536"}, "must be a port number"),
    ],
)
def test_settings_that_cannot_be_are_refused_naming_their_source(
    argv: list[str], env: dict[str, str], said: str
) -> None:
    with pytest.raises(SettingsError, match=said):
        HostSettings.parse(argv, env)
