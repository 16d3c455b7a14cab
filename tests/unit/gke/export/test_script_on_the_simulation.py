"""The commands of the gcloud script against the simulated cloud: asked for, made, and left alone the second time.

gcloud itself is not run: each command is read by the importer, whose requests are those that gcloud was recorded to
send, and sent as the script would, only where its question finds nothing.
"""

from __future__ import annotations

import shlex
from typing import Any

import aiohttp
import pytest

from interlace.gke import importing
from interlace.gke.bodies.requests import read
from interlace.gke.desired import desired
from interlace.gke.export.commands import commands
from interlace.gke.request import Request
from interlace.gke.resource import Resource
from interlace.sim.gke import GkeServer, serve_gke
from tests.unit.gke.spec.clusters import cluster, pool
from tests.waiting import eventually


class Script:
    """Runs the commands for resources one after the other."""

    def __init__(self, fake: GkeServer, session: aiohttp.ClientSession) -> None:
        self._fake = fake
        self._session = session
        self.made = 0

    async def run(self, resources: tuple[Resource, ...]) -> None:
        for resource in resources:
            command = commands(resource)[0]
            asked = read(resource.key, project=resource.project, version=resource.version)
            status, _ = await self._send(asked)
            if status == 200:
                continue
            assert status == 404
            requests, _ = importing.requests(shlex.join(command.run))
            for request in requests:
                await self._done(request)
            self.made += 1

    async def _done(self, request: Request) -> None:
        """Send, and wait until the operation has ended well."""
        status, operation = await self._send(request)
        assert status == 200, operation

        async def ended() -> bool:
            url = operation["selfLink"].partition(".googleapis.com")[2]
            path = url if request.service == "container" else url.replace("/compute/v1", f"/{_root(request)}", 1)
            found, state = await self._send(Request(service=request.service, method="GET", path=path))
            assert found == 200, state
            assert "error" not in state
            return bool(state["status"] == "DONE")

        await eventually(ended, within=30)

    async def _send(self, request: Request) -> tuple[int, Any]:
        async with self._session.request(
            request.method, f"{self._fake.url}{request.path}", params=request.query, json=request.body
        ) as answer:
            return answer.status, await answer.json()


def _root(request: Request) -> str:
    """``compute/v1`` or ``compute/beta``."""
    return "/".join(request.path.split("/")[1:3])


@pytest.mark.parametrize("family", ["a3-mega", "a3-ultra"])
async def test_everything_is_made_once_and_left_alone_when_it_runs_again(family: str) -> None:
    resources = desired(cluster(family, pools=[pool(placement={}, hostMaintenance="PERIODIC")]))
    async with serve_gke(project="my-project", latency=0.01) as fake, aiohttp.ClientSession() as session:
        first = Script(fake, session)
        await first.run(resources)
        assert first.made == len(resources)
        sent = len(fake.log)
        again = Script(fake, session)
        await again.run(resources)
        assert again.made == 0
        assert {entry.request.method for entry in list(fake.log)[sent:]} == {"GET"}
