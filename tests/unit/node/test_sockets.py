"""Kubelet's side: both services over real unix sockets, and what happens when a call goes away."""

from __future__ import annotations

import asyncio
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.exceptions import GRPCError, StreamTerminatedError

from interlace.api.computedomain import DRIVER
from interlace.kube.meters import Registry
from interlace.node.cdi import PreparedClaim
from interlace.node.demand import ClaimRef, DeviceRef
from interlace.node.errors import Reason, Refusal, RivalDriver, StateError
from interlace.node.metrics import Metrics
from interlace.node.plugin import Registration, dra_services
from interlace.node.proto import dra_v1_pb2, dra_v1beta1_pb2, registration_pb2
from interlace.node.rivals import refuse_rivals, remove_dead
from interlace.node.rpc import ask, listen

VERSIONS: dict[str, Any] = {"v1": dra_v1_pb2, "v1beta1": dra_v1beta1_pb2}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short one: the path of a unix socket may have 107 bytes."""
    path = Path(tempfile.mkdtemp(prefix="il-"))
    yield path
    shutil.rmtree(path)


class Claims:
    """A preparer that does as the claim's name says."""

    def __init__(self) -> None:
        self.waiting = asyncio.Event()
        self.ended = asyncio.Event()
        self.unprepared: list[str] = []

    async def prepare(self, ref: ClaimRef) -> PreparedClaim:
        if ref.name == "wait":
            self.waiting.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.ended.set()
        if ref.name == "refused":
            raise Refusal(Reason.BAD_CONFIG, f"{ref}: no good.", permanent=True)
        if ref.name == "bug":
            raise LookupError("a fault of ours")
        return PreparedClaim(
            claim=ref,
            domain="d",
            clique="c",
            index=0,
            devices=(DeviceRef(request="channel", pool="n", device="channel-0"),),
            injected=ref.name != "no-fabric",
            completed=True,
        )

    async def unprepare(self, ref: ClaimRef) -> None:
        if ref.name == "refused":
            raise StateError("the disk is full.")
        self.unprepared.append(ref.uid)


async def call(path: Path, version: str, verb: str, *names: str, timeout: float | None = 10) -> Any:
    messages = VERSIONS[version]
    channel = Channel(path=str(path))
    try:
        method: UnaryUnaryMethod[Any, Any] = UnaryUnaryMethod(
            channel,
            f"/k8s.io.kubelet.pkg.apis.dra.{version}.DRAPlugin/Node{verb}Resources",
            getattr(messages, f"Node{verb}ResourcesRequest"),
            getattr(messages, f"Node{verb}ResourcesResponse"),
        )
        claims = [messages.Claim(namespace="team", name=name, uid=f"uid-{name}") for name in names]
        return await method(getattr(messages, f"Node{verb}ResourcesRequest")(claims=claims), timeout=timeout)
    finally:
        channel.close()


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_answer_names_every_claim_whatever_happens_to_it(folder: Path, version: str) -> None:
    registry = Registry()
    async with listen(folder / "dra.sock", dra_services(Claims(), Metrics(registry, node="n"))):
        answer = await call(folder / "dra.sock", version, "Prepare", "good", "no-fabric", "refused", "bug")
    found = {uid: answer.claims[uid] for uid in answer.claims}
    assert set(found) == {"uid-good", "uid-no-fabric", "uid-refused", "uid-bug"}
    [device] = found["uid-good"].devices
    assert (list(device.request_names), device.pool_name, device.device_name) == (["channel"], "n", "channel-0")
    assert list(device.cdi_device_ids) == ["k8s.compute-domain.nvidia.com/claim=uid-good-channel-0"]
    assert list(found["uid-no-fabric"].devices[0].cdi_device_ids) == []
    assert found["uid-refused"].error == "ResourceClaim team/refused: no good."
    assert "fault in the agent: LookupError: a fault of ours" in found["uid-bug"].error
    text = registry.render()
    assert 'nvidia_dra_node_prepare_errors_total{driver="compute-domain.nvidia.com",error_type="BadConfig"} 1.0' in text
    assert 'nvidia_dra_requests_total{driver="compute-domain.nvidia.com",operation="prepare"} 0.0' in text


@pytest.mark.parametrize("version", VERSIONS)
async def test_unprepare_answers_for_every_claim(folder: Path, version: str) -> None:
    claims = Claims()
    async with listen(folder / "dra.sock", dra_services(claims, Metrics(Registry(), node="n"))):
        answer = await call(folder / "dra.sock", version, "Unprepare", "good", "refused")
    assert {uid: answer.claims[uid].error for uid in answer.claims} == {
        "uid-good": "",
        "uid-refused": "the disk is full.",
    }
    assert claims.unprepared == ["uid-good"]


async def test_an_empty_request_is_answered_emptily(folder: Path) -> None:
    async with listen(folder / "dra.sock", dra_services(Claims(), Metrics(Registry(), node="n"))):
        answer = await call(folder / "dra.sock", "v1", "Prepare")
    assert not answer.claims


async def test_a_call_that_kubelet_gives_up_ends_the_waiting(folder: Path) -> None:
    claims = Claims()
    async with listen(folder / "dra.sock", dra_services(claims, Metrics(Registry(), node="n"))):
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(call(folder / "dra.sock", "v1", "Prepare", "wait", timeout=None))
            async with asyncio.timeout(10):
                await claims.waiting.wait()
            waiting.cancel()
        async with asyncio.timeout(10):
            await claims.ended.wait()


async def test_a_deadline_of_kubelet_ends_the_waiting(folder: Path) -> None:
    claims = Claims()
    async with listen(folder / "dra.sock", dra_services(claims, Metrics(Registry(), node="n"))):
        with pytest.raises((GRPCError, TimeoutError)):
            await call(folder / "dra.sock", "v1", "Prepare", "wait", timeout=0.2)
        async with asyncio.timeout(10):
            await claims.ended.wait()


async def test_a_stop_ends_calls_in_progress_and_removes_the_socket(folder: Path) -> None:
    claims = Claims()
    path = folder / "dra.sock"

    async def give_up() -> None:
        with pytest.raises((GRPCError, StreamTerminatedError, OSError)):
            await call(path, "v1", "Prepare", "wait", timeout=10)

    async with asyncio.TaskGroup() as group:
        async with listen(path, dra_services(claims, Metrics(Registry(), node="n"))):
            group.create_task(give_up())
            async with asyncio.timeout(10):
                await claims.waiting.wait()
        assert claims.ended.is_set()
    assert not path.exists()


async def register(path: Path, *, registered: bool = True, error: str = "") -> registration_pb2.PluginInfo:
    info = await ask(
        path,
        "/pluginregistration.Registration/GetInfo",
        registration_pb2.InfoRequest(),
        response=registration_pb2.PluginInfo,
        timeout=5,
    )
    status = registration_pb2.RegistrationStatus(plugin_registered=registered, error=error)
    answer = await ask(
        path,
        "/pluginregistration.Registration/NotifyRegistrationStatus",
        status,
        response=registration_pb2.RegistrationStatusResponse,
        timeout=5,
    )
    assert answer is not None
    assert isinstance(info, registration_pb2.PluginInfo)
    return info


async def test_kubelet_is_told_who_we_are_and_we_remember_what_it_said(folder: Path) -> None:
    registration = Registration(folder / "dra.sock", on_status=lambda: None)
    problems = [registration.problem]
    async with listen(folder / "reg.sock", [registration.service]):
        info = await register(folder / "reg.sock", registered=False, error="no such version")
        problems.append(registration.problem)
        await register(folder / "reg.sock")
        problems.append(registration.problem)
    assert problems == [
        "kubelet has not registered this plugin yet",
        "kubelet refused this plugin: no such version",
        None,
    ]
    assert (info.type, info.name, info.endpoint) == ("DRAPlugin", DRIVER, str(folder / "dra.sock"))
    assert list(info.supported_versions) == ["v1.DRAPlugin", "v1beta1.DRAPlugin"]


async def test_a_socket_file_that_nobody_listens_on_is_replaced(folder: Path) -> None:
    path = folder / "reg.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    async with listen(path, [Registration(path, on_status=lambda: None).service]):
        await register(path)


async def test_a_file_that_is_no_socket_is_not_touched(folder: Path) -> None:
    path = folder / "reg.sock"
    path.write_text("precious")
    with pytest.raises(StateError, match="is no socket"):
        async with listen(path, []):
            raise AssertionError
    assert path.read_text() == "precious"


async def test_a_path_too_long_for_a_socket_is_said(folder: Path) -> None:
    path = folder / ("x" * 110) / "reg.sock"
    with pytest.raises(StateError, match="107"):
        async with listen(path, []):
            raise AssertionError


async def test_a_socket_that_another_took_over_is_left_alone(folder: Path) -> None:
    path = folder / "reg.sock"
    async with listen(path, [Registration(path, on_status=lambda: None).service]):
        path.unlink()
        path.write_text("another's")
    assert path.read_text() == "another's"


async def test_a_driver_that_answers_to_our_name_is_a_rival_under_any_file_name(folder: Path) -> None:
    registration = Registration(folder / "its.sock", on_status=lambda: None)
    async with listen(folder / "some-uid-reg.sock", [registration.service]):
        with pytest.raises(RivalDriver, match=r"some-uid-reg\.sock \(its endpoint is .*its\.sock\)"):
            await refuse_rivals(folder, home=folder)


async def test_an_agent_of_another_pod_is_no_rival_and_one_with_other_folders_is(folder: Path) -> None:
    registration = Registration(folder / "dra-0123abcd.sock", on_status=lambda: None)
    async with listen(folder / "reg.sock", [registration.service]):
        await refuse_rivals(folder, home=folder)
        with pytest.raises(RivalDriver, match=r"dra-0123abcd\.sock"):
            await refuse_rivals(folder, home=folder / "other")


async def test_dead_sockets_other_drivers_and_files_are_no_rivals(folder: Path) -> None:
    (folder / "file.sock").write_text("")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(folder / "dead.sock"))
    await refuse_rivals(folder, home=folder)
    await refuse_rivals(folder / "not-there", home=folder)


async def test_sockets_of_agents_that_died_are_removed_and_no_others(folder: Path) -> None:
    names = ("dra-0123abcd.sock", f"{DRIVER}-0123abcd-reg.sock", "other.sock")
    for name in names:
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(folder / name))
    (folder / "dra-file.sock").write_text("precious")
    async with listen(folder / "dra-alive.sock", []):
        remove_dead((folder, folder / "not-there"))
        assert {path.name for path in folder.iterdir()} == {"other.sock", "dra-file.sock", "dra-alive.sock"}
