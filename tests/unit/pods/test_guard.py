"""The device guard."""

from __future__ import annotations

import pytest

from interlace.api.meta import ObjectMeta
from interlace.fabric.devices import allow
from interlace.pods import guard
from interlace.pods.guard import check
from interlace.pods.review import ALLOWED, Verdict

KEY = "devices.gke.io/container.rxdm"
GPU = "- path: /dev/nvidia0\n"
DISK = "- path: /dev/sda\n"


def meta(**annotations: str) -> ObjectMeta:
    return ObjectMeta(annotations={KEY: annotations["rxdm"]} if annotations else {})


def judged(text: str, *, mode: guard.Mode = "enforce", before: str | None = None) -> Verdict:
    old = None if before is None else meta(rxdm=before)
    return check(meta(rxdm=text), old=old, allowed=allow(), mode=mode)


def test_gpus_pass() -> None:
    assert judged(GPU) == ALLOWED


def test_a_pod_without_devices_passes() -> None:
    assert check(ObjectMeta(annotations={"a": DISK}), old=None, allowed=allow(), mode="enforce") == ALLOWED


@pytest.mark.parametrize(
    "text",
    [
        DISK,
        "- Path: /dev/sda",
        "- path: /dev/nvidia0\n  path: /dev/sda",
        "- path: /dev/nvidia0\n  Path: /dev/sda",
        "- &d {path: /dev/sda}\n- *d",
        "- path: /dev/sda\n  file_mode: 0666",
        '[{"path": "/dev/\\u0073da"}]',
        "- path: /dev/../dev/sda",
        "- path: /dev/nvidia0\n---\n- path: /dev/sda",
        "- path: !!str /dev/sda",
        "- path: /dev/nvidia0 # \u2028- path: /dev/sda",
    ],
)
def test_a_disk_is_refused_however_it_is_spelt(text: str) -> None:
    verdict = judged(text)
    assert verdict.refused.startswith(f"metadata.annotations[{KEY}]: ")
    assert verdict.code == 403


def test_a_refusal_says_what_may_be_asked_for_and_what_to_do() -> None:
    refused = judged(GPU + DISK).refused
    assert "/dev/sda may not be injected" in refused
    assert "/dev/nvidia*" in refused
    assert "Leave it out" in refused


def test_any_container_is_guarded_also_one_that_the_pod_does_not_have_yet() -> None:
    pod = ObjectMeta(annotations={"devices.gke.io/container.debugger-x": DISK})
    assert check(pod, old=None, allowed=allow(), mode="enforce").refused


def test_the_mode_warn_says_the_same_and_lets_the_pod_pass() -> None:
    verdict = judged(DISK, mode="warn")
    assert not verdict.refused
    assert verdict.warnings == (f"device guard would refuse: {judged(DISK).refused.removesuffix('.')}",)


def test_the_mode_off_says_nothing() -> None:
    assert judged(DISK, mode="off") == ALLOWED


def test_a_pod_that_is_older_than_the_guard_can_be_updated() -> None:
    assert judged(DISK, before=DISK) == ALLOWED


def test_an_update_that_asks_for_more_is_refused() -> None:
    assert judged(DISK, before=GPU).refused


def test_an_update_that_asks_for_less_passes() -> None:
    assert check(ObjectMeta(), old=meta(rxdm=DISK), allowed=allow(), mode="enforce") == ALLOWED


def test_keys_that_injectors_ignore_are_warned_of() -> None:
    verdict = judged(GPU + "  fileMode: 432\n")
    assert not verdict.refused
    assert verdict.warnings == (f"metadata.annotations[{KEY}]: injectors ignore the key fileMode; write file_mode",)


def test_many_paths_are_named_in_part() -> None:
    text = "".join(f"- path: /dev/sd{letter}\n" for letter in "abcdefgh")
    assert "/dev/sda, /dev/sdb, /dev/sdc, /dev/sdd and 4 more" in judged(text).refused
