"""Control planes as fixtures: the embedded one, the real one, or a test run on both.

A plane belongs to a test module, and so does the event loop: tests that use one run in their module's
loop. A plane that cannot start is an error, never a skipped test.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import pytest
import pytest_asyncio

from interlace.sim.plane import Plane
from testbed.flags import Settings
from testbed.plane import ControlPlane

PLANES = frozenset({"plane", "embedded_plane", "real_plane"})
"""Names of the fixtures below."""

FAST = Settings(client_qps=500)
"""Controllers start in half a second instead of five; tests that measure platform latency use ``Settings()``."""


def embedded(factory: pytest.TempPathFactory) -> AbstractAsyncContextManager[Plane]:
    """A fresh embedded API server."""
    from interlace.sim.apiserver import ApiServer

    return ApiServer(state_dir=factory.mktemp("embedded"))


def real(factory: pytest.TempPathFactory) -> AbstractAsyncContextManager[ControlPlane]:
    """A fresh real control plane."""
    return ControlPlane(state_dir=factory.mktemp("real"), settings=FAST)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["embedded", "real"])
async def plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Plane]:
    """Each test runs twice: on the embedded server and on the real one."""
    starting = {"embedded": embedded, "real": real}[request.param](tmp_path_factory)
    async with starting as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def embedded_plane(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Plane]:
    """The embedded API server alone."""
    async with embedded(tmp_path_factory) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def real_plane(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ControlPlane]:
    """etcd, kube-apiserver, kube-scheduler and kube-controller-manager."""
    async with real(tmp_path_factory) as running:
        yield running
