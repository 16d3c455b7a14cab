"""Simulated ``nvidia-imex-ctl``: asks the simulated daemon over its command socket.

``-c CONFIG -q`` prints the local state (``READY`` and a newline). ``-c CONFIG -N`` prints the
whole domain, with ``-j`` as JSON in the form that the real program is reported to print::

    {
        "nodes": {
            "0": {
                "status": "READY",
                "host": "...",
                "hostName": "...",
                "connections": {"0": {"host": "...", "status": "CONNECTED", "changed": false}},
            }
        },
        "timestamp": "...",
        "status": "UP",
    }

Not known of the real program, so chosen here: what ``host`` holds when the nodes file has names
(the address), and the words of a connection other than CONNECTED and INVALID. Like the daemon it
keeps to modules written in C.
"""

import _socket
import posix
import sys
import time

from interlace.sim.imex.files import family, read_config

WORDS = {
    "C": "CONNECTED",
    "I": "INVALID",
    "N": "NEVER_CONNECTED",
    "D": "DISCONNECTED",
    "M": "NODE_MAP_MISMATCH",
}


def ask(config: dict[str, str], question: str) -> str:
    """The daemon's whole answer; raises OSError when it cannot be reached."""
    path = config.get("IMEX_CMD_UNIX_DOMAIN_PATH", "")
    if path:
        sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        sock.connect(path)
    else:
        address = config["IMEX_CMD_BIND_INTERFACE_IP"]
        sock = _socket.socket(family(address), _socket.SOCK_STREAM)
        sock.connect((address, int(config["IMEX_CMD_PORT"])))
    sock.send(question.encode() + b"\n")
    parts = []
    while part := sock.recv(1 << 16):
        parts.append(part)
    sock.close()
    return b"".join(parts).decode()


def domain_status(rows: list[list[str]]) -> str:
    """UP, DEGRADED or DOWN of the whole table."""
    states = [row[3] for row in rows]
    if "READY" not in states:
        return "DOWN"
    whole = all(state == "READY" for state in states) and all(set(row[4]) == {"C"} for row in rows)
    return "UP" if whole else "DEGRADED"


def as_json(rows: list[list[str]]) -> str:
    """Written by hand: names and addresses hold nothing that JSON would escape, and ``json`` is slow to import."""
    nodes = []
    for index, name, host, status, vector in rows:
        connections = ",".join(
            f'"{other}":{{"host":"{rows[other][2]}","status":"{WORDS[letter]}","changed":false}}'
            for other, letter in enumerate(vector)
        )
        nodes.append(
            f'"{index}":{{"status":"{status}","host":"{host}","hostName":"{name}","connections":{{{connections}}}}}'
        )
    now = time.strftime("%m/%d/%Y %H:%M:%S.000")
    return f'{{"nodes":{{{",".join(nodes)}}},"timestamp":"{now}","status":"{domain_status(rows)}"}}\n'


def as_table(rows: list[list[str]]) -> str:
    """For people: legend, nodes, matrix."""
    lines = ["(simulated) C connected, D disconnected, N never connected, M node map mismatch, I invalid", "Nodes:"]
    lines += [f"Node #{index:<4} - {host:<16} - {status:<20} - {name}" for index, name, host, status, _ in rows]
    lines.append("From\\To " + " ".join(f"{row[0]:>4}" for row in rows))
    lines += [f"{row[0]:>7} " + " ".join(f"{letter:>4}" for letter in row[4]) for row in rows]
    lines.append(f"Domain State: {domain_status(rows)}")
    return "\n".join(lines) + "\n"


def write(fd: int, text: str) -> None:
    """Write all of it."""
    data = text.encode()
    while data:
        data = data[posix.write(fd, data) :]


def main(argv: list[str]) -> int:
    """Ask and print; the exit status is 1 when the daemon does not answer."""
    if "-c" not in argv[:-1] or not {"-q", "-N"} & set(argv):
        write(2, "simulated nvidia-imex-ctl: usage: nvidia-imex-ctl -c CONFIG -q | -N [-j]\n")
        return 2
    try:
        config = read_config(argv[argv.index("-c") + 1])
        if "-q" in argv:
            write(1, ask(config, "q"))
            return 0
        rows = [line.split() for line in ask(config, "N").splitlines()]
    except (OSError, KeyError, ValueError) as error:
        write(2, f"simulated nvidia-imex-ctl: cannot reach the daemon: {type(error).__name__} {error}\n")
        return 1
    write(1, as_json(rows) if "-j" in argv else as_table(rows))
    return 0


if __name__ == "__main__":
    posix._exit(main(sys.argv[1:]))  # noqa: SLF001  the interpreter's orderly end costs a fifth of this program
