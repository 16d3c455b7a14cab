"""What the plugin answers the runtime, and what it tells."""

from __future__ import annotations

import pytest

from interlace.node.nri.errors import Reason
from interlace.node.nri.plugin import CREATE, SERVICE, VALIDATE, Plugin
from interlace.node.nri.proto import nri_pb2 as pb
from interlace.node.nri.ttrpc import INVALID_ARGUMENT, PERMISSION_DENIED, Status
from tests.unit.node.nri.parts import NULL, REAL, ZERO, Told, container, listed, pod, real


class Side:
    """The runtime's side of a plugin, without a wire."""

    def __init__(self, *, name: str = "interlace") -> None:
        self.told = Told()
        self.plugin = Plugin(events=CREATE | VALIDATE, name=name, index="50", rules=REAL, witness=self.told)
        self.handlers = self.plugin.services()[SERVICE]

    def create(self, pod: pb.PodSandbox, container: pb.Container) -> list[pb.LinuxDevice]:
        request = pb.CreateContainerRequest(pod=pod, container=container)
        answer = self.handlers["CreateContainer"](request.SerializeToString())
        return list(pb.CreateContainerResponse.FromString(answer).adjust.linux.devices)

    def validate(
        self,
        pod: pb.PodSandbox,
        container: pb.Container,
        *,
        injected: list[pb.LinuxDevice] | None = None,
        plugins: dict[str, str] | None = None,
    ) -> pb.ValidateContainerAdjustmentResponse:
        adjust = pb.ContainerAdjustment(linux=pb.LinuxContainerAdjustment(devices=injected or []))
        request = pb.ValidateContainerAdjustmentRequest(
            pod=pod,
            container=container,
            adjust=adjust,
            plugins=[pb.PluginInstance(name=name, index=index) for name, index in (plugins or {}).items()],
        )
        answer = self.handlers["ValidateContainerAdjustment"](request.SerializeToString())
        return pb.ValidateContainerAdjustmentResponse.FromString(answer)

    def synchronize(
        self, *containers: pb.Container, pods: list[pb.PodSandbox] | None = None, more: bool = False
    ) -> bool:
        request = pb.SynchronizeRequest(pods=pods or [], containers=containers, more=more)
        answer = self.handlers["Synchronize"](request.SerializeToString())
        return pb.SynchronizeResponse.FromString(answer).more


def test_it_asks_for_its_events_and_learns_the_runtime() -> None:
    side = Side()
    request = pb.ConfigureRequest(runtime_name="containerd", runtime_version="v2.2.9")
    answer = side.handlers["Configure"](request.SerializeToString())
    assert pb.ConfigureResponse.FromString(answer).events == 8 | 1 << 13
    assert side.plugin.runtime == "containerd v2.2.9"


def test_a_container_gets_its_devices_with_the_mode_and_owner_that_are_asked_for() -> None:
    side = Side()
    text = f"- path: {NULL}\n  file_mode: 0600\n  uid: 5\n  gid: 6\n- path: {ZERO}\n"
    null, zero = side.create(pod(daemon=text), container())
    want = real(NULL)
    want.file_mode.value, want.uid.value, want.gid.value = 0o600, 5, 6
    assert null == want
    assert zero == real(ZERO)
    assert not zero.HasField("file_mode")
    assert [len(decision.add) for decision in side.told.decisions] == [2]


def test_a_container_that_asks_for_nothing_gets_nothing_and_is_not_spoken_of() -> None:
    side = Side()
    assert side.create(pod(other=listed(NULL)), container()) == []
    assert side.create(pb.PodSandbox(), pb.Container()) == []
    assert side.told.decisions == []


@pytest.mark.parametrize(
    ("text", "code", "reason"),
    [
        (listed("/dev/sda"), PERMISSION_DENIED, Reason.NOT_ALLOWED),
        ("- {", INVALID_ARGUMENT, Reason.BAD_ANNOTATION),
    ],
)
def test_a_refusal_fails_the_container_and_is_told(text: str, code: int, reason: Reason) -> None:
    side = Side()
    with pytest.raises(Status, match="container daemon: ") as caught:
        side.create(pod(daemon=text), container())
    assert caught.value.code == code
    assert [refused.reason for refused in side.told.refusals] == [reason]


def test_parts_of_the_state_are_echoed_and_only_the_last_registers_the_plugin() -> None:
    side = Side()
    assert side.synchronize(pods=[pod(daemon=listed(NULL))], more=True) is True
    assert side.told.synchronizations == 0
    assert side.synchronize(container(), more=False) is False
    assert side.told.synchronizations == 1


def test_a_container_that_runs_without_its_devices_is_found_in_whichever_part_it_and_its_pod_come() -> None:
    side = Side()
    ended = container()
    ended.state = pb.CONTAINER_STOPPED
    side.synchronize(container(devices=[real(NULL)]), ended, more=True)
    side.synchronize(container("other"), pods=[pod(daemon=listed(NULL, ZERO))], more=False)
    assert side.told.lacking == [("train-0", "daemon", [ZERO])]


def test_devices_of_an_injector_before_this_one_are_left_alone() -> None:
    side = Side()
    given = [real(NULL), real(ZERO)]
    asks = pod(daemon=listed(NULL, ZERO))
    assert side.create(asks, container(devices=given)) == []
    assert not side.validate(asks, container(), injected=given, plugins={"device_injector_nri": "10"}).reject
    assert side.told.others == [("device_injector_nri", "10", False)]


@pytest.mark.parametrize("index", ["50", "51"])
def test_an_injector_that_is_called_later_gets_all_pods_and_what_it_leaves_out_is_refused(index: str) -> None:
    side = Side()
    assert not side.validate(pb.PodSandbox(), pb.Container(), plugins={"device_injector_nri": index}).reject
    assert side.told.others == [("device_injector_nri", index, True)]
    asks = pod(daemon=listed(NULL))
    assert side.create(asks, container()) == []
    both = {"device_injector_nri": index}
    assert not side.validate(asks, container(), injected=[real(NULL)], plugins=both).reject
    answer = side.validate(asks, container(), plugins=both)
    assert answer.reject
    assert "container daemon: /dev/null was injected by no plugin" in answer.reason
    with pytest.raises(Status, match="/dev/sda may not be injected"):
        side.create(pod(daemon=listed("/dev/sda")), container())


def test_once_the_later_injector_is_gone_this_one_injects_again() -> None:
    side = Side()
    side.validate(pb.PodSandbox(), pb.Container(), plugins={"device_injector_nri": "90"})
    asks = pod(daemon=listed(NULL))
    assert side.create(asks, container()) == []
    assert side.validate(asks, container()).reject
    assert side.create(asks, container()) == [real(NULL)]


def test_an_injector_under_the_name_of_another_does_not_stand_down_for_itself() -> None:
    side = Side(name="device_injector_nri")
    side.validate(pb.PodSandbox(), pb.Container(), plugins={"device_injector_nri": "50"})
    assert side.told.others == []
    assert side.create(pod(daemon=listed(NULL)), container()) == [real(NULL)]


def test_other_plugins_are_no_injectors() -> None:
    side = Side()
    side.validate(pb.PodSandbox(), pb.Container(), plugins={"topology-aware": "90", "interlace": "50"})
    assert side.told.others == []


def test_state_changes_and_the_end_are_answered_with_nothing() -> None:
    side = Side()
    assert side.handlers["StateChange"](b"\x08\x01") == b""
    assert side.handlers["Shutdown"](b"") == b""
