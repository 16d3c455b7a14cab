"""Questions to a running nvidia-imex through nvidia-imex-ctl, each with a time limit.

``-q`` asks the local state, ``-N -j`` the connections of the whole domain; the latter is known to
hang, so it is killed when its time is over. Invariant: what cannot be read is Unknown, never
Connected and never Disconnected. The form of ``-N -j`` is not in NVIDIA's manual; it is read as it has
been reported in public, and everything that is not needed may be missing or different.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from interlace.imex import process
from interlace.imex.reasons import ImexError, Reason
from interlace.imex.supervisor import Fault, Health

QUERY_TIMEOUT = 3.0
LARGEST_ANSWER = 4 << 20
_LAST_BREATH = 5.0
"""Seconds that a killed program is waited for; one that the kernel holds longer is reaped when it lets go."""
MISSES = 3
_UNKNOWN_WORDS = frozenset({"INVALID", "I", "UNKNOWN", ""})


class NoAnswerError(Exception):
    """The control program did not answer in time or could not be started; the text says which."""


async def ask(argv: Sequence[str | Path], *, env: dict[str, str], timeout: float = QUERY_TIMEOUT) -> bytes:
    """Stdout of a program. Raises `NoAnswerError`; the program is killed with the call, however that ends.

    Not a subprocess of asyncio: that would start a thread for each question.
    """
    try:
        handle, output = process.spawn_piped(argv, env=env)
    except OSError as error:
        raise NoAnswerError(f"cannot start {argv[0]}: {error.strerror or error}") from error
    asked = " ".join(map(str, argv))
    try:
        async with asyncio.timeout(timeout):
            answer = await _read(output)
            if len(answer) > LARGEST_ANSWER:
                raise NoAnswerError(f"{asked} printed more than {LARGEST_ANSWER} bytes")
            await process.ended(handle.fd)
    except TimeoutError as error:
        raise NoAnswerError(f"{asked} did not answer within {timeout:g} s and was killed") from error
    else:
        return answer
    finally:
        os.close(output)
        handle.send(signal.SIGKILL)
        try:
            await process.ended_within(handle.fd, seconds=_LAST_BREATH)
        finally:
            process.bury(handle)


async def _read(output: int) -> bytes:
    """What comes out until its end, or a little more than ``LARGEST_ANSWER`` bytes of it."""
    answer, over = bytearray(), asyncio.Event()

    def take() -> None:
        try:
            data = os.read(output, 1 << 16)
        except BlockingIOError:
            return
        answer.extend(data)
        if not data or len(answer) > LARGEST_ANSWER:
            over.set()

    loop = asyncio.get_running_loop()
    loop.add_reader(output, take)
    try:
        await over.wait()
    finally:
        loop.remove_reader(output)
    return bytes(answer)


def says_ready(answer: bytes) -> bool:
    """Whether one line of the answer to ``-q`` is READY; warnings beside it do not matter."""
    return any(line.strip() == b"READY" for line in answer.splitlines())


def read_table(answer: bytes, *, own: int, present: Iterable[int]) -> set[int]:
    """Indexes of the present peers without a connection from or to us, from the answer to ``-N -j``.

    Only rows and columns of present indexes count. A peer whose own row cannot be read counts by
    our row alone. Raises `ImexError` (HealthUnknown) when our own row is not there.
    """

    def unknown(what: str) -> ImexError:
        return ImexError(Reason.HEALTH_UNKNOWN, f"answer of nvidia-imex-ctl -N -j: {what}")

    start = answer.find(b"{")
    if start < 0:
        raise unknown("it holds no JSON object")
    try:
        table = msgspec.json.decode(answer[start : answer.rfind(b"}") + 1])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise unknown(f"it is no JSON: {error}") from error
    mine = _row(table, own)
    if mine is None:
        raise unknown(f"it has no row of our own node {own}")
    missing = set()
    for peer in present:
        if peer == own:
            continue
        if not _connected(mine.get(str(peer))):
            missing.add(peer)
            continue
        theirs = _row(table, peer) or {}
        word = _word(theirs.get(str(own)))
        if word not in _UNKNOWN_WORDS and not _connected(theirs.get(str(own))):
            missing.add(peer)
    return missing


def _row(table: Any, index: int) -> dict[str, Any] | None:
    nodes = table.get("nodes") if isinstance(table, dict) else None
    node = nodes.get(str(index)) if isinstance(nodes, dict) else None
    connections = node.get("connections") if isinstance(node, dict) else None
    return connections if isinstance(connections, dict) else None


def _word(connection: Any) -> str:
    word = connection.get("status") if isinstance(connection, dict) else connection
    return word.strip().upper() if isinstance(word, str) else ""


def _connected(connection: Any) -> bool:
    return _word(connection) in {"CONNECTED", "C"}


class Judge:
    """Makes a verdict out of successive tables: a peer is disconnected when it is missing `MISSES` times in a row.

    A miss or two are normal for a moment, while peers start or a reload restarts the connections.
    """

    def __init__(self) -> None:
        self._misses: dict[int, int] = {}

    @property
    def doubtful(self) -> bool:
        """Whether the last table had a miss, so that the next one should come soon."""
        return bool(self._misses)

    def forget(self) -> None:
        """Start anew: the process or its addresses changed."""
        self._misses = {}

    def judge(self, missing: set[int], *, names: Sequence[str]) -> Health | None:
        """The verdict after one more table; None while there is only doubt."""
        self._misses = {peer: self._misses.get(peer, 0) + 1 for peer in missing}
        lost = tuple(sorted(peer for peer, misses in self._misses.items() if misses >= MISSES))
        if lost:
            listed = ", ".join(f"{index} ({names[index]})" for index in lost)
            fault = Fault(reason=Reason.PEERS_DISCONNECTED, message=f"no connection to node {listed}")
            return Health("Disconnected", lost, fault)
        return None if missing else Health("Connected")
