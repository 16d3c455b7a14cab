"""What comes from outside as bytes: opaque parameters, /proc files, checkpoint and CDI specs."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.node.cdi import PreparedClaim, found_specs, qualified_ids, spec, write_spec
from interlace.node.checkpoint import Checkpoint, Damaged, decode, encode
from interlace.node.demand import DeviceRef
from interlace.node.errors import Reason, Refusal, StateError
from interlace.node.files import in_thread, write_whole
from interlace.node.opaque import decode as decode_config
from interlace.node.procfs import channel_count, channel_major, read_channel_count, read_channel_major
from tests.unit.node.parts import CLIQUE, DOMAIN, NODE, parameters, ref


def held(number: int = 1, *, completed: bool = True) -> PreparedClaim:
    return PreparedClaim(
        claim=ref(number),
        domain=DOMAIN,
        clique=CLIQUE,
        index=3,
        devices=(DeviceRef(request="channel", pool=NODE, device="channel-0"),),
        injected=True,
        completed=completed,
        since="2026-01-01T00:00:00Z",
    )


# ---- opaque parameters


def test_good_parameters_are_read() -> None:
    found = decode_config(parameters(DOMAIN, allocationMode="All"))
    assert (found.domain_id, found.allocation_mode) == (DOMAIN, "All")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            parameters(DOMAIN, bogus=1, alsoBogus=2),
            'strict decoding error: unknown field "alsoBogus", unknown field "bogus"',
        ),
        (parameters(DOMAIN, domainid="x"), 'strict decoding error: unknown field "domainid"'),
        (parameters(DOMAIN)[:-1] + b',"domainID":"y"}', 'strict decoding error: duplicate field "domainID"'),
        (parameters(""), "domainID is empty"),
        (
            parameters(DOMAIN, kind="Nonsense"),
            'no kind "Nonsense" is registered for version "resource.nvidia.com/v1beta1"',
        ),
        (parameters(DOMAIN, apiVersion="v9"), 'is registered for version "v9"'),
        (parameters(DOMAIN, kind="ComputeDomainDaemonConfig"), "does not belong to a device of type channel"),
        (parameters(DOMAIN, allocationMode=3), "have to be strings"),
        (b"[]", "not a JSON object"),
        (b"{", "not JSON"),
        (b"[" * 200_000, "not JSON"),
    ],
)
def test_bad_parameters_are_refused_for_good_with_words_that_help(content: bytes, words: str) -> None:
    with pytest.raises(Refusal) as caught:
        decode_config(content)
    assert words in str(caught.value)
    assert caught.value.permanent
    assert caught.value.reason is Reason.BAD_CONFIG


@given(
    st.one_of(
        st.binary(max_size=60),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["domainID", "kind", "apiVersion", "x"]), inner, max_size=4)
            ),
            max_leaves=8,
        ).map(lambda value: json.dumps(value).encode()),
    )
)
def test_any_bytes_are_a_config_or_a_refusal(content: bytes) -> None:
    with contextlib.suppress(Refusal):
        assert decode_config(content).domain_id


# ---- /proc


def test_only_the_exact_name_among_character_devices_counts() -> None:
    text = (
        "Character devices:\n  1 mem\n234 nvidia-caps\n235 nvidia-caps-imex-channels\n\n"
        "Block devices:\n  9 nvidia-caps-imex-channels\n"
    )
    assert channel_major(text) == 235
    assert channel_major(text.replace("235 nvidia-caps-imex-channels\n", "")) is None


@given(
    st.integers(0, 4095),
    st.lists(st.tuples(st.integers(0, 4095), st.from_regex(r"[a-z-]{1,12}", fullmatch=True)), max_size=8),
)
def test_the_major_is_found_among_any_others(major: int, others: list[tuple[int, str]]) -> None:
    lines = [f"{number:3} {name}" for number, name in others]
    text = "\n".join(
        ["Character devices:", *lines, f"{major:3} nvidia-caps-imex-channels", "", "Block devices:", "  8 sd"]
    )
    assert channel_major(text) == major


@given(st.text())
def test_any_text_is_read_without_a_fault(text: str) -> None:
    assert channel_major(text) is None or "nvidia-caps-imex-channels" in text
    assert channel_count(text) >= 1


def test_what_a_driver_of_branch_580_shows_is_read() -> None:
    # Of a machine with an H200 and driver 580.159.04.
    numbers = {
        "nvidia": 195,
        "nvidiactl": 195,
        "nvidia-nvlink": 240,
        "nvidia-caps": 241,
        "nvidia-caps-imex-channels": 242,
    }
    text = "Character devices:\n" + "".join(f"{number} {name}\n" for name, number in numbers.items())
    assert channel_major(text) == 242
    assert channel_count("ImexChannelCount: 2048\nCreateImexChannel0: 0\n") == 2048


def test_the_channel_count_comes_from_the_driver() -> None:
    assert channel_count("Other: 1\nImexChannelCount: 4096\n") == 4096
    assert channel_count("ImexChannelCount: many\n") == 2048


def test_files_that_are_not_there_have_an_answer(tmp_path: Path) -> None:
    assert read_channel_count(tmp_path / "params") == 2048
    with pytest.raises(Refusal, match="devices cannot be read") as caught:
        read_channel_major(tmp_path / "devices")
    assert not caught.value.permanent


# ---- checkpoint


claims = st.lists(
    st.builds(held, st.integers(0, 50), completed=st.booleans()), max_size=5, unique_by=lambda claim: claim.claim.uid
)


@given(claims, st.text(max_size=10))
def test_a_checkpoint_reads_back(stored: list[PreparedClaim], boot: str) -> None:
    assert decode(encode(stored, boot_id=boot)) == (boot, stored)


@given(claims, st.data())
def test_a_changed_byte_is_noticed_or_changes_nothing(stored: list[PreparedClaim], data: st.DataObject) -> None:
    content = bytearray(encode(stored, boot_id="boot"))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] = data.draw(st.integers(0, 255))
    with contextlib.suppress(Damaged):
        assert decode(bytes(content)) == ("boot", stored)


@given(st.binary(max_size=80))
def test_any_bytes_are_a_checkpoint_or_damaged(content: bytes) -> None:
    with pytest.raises(Damaged):
        decode(content)


def test_fields_of_a_later_agent_do_not_make_a_file_look_damaged() -> None:
    import hashlib

    body = encode([held()], boot_id="boot")
    inner = json.loads(body)["body"]
    inner["later"] = {"x": 1}
    raw = json.dumps(inner).encode()
    content = b'{"version":1,"new":2,"sha256":"' + hashlib.sha256(raw).hexdigest().encode() + b'","body":' + raw + b"}"
    assert decode(content) == ("boot", [held()])


async def test_claims_survive_a_restart_and_not_a_reboot(tmp_path: Path) -> None:
    before = Checkpoint(tmp_path, boot_id="one")
    await before.put(held(1))
    await before.put(held(2, completed=False))
    await before.drop("uid-2")
    same = Checkpoint(tmp_path, boot_id="one")
    assert same.load(cdi_root=tmp_path).remark == ""
    assert list(same) == [held(1)]
    other = Checkpoint(tmp_path, boot_id="two")
    assert "earlier boot" in other.load(cdi_root=tmp_path).remark
    assert len(other) == 0


def test_the_file_is_there_from_the_first_start_on(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, boot_id="b")
    assert checkpoint.load(cdi_root=tmp_path).remark == ""
    assert decode(checkpoint.path.read_bytes()) == ("b", [])


async def test_a_damaged_file_is_set_aside_and_read_back_from_the_cdi_folder(tmp_path: Path) -> None:
    home, cdi = tmp_path / "home", tmp_path / "cdi"
    home.mkdir()
    write_spec(cdi, held(7), major=235, channels=[0])
    (cdi / "k8s.compute-domain.nvidia.com-claim_uid-8.json").write_text("{}")
    (home / "checkpoint.json").write_text('{"version":1')
    found = Checkpoint(home, boot_id="boot")
    loaded = found.load(cdi_root=cdi)
    assert loaded.damaged
    assert "1 claims were read back" in loaded.remark
    assert list(found) == [held(7)]
    assert decode(found.path.read_bytes())[1] == [held(7)]
    [aside] = home.glob("checkpoint.json.damaged-*")
    assert aside.read_text() == '{"version":1'


async def test_a_file_that_cannot_be_written_is_named_and_memory_stays_as_it_was(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    found = Checkpoint(home, boot_id="boot")
    await found.put(held(1))
    home.rename(tmp_path / "away")
    with pytest.raises(StateError, match=r"checkpoint\.json cannot be written"):
        await found.put(held(2))
    with pytest.raises(StateError):
        await found.drop("uid-1")
    assert list(found) == [held(1)]


async def test_writers_at_once_lose_nothing_and_leave_no_temporary_file(tmp_path: Path) -> None:
    found = Checkpoint(tmp_path, boot_id="boot")
    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(found.put(held(number)))
    assert len(decode(found.path.read_bytes())[1]) == 20
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.json"]


async def test_a_cancelled_caller_sees_the_end_of_its_thread() -> None:
    import threading

    release, ended = threading.Event(), threading.Event()

    def slow() -> None:
        release.wait(10)
        ended.set()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(in_thread(slow))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        release.set()
    assert task.cancelled()
    assert ended.is_set()


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        write_whole(path, b"1", sync=True)
    assert [found.name for found in tmp_path.iterdir()] == ["x.json"]


# ---- CDI


def test_a_spec_names_its_claim_and_kubelet_gets_its_id(tmp_path: Path) -> None:
    write_spec(tmp_path, held(), major=235, channels=[0])
    assert list(found_specs(tmp_path)) == [("uid-1", held())]
    assert qualified_ids(held(), held().devices[0]) == ["k8s.compute-domain.nvidia.com/claim=uid-1-channel-0"]
    assert spec(held(), major=1, channels=[0])["cdiVersion"] == "0.6.0"


@given(st.binary(max_size=60))
def test_any_file_in_the_cdi_folder_is_survived(content: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "k8s.compute-domain.nvidia.com-claim_uid-1.json").write_bytes(content)
        Path(folder, "vendor-other.json").write_bytes(content)
        assert list(found_specs(Path(folder))) == [("uid-1", None)]
