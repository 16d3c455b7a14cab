"""Plugin registration over real sockets."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from grpclib.client import Channel
from grpclib.const import Cardinality, Handler
from grpclib.protocol import Connection
from grpclib.server import Server, Stream
from h2.connection import H2Connection

from interlace.node.proto import registration_pb2
from interlace.node.rpc import ask
from interlace.sim.kubelet.dra import Claim, PluginError, Plugins


class Registrar:
    """Answers for a plugin and counts how often it was told of its registration."""

    def __init__(self, endpoint: Path) -> None:
        self.told = 0
        self._endpoint = str(endpoint)

    async def _info(self, stream: Stream[Any, Any]) -> None:
        await stream.recv_message()
        await stream.send_message(
            registration_pb2.PluginInfo(
                type="DRAPlugin", name="d", endpoint=self._endpoint, supported_versions=["v1.DRAPlugin"]
            )
        )

    async def _notify(self, stream: Stream[Any, Any]) -> None:
        status = await stream.recv_message()
        assert status is not None
        assert status.plugin_registered
        self.told += 1
        await stream.send_message(registration_pb2.RegistrationStatusResponse())

    def __mapping__(self) -> dict[str, Handler]:
        unary, pb = Cardinality.UNARY_UNARY, registration_pb2
        service = "/pluginregistration.Registration"
        return {
            f"{service}/GetInfo": Handler(self._info, unary, pb.InfoRequest, pb.PluginInfo),
            f"{service}/NotifyRegistrationStatus": Handler(
                self._notify, unary, pb.RegistrationStatus, pb.RegistrationStatusResponse
            ),
        }


async def _serve(registrar: Registrar, path: Path) -> Server:
    server = Server([registrar])
    await server.start(path=str(path))
    return server


async def test_a_plugin_that_came_back_between_two_looks_is_registered_again(tmp_path: Path) -> None:
    path = tmp_path / "d-reg.sock"
    plugins = Plugins(tmp_path)
    old = Registrar(path)
    server = await _serve(old, path)
    await plugins.scan()
    await plugins.scan()
    assert (old.told, plugins.names()) == (1, ["d"])
    server.close()
    await server.wait_closed()
    path.unlink(missing_ok=True)  # ext4 gives its number to the next file at once
    new = Registrar(path)
    server = await _serve(new, path)
    await plugins.scan()
    assert new.told == 1
    path.unlink()
    await plugins.scan()
    assert plugins.names() == []
    server.close()
    await server.wait_closed()


async def test_a_plugin_that_comes_or_goes_after_a_long_rest_is_seen(tmp_path: Path) -> None:
    plugins, first, second = Plugins(tmp_path), Registrar(tmp_path / "a.sock"), Registrar(tmp_path / "b.sock")
    one = await _serve(first, tmp_path / "a-reg.sock")
    await plugins.scan()
    os.utime(tmp_path, (0, 0))
    for _ in range(3):
        await plugins.scan()
    other = await _serve(second, tmp_path / "b-reg.sock")
    await plugins.scan()
    assert (first.told, second.told) == (1, 1)
    one.close()
    await one.wait_closed()
    other.close()
    await other.wait_closed()
    for path in tmp_path.glob("*.sock"):
        path.unlink()
    os.utime(tmp_path, (0, 0))
    await plugins.scan()
    assert plugins.names() == []


async def test_a_connection_that_closed_just_before_it_is_used_is_an_error_of_the_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins, path = Plugins(tmp_path), tmp_path / "d-reg.sock"
    server = await _serve(Registrar(path), path)
    await plugins.scan()
    closed = Connection.__new__(Connection)  # as its close() leaves it: without a transport
    closed._connection = H2Connection()

    async def choose(_channel: Channel) -> Any:
        return SimpleNamespace(processor=SimpleNamespace(connection=closed))

    monkeypatch.setattr(Channel, "__connect__", choose)
    with pytest.raises(PluginError, match=r"Prepare.* of DRA driver d failed: AttributeError: .*_transport"):
        await plugins.prepare("d", [Claim(namespace="n", name="c", uid="u")], deadline=5.0)
    assert await ask(path, "/any/method", registration_pb2.InfoRequest(), response=Any, timeout=5.0) is None
    monkeypatch.undo()
    path.unlink()
    await plugins.scan()
    server.close()
    await server.wait_closed()
