from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.imex.hosts import BEGIN, END, merge, own_view, rewrite
from interlace.imex.order import SENTINEL
from interlace.imex.reasons import ImexError, Reason
from tests.unit.imex.support import make_order

ORDER = make_order(1, {0: "10.0.0.1", 1: "fd00::2"})
NAMES, ADDRESSES = ORDER.names, ORDER.addresses

foreign_line = st.one_of(
    st.binary(max_size=40).filter(
        lambda line: b"\n" not in line and b"\r" not in line and not line.startswith(BEGIN[:20])
    ),
    st.sampled_from([b"127.0.0.1\tlocalhost", b"# BEGIN something", END.strip(), b"::1 ip6-localhost # x", b""]),
)
foreign = st.lists(foreign_line, max_size=6).map(b"\n".join)


@given(foreign)
def test_foreign_lines_stay_byte_for_byte(text: bytes) -> None:
    merged = merge(text, names=NAMES, addresses=ADDRESSES)
    begin, end = merged.index(BEGIN), merged.rindex(END) + len(END)
    kept = merged[:begin] + merged[end:]
    assert kept in (text, text + b"\n")


@given(foreign)
def test_merging_twice_changes_nothing(text: bytes) -> None:
    once = merge(text, names=NAMES, addresses=ADDRESSES)
    assert merge(once, names=NAMES, addresses=ADDRESSES) == once


@given(foreign, st.lists(st.ip_addresses().map(str), min_size=4, max_size=4))
def test_a_new_block_replaces_the_old_one_in_place(text: bytes, addresses: list[str]) -> None:
    old = merge(text, names=NAMES, addresses=ADDRESSES)
    assert merge(old, names=NAMES, addresses=addresses) == merge(text, names=NAMES, addresses=addresses)


@given(foreign)
def test_removing_the_block_leaves_the_foreign_lines(text: bytes) -> None:
    removed = merge(merge(text, names=NAMES, addresses=ADDRESSES), names=(), addresses=())
    assert removed in (text, text + b"\n")


def test_a_block_without_its_end_takes_no_foreign_line_with_it() -> None:
    torn = b"127.0.0.1 localhost\n" + BEGIN + b"10.0.0.9\timex-old-0000\n10.0.0.7\tdatabase\n"
    merged = merge(torn, names=NAMES, addresses=ADDRESSES)
    assert b"database" in merged
    assert b"imex-old" not in merged


def test_lines_added_behind_our_block_stay_behind_it() -> None:
    text = merge(b"127.0.0.1 localhost\n", names=NAMES, addresses=ADDRESSES) + b"10.0.0.7 database\n"
    merged = merge(text, names=NAMES, addresses=["10.1.0.1", *ADDRESSES[1:]])
    assert merged.endswith(END + b"10.0.0.7 database\n")
    assert merged.count(BEGIN) == 1


def test_an_unchanged_file_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("127.0.0.1 localhost\n")
    path.chmod(0o640)
    assert rewrite(path, names=NAMES, addresses=ADDRESSES)
    before = path.stat()
    assert before.st_mode & 0o777 == 0o640
    assert not rewrite(path, names=NAMES, addresses=ADDRESSES)
    assert path.stat() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["hosts"]


def test_a_missing_file_is_made(tmp_path: Path) -> None:
    assert rewrite(tmp_path / "hosts", names=NAMES, addresses=ADDRESSES)
    assert b"10.0.0.1\t" in (tmp_path / "hosts").read_bytes()


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(ImexError, match=str(tmp_path / "no/hosts")) as caught:
        rewrite(tmp_path / "no/hosts", names=NAMES, addresses=ADDRESSES)
    assert caught.value.reason is Reason.FILES_NOT_WRITTEN


MOUNTED = """
import ctypes, os, sys
from pathlib import Path
libc = ctypes.CDLL(None, use_errno=True)
uid, gid = os.getuid(), os.getgid()
assert libc.unshare(0x10000000 | 0x00020000) == 0, os.strerror(ctypes.get_errno())
Path("/proc/self/setgroups").write_text("deny")
Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
source, target = sys.argv[1:]
assert libc.mount(source.encode(), target.encode(), None, 0x1000, None) == 0, os.strerror(ctypes.get_errno())
from interlace.imex.hosts import rewrite
inode = os.stat(target).st_ino
assert rewrite(Path(target), names=["imex-a-0000", "imex-a-0001"], addresses=["10.0.0.1", "10.0.0.2"])
assert rewrite(Path(target), names=["imex-a-0000"], addresses=["10.0.0.1"])
assert os.stat(target).st_ino == inode
"""


def test_a_bind_mounted_file_is_written_in_place(tmp_path: Path) -> None:
    source, target = tmp_path / "outside", tmp_path / "hosts"
    source.write_text("127.0.0.1 localhost\n")
    target.touch()
    done = subprocess.run(
        [sys.executable, "-c", MOUNTED, str(source), str(target)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert source.read_bytes() == b"127.0.0.1 localhost\n" + BEGIN + b"10.0.0.1\timex-a-0000\n" + END
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["hosts", "outside"]


def test_the_own_slot_always_has_the_own_address() -> None:
    assert own_view(ORDER, "10.0.0.99")[1] == "10.0.0.99"
    assert own_view(ORDER, "")[1] == "fd00::2"


def test_another_slot_with_the_own_address_cannot_be_a_peer() -> None:
    assert own_view(ORDER, "10.0.0.1") == [SENTINEL, "10.0.0.1", SENTINEL, SENTINEL]
