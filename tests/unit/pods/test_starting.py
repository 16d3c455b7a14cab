"""When a daemon counts as started: the script of its probe is run, on devices that this machine has."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from interlace.fabric.family import Probe, find
from interlace.pods.errors import InjectError
from interlace.pods.inject import inject
from interlace.pods.starting import FAILURES, REQUIRED, startup_probe

OWN = Probe(source="", command=("echo", "it's ready"), delay=2, period=3, failures=4)
MEGA = find("a3-mega")
KEY = REQUIRED + "tcpxo-daemon"


def run(probe: dict[str, Any] | None) -> tuple[int, str]:
    """Exit code and output, as kubelet sees them."""
    assert probe is not None
    done = subprocess.run(probe["exec"]["command"], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def pod(**annotations: str) -> dict[str, Any]:
    main = {
        "name": "main",
        "image": "docker.io/library/train:1",
        "command": ["train"],
        "resources": {"limits": {"nvidia.com/gpu": 8}},
    }
    return {"metadata": {"annotations": annotations}, "spec": {"containers": [main]}}


def test_a_daemon_with_all_devices_is_asked_what_it_says_itself() -> None:
    probe = startup_probe(OWN, devices=("/dev/null", "/dev/zero"))
    assert run(probe) == (0, "it's ready\n")
    assert probe is not None
    assert (probe["initialDelaySeconds"], probe["periodSeconds"], probe["failureThreshold"]) == (2, 3, 4)


def test_a_daemon_that_says_nothing_is_started_once_its_devices_are_there() -> None:
    probe = startup_probe(None, devices=("/dev/null",))
    assert run(probe) == (0, "")
    assert probe is not None
    assert probe["failureThreshold"] == FAILURES


def test_a_missing_device_fails_the_probe_with_a_sentence_that_says_why() -> None:
    code, said = run(startup_probe(OWN, devices=("/dev/null", "/dev/none", "/dev/neither")))
    assert code == 1
    assert said.startswith("/dev/none is missing: no device injector was registered at the container runtime")
    assert said.count("\n") == 1


def test_a_file_is_no_device() -> None:
    assert run(startup_probe(None, devices=("/etc/passwd",)))[0] == 1


def test_nothing_to_look_at_is_no_probe() -> None:
    assert startup_probe(None, devices=()) is None
    probe = startup_probe(OWN, devices=())
    assert probe is not None
    assert probe["exec"]["command"] == ["echo", "it's ready"]


def test_a_required_plugin_stands_in_an_annotation_of_the_daemon_and_once() -> None:
    assert KEY not in inject(pod(), family=MEGA).pod["metadata"]["annotations"]
    once = inject(pod(), family=MEGA, required_plugin="interlace")
    assert once.pod["metadata"]["annotations"][KEY] == '["interlace"]'
    again = inject(once.pod, family=MEGA, required_plugin="interlace")
    assert again.changes == ()
    both = inject(pod(**{KEY: '["audit"]'}), family=MEGA, required_plugin="interlace")
    assert both.pod["metadata"]["annotations"][KEY] == '["audit", "interlace"]'


def test_a_list_of_plugins_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(InjectError, match=r"it is no JSON list of names; write \[\"interlace\"\]"):
        inject(pod(**{KEY: "- interlace"}), family=MEGA, required_plugin="interlace")


def test_a_pod_on_the_network_of_its_host_has_all_devices_and_is_not_asked_for_them() -> None:
    made = inject(pod(), family=MEGA, host_network=True).pod
    assert made["spec"]["initContainers"][0]["startupProbe"]["exec"]["command"] == ["cat", "/run/health-check"]
