"""``interlace sim gke`` as a person calls it."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from click.testing import CliRunner

from interlace.cli.main import main
from interlace.sim.gke.faults import Kind
from tests.unit.sim.gke.cloud import GLOBAL, ZONE


@asynccontextmanager
async def serving(*options: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """The program, and the first line that it wrote."""
    arguments = [sys.executable, "-m", "interlace.cli.main", "sim", "gke", "--port", "0", "--seconds", "0", *options]
    process = await asyncio.create_subprocess_exec(*arguments, stdout=PIPE, stderr=PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            line = await process.stdout.readline()
            yield process, line.decode()
            if process.returncode is None:
                process.send_signal(signal.SIGINT)
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_it_serves_until_it_is_interrupted_and_says_that_it_is_simulated() -> None:
    faults = ["--fault", "unavailable@POST .*/networks$", "--reservation", "us-central1-a/mine=a3-megagpu-8g:2"]
    denied = ["--deny", "compute.firewalls.list"]
    async with serving("--json", *faults, *denied, "--project", "my-project", "--verbose") as (process, line):
        said = json.loads(line)
        assert (said["project"], said["simulated"]) == ("my-project", True)
        timeout = aiohttp.ClientTimeout(total=20)
        async with aiohttp.ClientSession(base_url=said["url"], timeout=timeout) as session:
            networks = GLOBAL.replace("example-project", "my-project") + "/networks"
            async with session.post(networks, json={"name": "net"}) as answer:
                assert (answer.status, answer.headers["x-interlace-simulated"]) == (503, "true")
            reservations = ZONE.replace("example-project", "my-project") + "/reservations"
            async with session.get(reservations) as answer:
                assert [each["name"] for each in (await answer.json())["items"]] == ["mine"]
            rules = networks.replace("networks", "firewalls")
            async with session.get(rules) as answer:
                assert answer.status == 403
        process.send_signal(signal.SIGINT)
        _, errors = await process.communicate()
    assert process.returncode == 130
    said = [f"POST {networks} 503", f"GET {reservations} 200", f"GET {rules} 403"]
    assert errors.decode().splitlines() == said


async def test_the_first_line_is_for_people_and_a_port_in_use_is_said_in_one_sentence() -> None:
    async with serving() as (_, line):
        start = "Simulated Google APIs for project example-project at http://127.0.0.1:"
        assert line.startswith(start)
        assert line.endswith("; nothing of this is Google Cloud.\n")
        port = line.removeprefix(start).partition(";")[0]
        arguments = [sys.executable, "-m", "interlace.cli.main", "sim", "gke", "--port", port]
        async with asyncio.timeout(60):
            second = await asyncio.create_subprocess_exec(*arguments, stdout=PIPE, stderr=PIPE)
            printed, errors = await second.communicate()
    assert (second.returncode, printed) == (4, b"")
    assert len(errors.splitlines()) == 1
    assert b"in use" in errors


def test_every_fault_is_listed_with_its_meaning() -> None:
    result = CliRunner().invoke(main, ["sim", "gke", "--faults"])
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.output.splitlines()] == [kind.value for kind in Kind]
    assert all(len(line.split()) > 2 for line in result.output.splitlines())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--fault", "flood"], "known are unauthenticated"),
        (["--fault", "stuck@["], "no regular expression"),
        (["--quota", "NETWORKS"], "METRIC=LIMIT"),
        (["--quota", "NETWORK=1"], "known are"),
        (["--reservation", "here"], "ZONE/NAME=TYPE:COUNT"),
        (["--reservation", "us-central1-f/r=a3-megagpu-8g:2"], "does not exist in zone 'us-central1-f'"),
        (["--seconds", "1", "--lifelike"], "exclude each other"),
    ],
)
def test_bad_options_are_refused(options: list[str], said: str) -> None:
    result = CliRunner().invoke(main, ["sim", "gke", "--port", "0", *options])
    assert result.exit_code == 2
    assert said in result.output
