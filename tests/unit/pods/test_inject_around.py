"""What around the GPU containers would take the fabric away again: other users, SSH servers, claims, images."""

from __future__ import annotations

from typing import Any

import pytest

from interlace.fabric.family import find
from interlace.pods.bundle import Outcome, inject_text
from interlace.pods.errors import InjectError
from interlace.pods.inject import inject
from interlace.pods.workloads import Options
from interlace.pods.yamltext import block
from tests.unit.pods.pods import MACHINE, Json, container, pod

MEGA, ULTRA = find("a3-mega"), find("a3-ultra")
DAEMON = next(each.daemon for each in MEGA.tuples if each.preferred)


def said(before: Json, **options: Any) -> str:
    return "\n".join(inject(before, family=options.pop("family", MEGA), **options).warnings)


@pytest.mark.parametrize(
    ("around", "daemon"),
    [
        ({"runAsNonRoot": True}, {"runAsUser": 0, "runAsNonRoot": False}),
        ({"runAsUser": 1000}, {"runAsUser": 0}),
        ({"runAsUser": 0, "fsGroup": 1000}, {}),
        ({}, {}),
    ],
)
def test_the_daemon_is_root_whoever_the_work_runs_as(around: Json, daemon: Json) -> None:
    once = inject(pod(securityContext=around), family=MEGA)
    made = once.pod["spec"]["initContainers"][0]["securityContext"]
    made.pop("capabilities")
    assert made == daemon
    assert once.pod["spec"]["securityContext"] == around
    assert "securityContext" not in once.pod["spec"]["containers"][0]


def test_a_pod_for_another_user_is_injected_once() -> None:
    once = inject(pod(securityContext={"runAsNonRoot": True, "runAsUser": 1000}), family=MEGA)
    assert inject(once.pod, family=MEGA).changes == ()


@pytest.mark.parametrize(("device", "strange"), [("/dev/sda", True), ("/dev/nvidia-uvm-tools", False)])
def test_a_device_that_the_guard_would_refuse_is_said(device: str, strange: bool) -> None:
    daemon = container("tcpxo-daemon", gpus=0, image=DAEMON)
    before = pod(initContainers=[daemon], annotations={"devices.gke.io/container.tcpxo-daemon": f"- path: {device}\n"})
    assert ("GPUDirect needs no /dev/sda, and the device guard" in said(before)) is strange


@pytest.mark.parametrize(("key", "value"), [("runAsUser", 1000), ("runAsNonRoot", True)])
def test_a_daemon_that_is_not_to_be_root_is_refused(key: str, value: Any) -> None:
    daemon = container("tcpxo-daemon", gpus=0, image=DAEMON, securityContext={key: value})
    with pytest.raises(InjectError, match=f"securityContext.{key}: .*without root.*remove it"):
        inject(pod(initContainers=[daemon]), family=MEGA)


def test_a_container_that_may_not_be_privileged_is_refused_on_the_hosts_network() -> None:
    before = pod(container(securityContext={"allowPrivilegeEscalation": False}))
    with pytest.raises(InjectError, match=r"allowPrivilegeEscalation: false.*remove it"):
        inject(before, family=MEGA, host_network=True)


@pytest.mark.parametrize(
    ("command", "lost"),
    [
        (["/usr/sbin/sshd", "-De"], True),
        (["bash", "-c", "service ssh restart; sleep infinity"], True),
        (["bash", "-c", 'exec /usr/sbin/sshd -De -o "SetEnv=$settings"'], False),
        (["bash", "-c", "printenv > ~/.ssh/environment; /usr/sbin/sshd -D"], False),
        (["torchrun", "train.py"], False),
    ],
)
def test_settings_that_an_ssh_server_keeps_from_the_ranks_are_said(command: list[str], lost: bool) -> None:
    assert ("SSH server keeps the NCCL settings" in said(pod(container(command=command)))) is lost


@pytest.mark.parametrize(("command", "lost"), [(None, True), (["sleep", "infinity"], False)])
def test_workers_of_an_mpi_job_without_a_command_run_an_ssh_server(command: list[str] | None, lost: bool) -> None:
    worker = container(command=command)
    if command is None:
        del worker["command"]
    template = {"spec": {"nodeSelector": {MACHINE: "a3-megagpu-8g"}, "containers": [worker]}}
    head = {"spec": {"containers": [{"name": "launcher", "image": "docker.io/library/ubuntu:22.04"}]}}
    outcome = only(
        {
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "metadata": {"name": "reduce"},
            "spec": {"mpiReplicaSpecs": {"Launcher": {"template": head}, "Worker": {"template": template}}},
        }
    )
    warned = [each for each in outcome.warnings if "SSH server" in each]
    assert [each.partition(": ")[0] for each in warned] == [
        "spec.mpiReplicaSpecs.Worker.template.spec.containers[0]"
    ] * lost


@pytest.mark.parametrize(("name", "refused"), [("shared-memory", True), ("data", False)])
def test_a_claim_template_that_would_hide_a_volume_of_the_fabric_is_refused(name: str, refused: bool) -> None:
    template = {"spec": {"nodeSelector": {MACHINE: "a3-megagpu-8g"}, "containers": [container()]}}
    outcome = only(
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "serve"},
            "spec": {"template": template, "volumeClaimTemplates": [{"metadata": {"name": name}}]},
        }
    )
    assert (outcome.refusal is not None) is refused
    if outcome.refusal is not None:
        assert str(outcome.refusal).startswith("the volumeClaimTemplates of the StatefulSet: shared-memory: its volume")


@pytest.mark.parametrize("command", [True, False])
def test_settings_that_cannot_be_sourced_are_said_to_be_those_that_are_known(command: bool) -> None:
    before = pod()
    if not command:
        del before["spec"]["containers"][0]["command"]
    assert ("set_nccl_env.sh on the node may set others" in said(before, family=ULTRA)) is not command


@pytest.mark.parametrize(("family", "counted"), [(MEGA, False), (ULTRA, True)])
def test_gpus_by_claim_are_said_not_to_be_counted_where_a_pod_needs_the_whole_node(family: Any, counted: bool) -> None:
    worker = container(gpus=0, resources={"claims": [{"name": "gpus"}]})
    before = pod(worker, resourceClaims=[{"name": "gpus", "resourceClaimTemplateName": "eight"}])
    told = said(before, family=family, claims={"eight": ("gpu.nvidia.com",)})
    assert ("claim all 8 of a node" in told) is not counted


@pytest.mark.parametrize("where", ["template", "object"])
def test_a_label_that_names_no_family_is_refused_where_it_stands(where: str) -> None:
    labels = {"labels": {"interlace.dev/fabric": "a9"}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", **(labels if where == "object" else {})},
        "spec": {"template": {**({"metadata": labels} if where == "template" else {}), "spec": pod()["spec"]}},
    }
    refusal = only({"apiVersion": "v1", "kind": "List", "items": [job]}).refusal
    assert refusal is not None
    assert (
        refusal.path
        == {
            "template": "items[0].spec.template.metadata.labels[interlace.dev/fabric]",
            "object": "the label interlace.dev/fabric of the Job",
        }[where]
    )
    assert refusal.value == "a9"


def only(value: Json) -> Outcome:
    (outcome,) = inject_text("\n".join(block(value, column=0, dash=0)) + "\n", options=Options())
    return outcome
