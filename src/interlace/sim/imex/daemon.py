"""Simulated ``nvidia-imex``: no GPU, no memory, but the documented behaviour over real sockets.

A program, not a module: `install` compiles it and makes the wrapper that starts it. It keeps to
modules written in C (``_socket``, not ``socket``), because many start at once on few cores and
each import of a Python module costs more than all the work done here.

Behaviour: config, nodes file and hosts are read at start; the own id is the entry that
resolves to BIND_INTERFACE_IP; one session per node (a lock file stands for the driver's session);
members compare a hash of the node names and refuse each other when it differs; every member dials
every other one that has an address; SIGUSR1 reads the hosts again and restarts the outgoing
connections, at most once in 5 s, extra ones are dropped; SIGTERM tells the peers. Not
simulated: quorum and recovery after an unclean stop, encryption, statistics, memory itself.
Choices where the real program's behaviour is not known: the command socket appears when READY
(earlier when a fault delays READY), and a refused peer is reported as NODE_MAP_MISMATCH.
"""

import _socket
import errno
import fcntl
import posix
import select
import sys
import time

from interlace.sim.imex.files import Faults, family, log, map_hash, read_config, read_hosts, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The C half of `signal`: the Python half would cost a third of this program's start.
_signal: "Any" = __import__("_signal")

RELOAD_WINDOW = 5.0
RETRY_FIRST = 0.2
RETRY_LONGEST = 1.0
DIAL_TIMEOUT = 3.0
ANSWER_TIMEOUT = 0.5
TICK = 1.0
LONGEST_INPUT = 1 << 16
SENTINEL = "127.0.0.2"
VERSION = "simulated"
STATE = ".state"
"""Beside the command socket: process id and local state, for a question that is asked too often for a Python."""


class Link:
    """One open socket and what it is for: ``out`` (dialled), ``in`` (accepted) or ``cmd``."""

    def __init__(self, sock: "_socket.socket", role: str, peer: int = -1) -> None:
        self.sock = sock
        self.fd = sock.fileno()
        self.role = role
        self.peer = peer
        self.buffer = b""
        self.connecting = False
        self.hung = False


class Peer:
    """The outgoing side of one other member. ``state`` is a letter of the connection table."""

    def __init__(self) -> None:
        self.state = "N"
        self.link: Link | None = None
        self.retry_at = 0.0
        self.pause = RETRY_FIRST
        self.answer: list[str] | None = None


def remove(path: str) -> None:
    """Unlink what may not be there."""
    try:
        posix.unlink(path)
    except FileNotFoundError:
        return


class Daemon:
    def __init__(self, config: dict[str, str], *, hosts: str, faults: str, delay: float) -> None:
        self.config = config
        self.hosts = hosts
        self.faults = Faults(faults)
        self.faults.refresh()
        self.names = [line.strip() for line in read_text(config["IMEX_NODE_CONFIG_FILE"]).splitlines() if line.strip()]
        self.hash = map_hash(self.names)
        self.addresses: list[str] = []
        self.resolve()
        bind = config.get("BIND_INTERFACE_IP", "")
        self.own = self.addresses.index(bind) if bind in self.addresses else -1
        self.bind = bind
        self.port = int(config.get("SERVER_PORT", "50000"))
        self.peers: dict[int, Peer] = {}
        self.links: dict[int, Link] = {}
        self.listener: _socket.socket | None = None
        self.command: _socket.socket | None = None
        self.poll = select.poll()
        self.status = "INITIALIZING"
        self.delay = delay
        self.ready_at = 0.0
        self.reloaded_at = -RELOAD_WINDOW
        self.tick_at = 0.0
        self.answer_at: float | None = None
        self.stopping = False

    # Names, addresses and faults

    def resolve(self) -> None:
        table = read_hosts(self.hosts)
        # A name without a line would go to DNS; an address in the nodes file stands for itself.
        self.addresses = [table.get(name, name if name[:1].isdigit() or ":" in name else "") for name in self.names]

    def selects(self, selector: object, index: int) -> bool:
        return selector == index or selector in (self.names[index], self.addresses[index])

    def faulty(self, fault: str, index: int | None = None) -> bool:
        value = self.faults.table.get(fault)
        if isinstance(value, list):
            return any(self.selects(selector, self.own if index is None else index) for selector in value)
        return value is True

    def extra_delay(self) -> float:
        value = self.faults.table.get("start_delay", 0)
        if isinstance(value, dict):
            keys = (str(self.own), self.names[self.own], self.addresses[self.own])
            value = next((value[key] for key in keys if key in value), 0)
        return float(value)

    def blocked(self, index: int) -> bool:
        for one, other in self.faults.pairs:
            if (self.selects(one, self.own) and self.selects(other, index)) or (
                self.selects(other, self.own) and self.selects(one, index)
            ):
                return True
        return False

    # Life

    def start(self) -> None:
        """Bind and dial. Exits with status 1 and a named cause if that cannot be done."""
        if self.own < 0:
            raise SystemExit(
                f"no entry of {self.config['IMEX_NODE_CONFIG_FILE']} resolves to own address {self.bind!r}"
            )
        if self.faulty("crash_at_start"):
            raise SystemExit("crash at start, as the faults file asks")
        if path := self.config.get("IMEX_CMD_UNIX_DOMAIN_PATH", ""):
            remove(path + STATE)  # of one that was killed, and whose process id may be ours now
        self.listener = self.listen(self.bind, self.port)
        now = time.monotonic()
        self.tick_at = now + TICK
        extra = self.extra_delay()
        self.ready_at = now + self.delay + extra
        if extra or self.faulty("never_ready"):
            self.open_command()
        log(
            "INFO",
            f"node {self.own} ({self.names[self.own]}) of {len(self.names)} on {self.bind}, map {self.hash}",
        )
        self.dial_all(now)

    def listen(self, address: str, port: int) -> "_socket.socket":
        sock = _socket.socket(family(address), _socket.SOCK_STREAM | _socket.SOCK_NONBLOCK | _socket.SOCK_CLOEXEC)
        sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        try:
            sock.bind((address, port))
        except OSError as error:
            raise SystemExit(f"cannot listen on {address}:{port}: {error}") from None
        sock.listen(128)
        self.poll.register(sock.fileno(), select.POLLIN)
        return sock

    def open_command(self) -> None:
        if self.command is not None or self.config.get("IMEX_CMD_ENABLED") != "1":
            return
        path = self.config.get("IMEX_CMD_UNIX_DOMAIN_PATH", "")
        if not path:
            self.command = self.listen(self.config["IMEX_CMD_BIND_INTERFACE_IP"], int(self.config["IMEX_CMD_PORT"]))
            return
        remove(path)
        sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_NONBLOCK | _socket.SOCK_CLOEXEC)
        sock.bind(path)
        sock.listen(16)
        self.poll.register(sock.fileno(), select.POLLIN)
        self.command = sock

    def run(self, wakeup: int) -> None:
        """Serve until told to stop; ``wakeup`` becomes readable with each signal, one byte of its number."""
        self.poll.register(wakeup, select.POLLIN)
        while not self.stopping:
            now = time.monotonic()
            self.on_time(now)
            for fd, _ in self.poll.poll(max(0, int((self.next_time() - now) * 1000) + 1)):
                if fd == wakeup:
                    for number in posix.read(wakeup, 64):
                        self.on_signal(number)
                elif self.listener is not None and fd == self.listener.fileno():
                    self.accept(self.listener, "in")
                elif self.command is not None and fd == self.command.fileno():
                    self.accept(self.command, "cmd")
                elif fd in self.links:
                    self.on_link(self.links[fd])
        for link in list(self.links.values()):
            if link.role != "cmd" and not link.connecting:
                self.send(link, "BYE")
            self.close(link)
        path = self.config.get("IMEX_CMD_UNIX_DOMAIN_PATH", "")
        if path:
            remove(path + STATE)
            remove(path)
        log("INFO", "shut down")

    def next_time(self) -> float:
        times = [self.tick_at]
        if self.status == "INITIALIZING":
            times.append(self.ready_at)
        if self.answer_at is not None:
            times.append(self.answer_at)
        times += [peer.retry_at for peer in self.peers.values() if peer.link is None or peer.link.connecting]
        return min(times)

    def on_time(self, now: float) -> None:
        if now >= self.tick_at:
            self.tick_at = now + TICK
            if self.faults.refresh():
                self.apply_blocks()
        if self.status == "INITIALIZING" and now >= self.ready_at:
            if self.faulty("never_ready"):
                self.become("WAITING_FOR_RECOVERY")
            else:
                self.become("READY")
        if self.status == "WAITING_FOR_RECOVERY" and not self.faulty("never_ready"):
            self.become("READY")
        if self.answer_at is not None and now >= self.answer_at:
            self.answer_tables()
        for index, peer in self.peers.items():
            if now >= peer.retry_at:
                if peer.link is not None and peer.link.connecting:
                    self.close(peer.link)
                if peer.link is None:
                    self.dial(index, peer, now)

    def become(self, status: str) -> None:
        """Change the local state and note it for ``nvidia-imex-ctl -q``; logged last: who reads it may ask at once."""
        self.status = status
        path = self.config.get("IMEX_CMD_UNIX_DOMAIN_PATH", "")
        if path:
            file = posix.open(path + STATE, posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_CLOEXEC, 0o600)
            posix.write(file, f"{posix.getpid()} {status}\n".encode())
            posix.close(file)
        if status == "READY":
            self.open_command()
        log("INFO", status)

    def on_signal(self, number: int) -> None:
        if number in (_signal.SIGTERM, _signal.SIGINT, _signal.SIGQUIT):
            self.stopping = True
        elif number == _signal.SIGUSR1:
            now = time.monotonic()
            if now - self.reloaded_at < RELOAD_WINDOW:
                log("WARNING", f"SIGUSR1 dropped, the last one was honoured {now - self.reloaded_at:.2f} s ago")
                return
            self.reloaded_at = now
            self.resolve()
            log("INFO", "SIGUSR1: names resolved again, outgoing connections restarted")
            for peer in self.peers.values():
                if peer.link is not None:
                    self.close(peer.link)
            self.dial_all(now)

    # Peers

    def dial_all(self, now: float) -> None:
        wanted = [
            index
            for index, address in enumerate(self.addresses)
            if index != self.own and address not in ("", SENTINEL, self.bind)
        ]
        self.peers = {index: self.peers.get(index) or Peer() for index in wanted}
        for index, peer in self.peers.items():
            peer.pause = RETRY_FIRST
            self.dial(index, peer, now)

    def dial(self, index: int, peer: Peer, now: float) -> None:
        if self.blocked(index):
            self.retry(peer, now)
            return
        address = self.addresses[index]
        sock = _socket.socket(family(address), _socket.SOCK_STREAM | _socket.SOCK_NONBLOCK | _socket.SOCK_CLOEXEC)
        result = sock.connect_ex((address, self.port))
        if result not in (0, errno.EINPROGRESS):
            sock.close()
            self.retry(peer, now)
            return
        link = Link(sock, "out", index)
        link.connecting = True
        peer.link = link
        peer.retry_at = now + DIAL_TIMEOUT
        self.add(link, select.POLLOUT)

    def retry(self, peer: Peer, now: float) -> None:
        peer.retry_at = now + peer.pause
        peer.pause = min(peer.pause * 2, RETRY_LONGEST)

    def apply_blocks(self) -> None:
        for link in list(self.links.values()):
            if link.role != "cmd" and link.peer >= 0 and self.blocked(link.peer):
                self.close(link)

    def accept(self, listener: "_socket.socket", role: str) -> None:
        while True:
            try:
                fd, _ = listener._accept()  # type: ignore[attr-defined]  # noqa: SLF001  accept() is made of it in socket.py
            except BlockingIOError:
                return
            except OSError as error:
                log("ERROR", f"accept: {error}")
                return
            sock = _socket.socket(listener.family, listener.type, listener.proto, fileno=fd)
            sock.setblocking(False)
            self.add(Link(sock, role), select.POLLIN)

    def add(self, link: Link, events: int) -> None:
        self.links[link.fd] = link
        self.poll.register(link.fd, events)

    def close(self, link: Link) -> None:
        if self.links.pop(link.fd, None) is None:
            return
        self.poll.unregister(link.fd)
        link.sock.close()
        if link.role == "out" and link.peer in self.peers:
            peer = self.peers[link.peer]
            if peer.link is link:
                peer.link = None
                peer.answer = None
                if peer.state == "C" and not self.stopping:
                    peer.state = "D"
                    log("WARNING", f"node {link.peer} ({self.names[link.peer]}) disconnected")
                    peer.pause = RETRY_FIRST
                self.retry(peer, time.monotonic())

    def send(self, link: Link, line: str) -> None:
        try:
            link.sock.send(line.encode() + b"\n")
        except OSError:
            # A full or broken connection: the receiving side of it says so soon enough.
            link.buffer = b""

    def on_link(self, link: Link) -> None:
        if link.connecting:
            if link.sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_ERROR):
                self.close(link)
                return
            link.connecting = False
            self.poll.modify(link.fd, select.POLLIN)
            self.send(link, f"HELLO {self.hash} {self.own} {self.names[self.own]}")
            return
        try:
            data = link.sock.recv(LONGEST_INPUT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        link.buffer += data
        if not data or len(link.buffer) > LONGEST_INPUT:
            self.close(link)
            return
        while b"\n" in link.buffer and link.fd in self.links:
            line, _, link.buffer = link.buffer.partition(b"\n")
            self.on_line(link, line.decode("ascii", "replace").split())

    def on_line(self, link: Link, words: list[str]) -> None:
        match words:
            case ["HELLO", map_of_peer, index, name] if link.role == "in":
                self.on_hello(link, map_of_peer, int(index) if index.isdigit() else -1, name)
            case ["WELCOME"] if link.role == "out":
                peer = self.peers[link.peer]
                peer.state = "C"
                peer.pause = RETRY_FIRST
                log("INFO", f"node {link.peer} ({self.names[link.peer]}) connected")
            case ["MISMATCH", map_of_peer] if link.role == "out":
                peer = self.peers[link.peer]
                if peer.state != "M":
                    log("ERROR", f"node map mismatch: {self.names[link.peer]} has {map_of_peer}, we have {self.hash}")
                peer.state = "M"
                self.close(link)
            case ["STATUS"] if link.role == "in" and link.peer >= 0:
                self.send(link, f"STATUS {self.status} {self.vector()}")
            case ["STATUS", status, vector] if link.role == "out":
                self.peers[link.peer].answer = [status, vector]
                if self.answer_at is not None and all(p.answer for p in self.peers.values() if p.state == "C"):
                    self.answer_tables()
            case ["BYE"] if link.role != "cmd":
                if link.role == "in" and link.peer >= 0:
                    log("INFO", f"node {link.peer} ({self.names[link.peer]}) shuts down; its exports end here")
                self.close(link)
            case ["q"] if link.role == "cmd":
                self.send(link, self.status)
                self.close(link)
            case ["N"] if link.role == "cmd":
                self.on_table_wanted(link)
            case _:
                self.close(link)

    def on_hello(self, link: Link, map_of_peer: str, index: int, name: str) -> None:
        if map_of_peer != self.hash:
            log("ERROR", f"node map mismatch: {name} (node {index}) has {map_of_peer}, we have {self.hash}; refused")
            self.send(link, f"MISMATCH {self.hash}")
            self.close(link)
        elif not 0 <= index < len(self.names) or self.names[index] != name or self.blocked(index):
            self.close(link)
        else:
            link.peer = index
            self.send(link, "WELCOME")

    # Command service

    def vector(self) -> str:
        """Own row of the connection table, one letter for each node."""
        return "".join(
            "C" if index == self.own else self.peers[index].state if index in self.peers else "I"
            for index in range(len(self.names))
        )

    def on_table_wanted(self, link: Link) -> None:
        link.hung = True
        if self.faulty("hang_health"):
            link.peer = -2
            log("WARNING", "a question for the connection table hangs, as the faults file asks")
            return
        asked = False
        for peer in self.peers.values():
            peer.answer = None
            if peer.state == "C" and peer.link is not None:
                self.send(peer.link, "STATUS")
                asked = True
        self.answer_at = time.monotonic() + (ANSWER_TIMEOUT if asked else 0.0)

    def answer_tables(self) -> None:
        """One line a node: index, name, address or ``-``, status, row of the connection table."""
        self.answer_at = None
        lines = []
        for index, name in enumerate(self.names):
            peer = self.peers.get(index)
            answer = [self.status, self.vector()] if index == self.own else peer.answer if peer is not None else None
            status, vector = answer or ["UNAVAILABLE", "I" * len(self.names)]
            lines.append(f"{index} {name} {self.addresses[index] or '-'} {status} {vector}")
        for link in list(self.links.values()):
            if link.role == "cmd" and link.hung and link.peer != -2:
                link.sock.setblocking(True)
                self.send(link, "\n".join(lines))
                self.close(link)


def main(argv: list[str]) -> int:
    """Take the session, start, serve; the exit status is 1 with a line that says why not."""
    options = dict(zip(argv[::2], argv[1::2], strict=False))
    if "-c" not in options:
        log("ERROR", "usage: nvidia-imex -c CONFIG")
        return 2
    receiver, sender = posix.pipe()
    posix.set_blocking(sender, False)
    for number in (_signal.SIGTERM, _signal.SIGINT, _signal.SIGQUIT, _signal.SIGHUP, _signal.SIGUSR1):
        _signal.signal(number, lambda *_: None)
    _signal.set_wakeup_fd(sender)
    _signal.signal(_signal.SIGPIPE, _signal.SIG_IGN)
    session = posix.open(options["--lock"], posix.O_RDWR | posix.O_CREAT | posix.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(session, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        log("ERROR", "NV_ERR_IN_USE Failed to allocate Imex session: another nvidia-imex runs on this node")
        return 1
    try:
        daemon = Daemon(
            read_config(options["-c"]),
            hosts=options["--hosts"],
            faults=options["--faults"],
            delay=float(options["--delay"]),
        )
        daemon.start()
    except SystemExit as error:
        log("ERROR", str(error))
        return 1
    except (OSError, KeyError, ValueError) as error:
        log("ERROR", f"cannot start from {options['-c']}: {type(error).__name__} {error}")
        return 1
    daemon.run(receiver)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
