"""Names that IMEX knows its nodes by, and the map from clique rows to names and addresses.

Members of an IMEX domain compare a hash of their name lists and refuse each other when it
differs. Addresses of imex-host pods serve one domain after another, so the names carry a hash of
the domain's uid: a stale peer of the last domain is refused. Invariant: names depend on domain and
number of slots alone, never on who is there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from interlace.imex.order import MAX_SLOTS, SENTINEL, parse_address
from interlace.imex.reasons import ImexError, Reason


def domain_hash(domain: str) -> str:
    """Ten hexadecimal digits of SHA-256 of the domain's uid."""
    return hashlib.sha256(domain.encode()).hexdigest()[:10]


def node_name(domain: str, index: int) -> str:
    """Name of one slot: ``imex-<hash>-<index, four digits>``."""
    return f"imex-{domain_hash(domain)}-{index:04d}"


def node_map(domain: str, *, rows: Iterable[tuple[int, str]], slots: int) -> tuple[list[str], list[str]]:
    """Names and addresses of all slots, from ``(index, address)`` of the nodes that are there.

    A row whose address is still ``""`` keeps the sentinel address. Raises `ImexError` (OrderInvalid)
    when an index is out of range or twice there, or an address is none or twice there.
    """

    def refuse(what: str) -> ImexError:
        return ImexError(Reason.ORDER_INVALID, f"node map of domain {domain!r}: {what}")

    if not 1 <= slots <= MAX_SLOTS:
        raise refuse(f"{slots} slots, must be 1 to {MAX_SLOTS}")
    stem = f"imex-{domain_hash(domain)}"
    addresses = [SENTINEL] * slots
    holder: dict[str, int] = {}
    seen: set[int] = set()
    for index, text in rows:
        if not 0 <= index < slots:
            raise refuse(f"index {index} is not in 0 to {slots - 1}")
        if index in seen:
            raise refuse(f"index {index} stands there twice")
        seen.add(index)
        if not text:
            continue
        try:
            address = parse_address(text)
        except ValueError as error:
            raise refuse(f"address of index {index}: {error}") from error
        if address == SENTINEL:
            continue
        if address in holder:
            raise refuse(f"address {address} stands at index {holder[address]} and at index {index}")
        holder[address] = index
        addresses[index] = address
    return [f"{stem}-{index:04d}" for index in range(slots)], addresses
