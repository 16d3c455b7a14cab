"""The files that nvidia-imex reads at start: its config and its nodes file.

Pure text from values. Invariant: equal input gives equal bytes, so a changed file always means a
changed order. Keys come from the config file that NVIDIA ships; an order may replace only those
of `ALLOWED`, because the others decide where the process listens, what it reads and writes, and
whether it stays our child.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from interlace.imex.order import Order
from interlace.imex.reasons import ImexError, Reason

SERVER_PORT = 50000
LONGEST_PATH = 256
"""Longest path that nvidia-imex takes in its config."""
LONGEST_SOCKET_PATH = 107
"""Longest path of a unix socket, in bytes (``sun_path`` less its end mark)."""


def _between(low: int, high: int) -> Callable[[str], str | None]:
    def check(value: str) -> str | None:
        try:
            number = int(value)
        except ValueError:
            number = low - 1
        return None if low <= number <= high and value.isascii() else f"must be a number from {low} to {high}"

    return check


def _one_of(*words: str) -> Callable[[str], str | None]:
    return lambda value: None if value in words else f"must be one of {', '.join(words)}"


def _path(value: str) -> str | None:
    plain = value.isascii() and value.isprintable() and value.startswith("/") and len(value) < LONGEST_PATH
    return None if plain else f"must be an absolute path of printable ASCII, shorter than {LONGEST_PATH}"


def _host(value: str) -> str | None:
    plain = value.isascii() and 0 < len(value) < 254 and all(c.isalnum() or c in ".-_" for c in value)
    return None if plain else "must be a host name"


ALLOWED: Mapping[str, Callable[[str], str | None]] = {
    "IMEX_AUTH_ENCRYPTION_MODE": _one_of("SSL_TLS", "GSS_AUTH_ENCRYPT", "GSS_AUTH_ONLY"),
    "IMEX_AUTH_SOURCE": _one_of("FILE"),
    "IMEX_CLIENT_CERT": _path,
    "IMEX_CLIENT_CERT_AUTH": _path,
    "IMEX_CLIENT_KEY": _path,
    "IMEX_ENABLE_AUTH_ENCRYPTION": _one_of("0", "1"),
    "IMEX_NODE_DISCONNECTED_GRACE_TIME": _between(-1, 86_400),
    "IMEX_SECURITY_TARGET_OVERRIDE": _host,
    "IMEX_SERVER_CERT": _path,
    "IMEX_SERVER_CERT_AUTH": _path,
    "IMEX_SERVER_KEY": _path,
    "IMEX_WAIT_FOR_QUORUM": _one_of("NONE", "RECOVERY"),
    "LOG_LEVEL": _between(0, 4),
    "SERVER_PORT": _between(1, 65_535),
}
"""Keys that an order may set, each with a check that returns what is wrong with a value."""


def check_extra(extra: Mapping[str, str]) -> None:
    """Raise `ImexError` (ConfigRefused) if an order sets a key or a value that it may not."""
    for key in sorted(extra):
        check = ALLOWED.get(key)
        if check is None:
            raise ImexError(
                Reason.CONFIG_REFUSED,
                f"config key {key[:80]!r} cannot be set by an order; allowed are {', '.join(sorted(ALLOWED))}",
            )
        wrong = check(extra[key])
        if wrong is not None:
            raise ImexError(Reason.CONFIG_REFUSED, f"config key {key} is {extra[key][:80]!r}; it {wrong}")


def config_text(order: Order, *, bind: str, nodes_file: Path, command_socket: Path) -> str:
    """The config file for an order.

    ``bind`` is the node's own address. The command service listens on a unix socket only, so no
    second TCP port is open and no other pod can ask. Raises `ImexError` (ConfigRefused).
    """
    check_extra(order.config)
    if len(str(command_socket).encode()) > LONGEST_SOCKET_PATH:
        raise ImexError(
            Reason.CONFIG_REFUSED,
            f"path of the command socket {command_socket} is longer than {LONGEST_SOCKET_PATH} bytes; "
            "choose a shorter run directory",
        )
    values = {
        "LOG_LEVEL": "4",
        "LOG_FILE_NAME": "",
        "STATS_FILE_NAME": str(nodes_file.with_name("stats.log")),
        "LOG_APPEND_TO_LOG": "0",
        "LOG_FILE_MAX_SIZE": "16",
        "LOG_MAX_ROTATE_COUNT": "1",
        "LOG_USE_SYSLOG": "0",
        "DAEMONIZE": "0",
        "BIND_INTERFACE_IP": bind,
        "SERVER_PORT": str(SERVER_PORT),
        "IMEX_NODE_CONFIG_FILE": str(nodes_file),
        "NETWORK_INTERFACE": "",
        "IMEX_WAIT_FOR_QUORUM": "RECOVERY",
        "IMEX_ENABLE_AUTH_ENCRYPTION": "0",
        "IMEX_CMD_ENABLED": "1",
        "IMEX_CMD_BIND_INTERFACE_IP": "",
        "IMEX_CMD_PORT": "",
        "IMEX_CMD_UNIX_DOMAIN_PATH": str(command_socket),
        "IMEX_NODE_DISCONNECTED_GRACE_TIME": "-1",
    }
    values.update(sorted(order.config.items()))
    return "".join(f"{key}={value}\n" for key, value in values.items())


def nodes_text(order: Order) -> str:
    """The nodes file: the names of all slots, one a line; a node's id is the number of its line."""
    return "".join(f"{name}\n" for name in order.names)
