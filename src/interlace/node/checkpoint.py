"""The claims prepared on this node, kept across restarts of the agent.

One JSON file ``{"version":1,"sha256":...,"body":{...}}``. The checksum is over the bytes of ``body`` as
they stand in the file, so a field added later never makes an old file look damaged. Written by
rename, with fsync of file and folder, in a thread; writers that come meanwhile share the next write.
A file of another boot of the node counts as empty: devices do not outlive a boot. A damaged file is
set aside and the claims are read back from the CDI folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from interlace.kube.log import get_logger
from interlace.node.cdi import PreparedClaim, found_specs, has_spec
from interlace.node.errors import StateError
from interlace.node.files import in_thread, write_whole
from interlace.node.inherited import is_inherited
from interlace.node.inherited import read as read_inherited

VERSION = 1
FILE_NAME = "checkpoint.json"
_log = get_logger(__name__)


class _Body(msgspec.Struct, frozen=True, kw_only=True):
    boot_id: str
    claims: tuple[PreparedClaim, ...]


class _File(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    sha256: str
    body: msgspec.Raw


class Damaged(Exception):
    """The bytes are not a checkpoint that we wrote; the message says why."""


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """What ``Checkpoint.load`` found; ``remark`` is empty where there is nothing to tell."""

    remark: str = ""
    """One sentence on what was decided: another boot, a damaged file."""
    damaged: bool = False


def encode(claims: Iterator[PreparedClaim] | list[PreparedClaim], *, boot_id: str) -> bytes:
    """The bytes of the file."""
    body = msgspec.json.encode(_Body(boot_id=boot_id, claims=tuple(claims)))
    return msgspec.json.encode(_File(version=VERSION, sha256=hashlib.sha256(body).hexdigest(), body=msgspec.Raw(body)))


def decode(content: bytes) -> tuple[str, list[PreparedClaim]]:
    """Boot id and claims from the bytes of the file. Raises ``Damaged``."""
    try:
        file = msgspec.json.decode(content, type=_File)
    except ValueError as error:
        raise Damaged(f"it is not a checkpoint ({error})") from None
    if file.version != VERSION:
        raise Damaged(f"its version is {file.version} and this agent reads version {VERSION}")
    body = bytes(file.body)
    if hashlib.sha256(body).hexdigest() != file.sha256:
        raise Damaged("its checksum does not match its content")
    try:
        decoded = msgspec.json.decode(body, type=_Body)
    except ValueError as error:
        raise Damaged(f"its body cannot be read ({error})") from None
    return decoded.boot_id, list(decoded.claims)


class Checkpoint:
    """The claims in memory and in the file. Not for two processes: the agent holds a lock beside it."""

    def __init__(self, folder: Path, *, boot_id: str) -> None:
        self.path = folder / FILE_NAME
        self._boot_id = boot_id
        self._claims: dict[str, PreparedClaim] = {}
        self._lock = asyncio.Lock()
        self._wanted = 0
        self._written = 0

    def load(self, *, cdi_root: Path) -> Loaded:
        """Read the file; call once, before anything else. Raises ``StateError`` if it cannot be opened.

        A file of the known driver is kept as ``checkpoint.json.inherited-<unix time>`` and its claims are ours.
        A damaged file is kept as ``checkpoint.json.damaged-<unix time>``; then every claim whose CDI
        spec says whose it is counts as prepared. Claims of nodes without a fabric have no spec; they are
        forgotten, which costs nothing: Unprepare accepts an unknown claim.
        """
        try:
            boot_id, claims = decode(self.path.read_bytes())
        except FileNotFoundError:
            # There from the start, so that a folder that cannot be written is known before the first claim.
            self._write_now()
            return Loaded()
        except OSError as error:
            raise StateError(f"{self.path} cannot be read: {error.strerror}.") from error
        except Damaged as damage:
            return self._inherit(cdi_root=cdi_root) or self._rebuild(str(damage), cdi_root=cdi_root)
        if boot_id != self._boot_id:
            self._write_now()
            return Loaded(remark=f"{self.path} is of an earlier boot of this node: its {len(claims)} claims are void.")
        self._claims = {claim.claim.uid: claim for claim in claims}
        return Loaded()

    def _inherit(self, *, cdi_root: Path) -> Loaded | None:
        """Take over the claims of the known driver, if the file is its; the file is kept under another name."""
        content = self.path.read_bytes()
        if not is_inherited(content):
            return None
        found = read_inherited(content, has_spec=lambda uid: has_spec(cdi_root, uid))
        aside = self._set_aside("inherited", "is of another driver")
        current = found.boot_id in ("", self._boot_id)
        # The CDI folder does not outlive a boot: where the file does not say of which boot it is, the specs do.
        kept = [claim for claim in found.claims if current and (found.boot_id or claim.injected)]
        self._claims = {claim.claim.uid: claim for claim in kept}
        self._write_now()
        remarks = [f"{self.path} was written by another driver and was kept as {aside.name}"]
        remarks.append(
            f"{len(self._claims)} claims that it prepared were taken over"
            if current
            else f"it is of an earlier boot of this node: its {len(found.claims)} claims are void"
        )
        if not found.intact:
            remarks.append("its checksum does not match, which is usual after upgrades of that driver")
        if found.unreadable:
            remarks.append(f"{found.unreadable} claims in it cannot be read and are forgotten")
        return Loaded(remark="; ".join(remarks) + ".")

    def _set_aside(self, what: str, why: str) -> Path:
        """Give the file a second name. The first one stays until the new file is whole: a crash in between loses
        nothing.
        """
        aside = self.path.with_name(f"{FILE_NAME}.{what}-{int(time.time())}")
        try:
            with contextlib.suppress(FileExistsError):
                os.link(self.path, aside)
        except OSError as error:
            raise StateError(f"{self.path} {why} and cannot be kept as {aside.name}: {error.strerror}.") from error
        return aside

    def _rebuild(self, cause: str, *, cdi_root: Path) -> Loaded:
        aside = self._set_aside("damaged", f"is damaged ({cause})")
        self._claims = {uid: prepared for uid, prepared in found_specs(cdi_root) if prepared is not None}
        self._write_now()
        return Loaded(
            damaged=True,
            remark=f"{self.path} is damaged: {cause}; it was kept as {aside.name}, and {len(self._claims)} claims "
            f"were read back from {cdi_root}.",
        )

    def _write_now(self) -> None:
        """Blocks: only before anything else runs."""
        try:
            write_whole(self.path, encode(list(self._claims.values()), boot_id=self._boot_id), sync=True, mode=0o600)
        except OSError as error:
            raise StateError(f"{self.path} cannot be written: {error.strerror}.") from error

    def get(self, uid: str) -> PreparedClaim | None:
        """The claim, begun or completed."""
        return self._claims.get(uid)

    def __iter__(self) -> Iterator[PreparedClaim]:
        return iter(list(self._claims.values()))

    def __len__(self) -> int:
        return len(self._claims)

    async def put(self, prepared: PreparedClaim) -> None:
        """Add or replace a claim; returns once it is on the disk. On failure memory is as before: ``StateError``."""
        uid = prepared.claim.uid
        before = self._claims.get(uid)
        self._claims[uid] = prepared
        try:
            await self._commit()
        except StateError:
            if before is None:
                del self._claims[uid]
            else:
                self._claims[uid] = before
            raise

    async def drop(self, uid: str) -> None:
        """Forget a claim; returns once that is on the disk. On failure it is still known: ``StateError``."""
        before = self._claims.pop(uid, None)
        if before is None:
            return
        try:
            await self._commit()
        except StateError:
            self._claims.setdefault(uid, before)
            raise

    async def _commit(self) -> None:
        self._wanted += 1
        mine = self._wanted
        async with self._lock:
            if self._written >= mine:
                return
            batch = self._wanted
            content = encode(list(self._claims.values()), boot_id=self._boot_id)
            try:
                await in_thread(lambda: write_whole(self.path, content, sync=True, mode=0o600))
            except OSError as error:
                raise StateError(f"{self.path} cannot be written: {error.strerror}.") from error
            self._written = batch
            _log.debug("checkpoint written", claims=len(self._claims))
