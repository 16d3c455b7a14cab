"""Pods that somebody wired by hand: kept where they agree, completed where half is done, and told their faults."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlace.fabric.family import families, find
from interlace.pods.errors import InjectError
from interlace.pods.inject import inject
from tests.unit.pods.pods import Json, container, env, mounts, pod
from tests.unit.pods.seed_pods import TABLES, whole

MEGA, HIGH = find("a3-mega"), find("a3-high")
REPOSITORY = "us-docker.pkg.dev/gce-ai-infra/gpudirect-{}/tcpgpudmarxd-dev:{}"
MEGA_IMAGE, HIGH_IMAGE = REPOSITORY.format("tcpxo", "v1.0.21"), REPOSITORY.format("tcpx", "v2.0.15")


def test_the_static_settings_of_the_guide_are_refused_beside_a_newer_plugin() -> None:
    guide = {"NCCL_PROTO": "Simple", "NCCL_NVLS_ENABLE": "0", "NCCL_CROSS_NIC": "0"}  # S27
    main = container(env=[{"name": name, "value": value} for name, value in guide.items()])
    with pytest.raises(InjectError, match=r"NCCL_PROTO\]: Simple: the fabric enforces Simple,LL128"):
        inject(pod(main), family=MEGA)
    assert inject(pod(main), family=MEGA, software=MEGA.software("tcpxo-1.0.5")).software == "tcpxo-1.0.5"


def printed(name: str) -> Json:
    """A container with the settings of the guide as they are printed, quote marks and all."""
    lines = [line for line in (TABLES / name).read_text().splitlines() if not line.startswith("#")]
    return container(env=[dict(zip(("name", "value"), line.split("\t"), strict=True)) for line in lines])


@pytest.mark.parametrize(
    ("family", "software", "name", "first"),
    [
        ("a3-mega", "tcpxo-1.0.5", "settings-tcpxo.tsv", "NCCL_PROTO"),
        ("a3-high", "tcpx-3.1.9", "settings-tcpx.tsv", "NCCL_ALGO"),
    ],
)
def test_the_lists_of_the_guide_are_good_for_their_own_release_and_for_no_other(
    family: str, software: str, name: str, first: str
) -> None:
    found = find(family)
    done = inject(pod(printed(name)), family=found, software=found.software(software))
    settings = env(done.pod["spec"]["containers"][0])
    assert not any('"' in value for value in settings.values())
    assert settings["LD_LIBRARY_PATH"].startswith("/usr/local/nvidia/lib64")
    assert "$" not in settings["LD_LIBRARY_PATH"]
    with pytest.raises(InjectError) as refused:
        inject(pod(printed(name)), family=found)
    assert refused.value.path == f"spec.containers[0].env[{first}]"


def test_the_algorithm_of_another_release_is_refused() -> None:
    main = container(env=[{"name": "NCCL_ALGO", "value": "Ring"}])  # S23
    with pytest.raises(InjectError, match="Ring: the fabric needs Ring,Tree"):
        inject(pod(main), family=HIGH)
    assert inject(pod(main), family=HIGH, software=HIGH.software("tcpx-3.1.9")).changes


def test_an_empty_volume_is_filled_in_and_a_missing_one_declared() -> None:
    before = whole("a3-high", image=HIGH_IMAGE)
    done = inject(before, family=HIGH)
    assert {"name": "tcpx-socket", "emptyDir": {}} in done.pod["spec"]["volumes"]
    assert any("some clients refuse an empty value" in change.reason for change in done.changes)
    before["spec"]["volumes"] = [each for each in before["spec"]["volumes"] if each["name"] != "tcpx-socket"]
    done = inject(before, family=HIGH)
    assert {"name": "tcpx-socket", "emptyDir": {}} in done.pod["spec"]["volumes"]


def test_the_plugin_is_told_where_the_sockets_are() -> None:
    done = inject(whole("a3-high", image=HIGH_IMAGE), family=HIGH)  # S9, S22
    main = done.pod["spec"]["containers"][1]
    assert env(main)["NCCL_GPUDIRECTTCPX_UNIX_CLIENT_PREFIX"] == "/run/tcpx"
    assert mounts(main)["/run/tcpx"] == mounts(main)["/tmp"] == "tcpx-socket"
    assert any("hide the image's own" in warning for warning in done.warnings)


def test_flags_that_mean_nothing_any_more_are_said() -> None:
    assert any(
        "mean nothing to this release" in each
        for each in inject(whole("a3-mega", image=MEGA_IMAGE), family=MEGA).warnings
    )
    old = whole("a3-mega", image=REPOSITORY.format("tcpxo", "v1.0.11"))
    assert not any("mean nothing to this release" in each for each in inject(old, family=MEGA).warnings)


def test_a_daemon_in_an_ordinary_container_of_a_job_is_said_to_run_on() -> None:
    before = whole("a3-mega", image=MEGA_IMAGE)
    assert not any("does not complete" in each for each in inject(before, family=MEGA).warnings)
    before["spec"]["restartPolicy"] = "Never"
    assert any("does not complete" in each for each in inject(before, family=MEGA).warnings)


def test_a_daemon_is_known_by_what_it_runs_and_its_devices_go_by_its_name() -> None:
    program = ["/tcpgpudmarxd/build/app/tcpgpudmarxd", "--uds_path", "/run/tcpx"]
    daemon = container(
        "gpu-net", gpus=0, image=HIGH_IMAGE.replace("us-docker.pkg.dev", "mirror.example"), command=program
    )
    done = inject(pod(container(), initContainers=[daemon]), family=HIGH).pod
    (only,) = done["spec"]["initContainers"]
    assert (only["name"], only["restartPolicy"], only["command"]) == ("gpu-net", "Always", program)
    assert "devices.gke.io/container.gpu-net" in done["metadata"]["annotations"]
    by_program = {**daemon, "image": "mirror.example/rxdm@sha256:0123"}
    assert inject(pod(container(), by_program), family=HIGH).software == "tcpx-3.1.12"


@pytest.mark.parametrize(
    "form", ["[{path: /dev/nvidia0}]", "  - path: /dev/nvidia0\n", "- path: /dev/nvidia0", "", "[]"]
)
def test_devices_that_are_missing_join_those_that_are_listed(form: str) -> None:
    key = "devices.gke.io/container.tcpxo-daemon"
    daemon = container("tcpxo-daemon", gpus=0, image=MEGA_IMAGE)
    done = inject(pod(container(), daemon, annotations={key: form}), family=MEGA).pod
    text = done["metadata"]["annotations"][key]
    assert text.count("/dev/nvidia0\n") == 1
    assert text.count("path: /dev/") == 11
    assert inject(done, family=MEGA).changes == ()


def canonical(value: Any) -> Any:
    """Order of lists does not count, nor whether something empty is there."""
    if isinstance(value, dict):
        return {key: canonical(each) for key, each in sorted(value.items()) if each not in ([], {})}
    if isinstance(value, list) and all(isinstance(each, dict) for each in value):
        return sorted((canonical(each) for each in value), key=repr)
    return value


def parts(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Everything that injection may have put in, as paths."""
    found: list[tuple[str | int, ...]] = []
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        here = (*path, key)
        if key in ("annotations", "volumeMounts", "env", "volumes", "tolerations", "capabilities"):
            found += [here, *((*here, inner) for inner in (each if isinstance(each, dict) else range(len(each))))]
        elif key in ("nodeSelector", "startupProbe", "affinity", "initContainers", "restartPolicy") and len(path) > 1:
            found.append(here)
        found += parts(each, here)
    return list(dict.fromkeys(found))


@given(st.sampled_from([family.id for family in families()]), st.data())
@settings(max_examples=80, deadline=None)
def test_whatever_part_of_the_wiring_is_missing_is_put_back(name: str, data: st.DataObject) -> None:
    family = find(name)
    labels = {"interlace.dev/channel": "cd"}
    done = inject(pod(container(gpus=family.node.gpus), labels=labels), family=family).pod
    cut: Json = copy.deepcopy(done)
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(parts(cut)))
        parent: Any = cut
        for key in path[:-1]:
            parent = parent[key]
        del parent[path[-1]]
        if not parts(cut):
            break
    assert canonical(inject(cut, family=family).pod) == canonical(done)
