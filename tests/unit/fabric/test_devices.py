"""The annotation that asks for devices: read as the field reads it, and refused where readers differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from interlace.fabric.devices import ALLOWED, LONGEST, Device, DevicesError, allow, annotated, read
from interlace.fabric.family import families

TCPXO = "".join(f"- path: /dev/nvidia{i}\n" for i in range(8)) + (
    "- path: /dev/nvidiactl\n- path: /dev/nvidia-uvm\n- path: /dev/dmabuf_import_helper\n"
)


def paths(text: str) -> list[str]:
    return [device.path for device in read(text).devices]


def test_the_list_of_an_a3_mega_node_is_read_in_its_order() -> None:
    assert paths(TCPXO) == [
        *(f"/dev/nvidia{i}" for i in range(8)),
        "/dev/nvidiactl",
        "/dev/nvidia-uvm",
        "/dev/dmabuf_import_helper",
    ]
    assert all(path in allow() for path in paths(TCPXO))


@pytest.mark.parametrize("text", ["", "[]", "null", "~", "# nothing\n", "---\n"])
def test_an_empty_annotation_asks_for_nothing(text: str) -> None:
    assert read(text).devices == ()


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ("- Path: /dev/a\n  TYPE: b", Device(path="/dev/a", type="b")),
        ('[{"path":"/dev/a","major":195,"minor":255}]', Device(path="/dev/a", major=195, minor=255)),
        ("- path: /dev/a\n  file_mode: 0660\n  uid: 7\n  gid: 0", Device(path="/dev/a", file_mode=0o660, uid=7)),
        ("- path: /dev/a\n  file_mode: 432", Device(path="/dev/a", file_mode=0o660)),
        ("- path: /dev/a\n  uid: null\n  gid:\n  type: ~", Device(path="/dev/a")),
        ('- path: "/dev/\\x61"\r\n', Device(path="/dev/a")),
        ("- path:\n    /dev/a\n...\n", Device(path="/dev/a")),
    ],
)
def test_fields_mean_what_they_mean_to_the_injectors_of_the_field(text: str, device: Device) -> None:
    assert read(text).devices == (device,)


def test_the_first_of_equal_paths_wins() -> None:
    text = "- path: /dev/a\n  uid: 1\n- path: /dev/a\n  uid: 2\n- path: /dev/b\n- path: /dev/a\n"
    assert read(text).devices == (Device(path="/dev/a", uid=1), Device(path="/dev/b"))


def test_keys_that_no_injector_knows_are_ignored_and_named() -> None:
    reading = read("- path: /dev/a\n  fileMode: 5\n  permissions: rwm\n")
    assert reading.devices == (Device(path="/dev/a"),)
    assert reading.ignored == ("fileMode", "permissions")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- path: /dev/null\n  path: /dev/sda", "path is there twice"),
        ("- path: /dev/null\n  Path: /dev/sda", "Path is there twice"),
        ("- &a {path: /dev/sda}\n- *a", "anchor or alias 'a'"),
        ("- <<: {path: /dev/sda}", "key '<<'"),
        ("- !!str path: /dev/sda", "tag"),
        ("- path: !!binary L2Rldi9zZGE=", "tag"),
        ("- path: /dev/a\n---\n- path: /dev/sda", "several documents"),
        ("- path: /dev/a\n...\n- path: /dev/sda", ""),
        ("%YAML 1.2\n---\n- path: /dev/a", "directive"),
        ("- path: /dev/a\n  file_mode: 0o660", "file_mode '0o660'"),
        ("- path: /dev/a\n  file_mode: 0x1b0", "file_mode '0x1b0'"),
        ("- path: /dev/a\n  file_mode: 6_60", "file_mode '6_60'"),
        ("- path: /dev/a\n  file_mode: 0b11", "file_mode '0b11'"),
        ("- path: /dev/a\n  uid: 1:10", "uid '1:10'"),
        ("- path: /dev/a\n  uid: '5'", "uid '5'"),
        ("- path: /dev/a\n  uid: -1", "uid '-1'"),
        ("- path: /dev/a\n  uid: 4294967296", "too large"),
        ("- path: /dev/a\n  major: text", "major 'text'"),
        ("- path: /dev/a\n  major: 1.0", "major '1.0'"),
        ("- path: /dev/a # x\u0085- path: /dev/sda", "U+0085"),
        ("- path: /dev/a # x\r- path: /dev/sda", "U+000D"),
        ("- path:\t/dev/a", "U+0009"),
        ("\ufeff- path: /dev/a", "U+FEFF"),
        ('- {path: "/dev/a", "pa\\u017fth": x}', "key"),
        ("- ? [a]\n  : b", "key that is no word"),
        ("- path: /dev/a\n  x: [1]", "x is no single value"),
        ("- path", "entry 1 is no mapping"),
        ("- - path: /dev/a", "entry 1 is no mapping"),
        ("path: /dev/a", "it is no list"),
        ("/dev/a", "it is no list"),
        ("- {}", "path is missing"),
        ("- path:", "path is missing"),
        ("- {path: /dev/a", "it is no YAML"),
        ('- path: "\\UFFFFFFFF"', "it is no YAML"),
        ("[" * 5000, "no mapping"),
        ("- path: /dev/a\n" * 1000, str(LONGEST)),
        *((f"- path: {path}", "is no path of a device") for path in ("dev/a", "/dev", "/dev/", "/etc/passwd", "a b")),
        *(
            (f"- path: {path}", "is no path")
            for path in ("/dev/../sda", "/dev/./sda", "//dev/sda", "/dev//sda", "/sda")
        ),
    ],
)
def test_what_readers_read_differently_is_an_error(text: str, said: str) -> None:
    with pytest.raises(DevicesError) as raised:
        read(text)
    assert said in str(raised.value)


SCALARS = st.sampled_from(
    ["/dev/nvidia0", "/dev/sda", '"/dev/sda"', "'/dev/sda'", '"/dev/\\x73da"', "0660", "660", "0o660", "yes", "~",
     "x y", "a: b", "#c", "*a", "&a /dev/sda", "!!str 1", "[/dev/sda]", "{path: /dev/sda}", "|\n    /dev/sda",
     ">-\n   /dev/sda"]
)  # fmt: skip
KEYS = st.sampled_from(
    ["path", "Path", '"path"', "'PATH'", "file_mode", "uid", "<<", "? path\n ", "&k path", "fileMode", "on", "1"]
)
GOOD = st.tuples(
    st.sampled_from(["path", "Path", '"path"', "'PATH'"]),
    st.sampled_from(["/dev/nvidia0", "/dev/sda", '"/dev/sda"', "'/dev/sda' # x", '"/dev/\\x73da"', "\n    /dev/sda"]),
)
ROWS = st.one_of(
    GOOD.map(lambda row: [row]),
    GOOD.map(lambda row: [row, ("uid", "7"), ("file_mode", "0660")]),
    st.tuples(GOOD, st.tuples(KEYS, SCALARS)).map(list),
    st.lists(st.tuples(KEYS, SCALARS), max_size=3),
)
ENTRIES = ROWS.map(lambda rows: "- " + "\n  ".join(f"{key}: {value}" for key, value in rows) + "\n")
FLOWS = ROWS.map(lambda rows: "- {" + ", ".join(f"{key}: {value}" for key, value in rows) + "}\n")
NOISE = st.text("-{}[]:,#&*!|>'\"%/devsa \n", max_size=12)
TEXTS = st.lists(st.one_of(ENTRIES, ENTRIES, FLOWS, st.just("# x\n"), NOISE), max_size=3).map("".join)


def yaml_1_2(text: str) -> Any:
    """As readers of the newer YAML read it."""
    return YAML(typ="safe", pure=True).load(text)


READERS: tuple[Callable[[str], Any], ...] = (
    yaml.safe_load,
    lambda text: yaml.load(text, Loader=yaml.CSafeLoader),
    yaml_1_2,
)


def as_others(found: Any) -> list[str]:
    """Paths as a lenient injector takes them: later keys win, in any case."""
    folded = [{str(key).lower(): value for key, value in entry.items()} for entry in found or []]
    return list(dict.fromkeys(entry["path"] for entry in folded))


@given(TEXTS)
@settings(max_examples=300, deadline=None)
def test_a_text_that_passes_names_the_same_paths_to_every_reader(text: str) -> None:
    try:
        mine = paths(text)
    except DevicesError:
        return
    for reader in READERS:
        assert as_others(reader(text)) == mine


@given(st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_text_is_read_or_refused_with_a_sentence(text: str) -> None:
    try:
        read(text)
    except DevicesError as error:
        assert str(error)  # noqa: PT017 - either outcome is right


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/dev/nvidia0", True),
        ("/dev/nvidia15", True),
        ("/dev/nvidiactl", True),
        ("/dev/nvidia", False),
        ("/dev/nvidia00", False),
        ("/dev/nvidia12345", False),
        ("/dev/nvidia0\n", False),
        ("/dev/nvidia0/sda", False),
        ("/dev/nvidia-caps-imex-channels/channel0", False),
        ("/dev/sda", False),
        ("/dev/infiniband/uverbs3", False),
    ],
)
def test_the_allow_list_holds_what_gpudirect_needs_and_nothing_else(path: str, *, allowed: bool) -> None:
    assert (path in allow()) is allowed


def test_the_allow_list_holds_what_the_sidecars_of_all_families_get() -> None:
    needed = {path for family in families() if family.pod.sidecar is not None for path in family.pod.sidecar.devices}
    assert "/dev/dmabuf_import_helper" in needed
    assert [path for path in needed if path not in allow()] == []


def test_the_allow_list_can_be_longer() -> None:
    more = allow(["/dev/infiniband/uverbs*", ALLOWED[0]])
    assert "/dev/infiniband/uverbs3" in more
    assert "/dev/infiniband/uverbs" not in more
    assert more.patterns == (*ALLOWED, "/dev/infiniband/uverbs*")


@pytest.mark.parametrize("pattern", ["sda", "/dev/../sda", "/etc/*", "", "/dev/a|b", "/dev/.*", "/dev/[a]"])
def test_a_pattern_that_is_no_device_path_is_refused(pattern: str) -> None:
    if pattern == "/dev/.*":  # a dot is a dot and a star a number, also here
        assert "/dev/sda" not in allow([pattern])
        return
    with pytest.raises(DevicesError):
        allow([pattern])


def test_annotations_are_told_by_container() -> None:
    assert annotated({"devices.gke.io/container.rxdm": "x", "devices.gke.io/other": "y", "a": "b"}) == {"rxdm": "x"}
