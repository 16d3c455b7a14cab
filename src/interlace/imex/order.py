"""What agent and imex-host say to each other: versioned messages, one JSON object a line, over a unix socket.

The agent sends `Order` and `Release`; the host sends `State` on connection and at each change, and
`Refusal` for a line that it cannot take. Invariant: an order is complete (nothing in it refers
to an earlier one), so the last one wins and sending it again changes nothing. Unknown fields are
skipped, so a version grows by optional fields; a new version number means that an old host would
do the wrong thing, and the host refuses it by naming the versions that it speaks.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Literal

import msgspec

from interlace.imex.reasons import ImexError, Reason

VERSION = 1
"""The version that we write."""
VERSIONS: tuple[int, ...] = (1,)
"""Every version ever published; both sides read all of them."""
SENTINEL = "127.0.0.2"
"""Address of a slot without a node: loopback, and never dialled by a peer."""
MAX_LINE = 1 << 20
"""Longest line that either side reads, in bytes."""
MAX_SLOTS = 4096

Phase = Literal["Idle", "Starting", "Ready", "Stopping", "Failed"]
Peers = Literal["Unknown", "Connected", "Disconnected"]

_DOMAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}")
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class Order(msgspec.Struct, tag="order", frozen=True, kw_only=True):
    """Run IMEX for this domain on this node. Complete: the host keeps nothing of an earlier order."""

    version: int = VERSION
    domain: str
    """Uid of the ComputeDomain."""
    index: int
    """Own place in ``names``; IMEX fixes it at start."""
    names: list[str]
    """Node names of all slots, in index order; the same on every member of the domain and clique."""
    addresses: list[str]
    """Address of each name; `SENTINEL` for a slot without a node."""
    config: dict[str, str] = {}
    """nvidia-imex config keys that replace ours; only those of the allow-list in `config`."""

    @property
    def present(self) -> list[int]:
        """Indexes of the slots that hold a node."""
        return [index for index, address in enumerate(self.addresses) if address != SENTINEL]


class Release(msgspec.Struct, tag="release", frozen=True, kw_only=True):
    """Stop IMEX if it serves this domain; otherwise do nothing."""

    version: int = VERSION
    domain: str


class State(msgspec.Struct, tag="state", frozen=True, kw_only=True):
    """What the host does now. ``domain`` and ``index`` are those of the order it works on ("" and -1 when idle)."""

    version: int = VERSION
    domain: str = ""
    index: int = -1
    phase: Phase = "Idle"
    reason: str = ""
    """A value of `reasons.Reason`."""
    message: str = ""
    pid: int = 0
    """Process id of nvidia-imex as the host sees it; 0 when none runs."""
    restarts: int = 0
    """How often the process of this order ended by itself."""
    peers: Peers = "Unknown"
    disconnected: list[int] = []
    """Indexes of the present peers without a connection, ascending."""


class Refusal(msgspec.Struct, tag="error", frozen=True, kw_only=True):
    """Answer to a line that the host could not take; the connection stays open."""

    version: int = VERSION
    message: str
    supported: list[int] = msgspec.field(default_factory=lambda: list(VERSIONS))
    """Versions that the sender speaks."""


Message = Order | Release | State | Refusal


class _Envelope(msgspec.Struct):
    """What every version of every message has."""

    type: str
    version: int = VERSION


_encoder = msgspec.json.Encoder()
_envelope = msgspec.json.Decoder(_Envelope)
_message: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)


class ProtocolError(Exception):
    """A line that is no message of ours; the text says why."""


def encode(message: Message) -> bytes:
    """One line, newline included; equal messages give equal bytes."""
    return _encoder.encode(message) + b"\n"


def decode(line: bytes) -> Message:
    """The message of a line.

    Raises `ProtocolError` for everything else: the line comes from outside and may hold anything.
    """
    try:
        envelope = _envelope.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(f"a line of {len(line)} bytes is no message: {error}") from error
    if envelope.version not in VERSIONS:
        spoken = ", ".join(map(str, VERSIONS))
        raise ProtocolError(
            f"message {envelope.type!r} has version {envelope.version}, this program speaks {spoken}; "
            "use an agent and an imex-host of the same release"
        )
    try:
        return _message.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(f"message {envelope.type!r} of version {envelope.version} is damaged: {error}") from error


@lru_cache(maxsize=2 * MAX_SLOTS)
def parse_address(text: str) -> str:
    """An IPv4 or IPv6 address in its canonical form; raises `ValueError`. Scoped addresses are refused.

    Kept: the addresses of a whole clique are looked at with each change of one of them.
    """
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:
        raise ValueError(f"{text!r} names a network interface")
    return str(address)


def check(order: Order) -> None:
    """Raise `ImexError` (OrderInvalid) unless the parts of the order fit together."""

    def refuse(what: str) -> ImexError:
        return ImexError(Reason.ORDER_INVALID, f"order for domain {order.domain!r}: {what}")

    if not _DOMAIN.fullmatch(order.domain):
        raise refuse("the domain is no Kubernetes uid")
    if not 1 <= len(order.names) <= MAX_SLOTS:
        raise refuse(f"it has {len(order.names)} names, at least 1 and at most {MAX_SLOTS} are needed")
    if len(order.names) != len(order.addresses):
        raise refuse(f"{len(order.names)} names but {len(order.addresses)} addresses")
    if not 0 <= order.index < len(order.names):
        raise refuse(f"index {order.index} is not in 0 to {len(order.names) - 1}")
    if len(set(order.names)) != len(order.names):
        raise refuse("a name stands there twice")
    for name in order.names:
        if not _NAME.fullmatch(name):
            raise refuse(f"{name[:80]!r} is no host name of one label")
    for index, address in enumerate(order.addresses):
        try:
            parse_address(address)
        except ValueError as error:
            raise refuse(f"address of index {index}: {error}") from error
