"""What a container gets: all that it asks for, from the list, as the node has it; or nothing at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from interlace.fabric.devices import PREFIX, allow
from interlace.node.nri.errors import Reason, Refused
from interlace.node.nri.injection import NODE_RESOURCE, Decision, Present, Rules, asked, decide
from tests.unit.node.nri.parts import NULL, REAL, ZERO, listed, pod, real


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    """A node's /dev with a fifo for each device, and what leads astray."""
    folder = tmp_path / "dev"
    (folder / "deep").mkdir(parents=True)
    for name in ("nvidia0", "nvidia1", "nvidiactl", "sda", "deep/fifo"):
        os.mkfifo(folder / name)
    (folder / "nvidia2").symlink_to("sda")
    (folder / "nvidia3").write_text("")
    (folder / "shallow").symlink_to("deep")
    return folder


def rules(dev: Path, *more: str) -> Rules:
    return Rules(allowed=allow(more), dev=dev)


def decided(text: str, rules: Rules, *, present: Present | None = None) -> Decision:
    return decide(pod(daemon=text).annotations, container="daemon", present=present or {}, rules=rules)


def paths(decision: Decision) -> list[str]:
    return [device.asked.path for device in decision.add]


def refusal(text: str, rules: Rules) -> Refused:
    with pytest.raises(Refused) as caught:
        decided(text, rules)
    assert str(caught.value).startswith(f"container daemon: metadata.annotations[{PREFIX}daemon]: ")
    return caught.value


def test_kind_and_numbers_are_those_of_the_node_whatever_the_annotation_says() -> None:
    decision = decided(f"- path: {NULL}\n  type: b\n  major: 8\n  minor: 0\n  file_mode: 0660\n  uid: 7\n", REAL)
    (device,) = decision.add
    (number,) = [os.lstat(NULL).st_rdev]
    assert (device.host.kind, device.host.major, device.host.minor) == ("c", os.major(number), os.minor(number))
    assert (device.asked.file_mode, device.asked.uid, device.asked.gid) == (0o660, 7, 0)


def test_a_fifo_is_a_device_of_its_kind(dev: Path) -> None:
    (device,) = decided(listed("/dev/nvidia0"), rules(dev)).add
    assert device.host.kind == "p"


def test_the_first_of_equal_paths_counts(dev: Path) -> None:
    text = "- path: /dev/nvidia0\n  uid: 1\n- path: /dev/nvidia1\n- path: /dev/nvidia0\n  uid: 2\n"
    decision = decided(text, rules(dev))
    assert paths(decision) == ["/dev/nvidia0", "/dev/nvidia1"]
    assert decision.add[0].asked.uid == 1


def test_only_the_container_that_is_named_gets_devices(dev: Path) -> None:
    annotations = pod(other=listed("/dev/nvidia0")).annotations
    assert decide(annotations, container="daemon", present={}, rules=rules(dev)) == Decision()
    assert decided("", rules(dev)) == Decision()


@pytest.mark.parametrize(
    ("text", "reason", "said"),
    [
        (listed("/dev/sda"), Reason.NOT_ALLOWED, "/dev/sda may not be injected on this node; allowed are /dev/nvidia"),
        (listed("/dev/../dev/sda"), Reason.BAD_ANNOTATION, "is no path of a device"),
        (listed("/etc/shadow"), Reason.BAD_ANNOTATION, "is no path of a device"),
        (listed("/dev/nvidia0", "/dev/nvidia9"), Reason.NO_DEVICE, "/dev/nvidia9 does not exist on the node"),
        (listed("/dev/nvidia2"), Reason.NOT_A_DEVICE, "/dev/nvidia2 is a symlink on the node; name the device itself"),
        (listed("/dev/nvidia3"), Reason.NOT_A_DEVICE, "/dev/nvidia3 is no device on the node"),
        ("- path: /dev/nvidia0\n  Path: /dev/sda\n", Reason.BAD_ANNOTATION, "Path is there twice"),
        ("path: /dev/nvidia0", Reason.BAD_ANNOTATION, "it is no list"),
        ("- path: /dev/nvidia0\n  major: text\n", Reason.BAD_ANNOTATION, "entry 1: major 'text' is no number"),
        ("- {", Reason.BAD_ANNOTATION, "it is no YAML"),
    ],
)
def test_a_wish_that_cannot_be_met_whole_refuses_the_container(dev: Path, text: str, reason: Reason, said: str) -> None:
    refused = refusal(text, rules(dev))
    assert refused.reason == reason
    assert said in str(refused)


def test_a_link_in_the_middle_of_a_path_is_not_followed_even_where_the_path_is_allowed(dev: Path) -> None:
    allowed = rules(dev, "/dev/deep/fifo", "/dev/shallow/fifo", "/dev/sda/fifo", "/dev/none/fifo")
    assert paths(decided(listed("/dev/deep/fifo"), allowed)) == ["/dev/deep/fifo"]
    assert refusal(listed("/dev/shallow/fifo"), allowed).reason == Reason.NOT_A_DEVICE
    assert refusal(listed("/dev/sda/fifo"), allowed).reason == Reason.NOT_A_DEVICE
    assert refusal(listed("/dev/none/fifo"), allowed).reason == Reason.NO_DEVICE


def test_what_a_container_has_already_is_left_alone_but_another_device_of_that_name_is_replaced() -> None:
    there, zero = real(NULL), real(ZERO)
    present = {NULL: (there.type, there.major, there.minor), ZERO: (zero.type, zero.major, zero.minor + 1)}
    decision = decided(listed(NULL, ZERO), REAL, present=present)
    assert paths(decision) == [ZERO]
    assert decision.there == (NULL,)


def other(key: str, text: str, *, switched_on: bool = True) -> list[str]:
    rules = Rules(allowed=REAL.allowed, node_resource=switched_on)
    return paths(decide({key: text}, container="daemon", present={}, rules=rules))


def test_annotations_of_the_nri_project_count_only_when_switched_on_and_the_nearest_of_them_alone() -> None:
    null = real(NULL)
    text = f"- path: {NULL}\n  type: c\n  major: {null.major}\n  minor: {null.minor}\n"
    for key in (f"{NODE_RESOURCE}/container.daemon", f"{NODE_RESOURCE}/pod", NODE_RESOURCE):
        assert other(key, text) == [NULL]
        assert other(key, text, switched_on=False) == []
    assert other(f"{NODE_RESOURCE}/container.other", text) == []
    rules = Rules(allowed=REAL.allowed, node_resource=True)
    both = {f"{NODE_RESOURCE}/pod": text, f"{NODE_RESOURCE}/container.daemon": ""}
    assert decide(both, container="daemon", present={}, rules=rules) == Decision()


def test_numbers_of_another_device_under_an_allowed_name_are_refused() -> None:
    with pytest.raises(Refused, match="/dev/null is c 1:3 on the node, the annotation says b 8:0") as caught:
        other(NODE_RESOURCE, f"- path: {NULL}\n  type: b\n  major: 8\n  minor: 0\n")
    assert caught.value.reason == Reason.DIFFERENT_DEVICE


def test_what_a_pod_asks_for_is_known_also_where_an_annotation_is_broken() -> None:
    annotations = pod(daemon=listed(NULL), broken="- {").annotations
    assert asked(annotations, container="daemon", rules=REAL) == {NULL}
    assert asked(annotations, container="broken", rules=REAL) == frozenset()
