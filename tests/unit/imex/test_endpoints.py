from __future__ import annotations

import asyncio
import os
import signal
import sys

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from interlace.imex.control import HostLink
from interlace.imex.endpoints import LONGEST_REQUEST, Endpoints, render
from tests.unit.imex.support import settings_for, short_folder, until


def endpoints(*, why: str | None = None) -> Endpoints:
    return Endpoints(host="127.0.0.1", port=0, ready=lambda: why, metrics=lambda: render([("a", "gauge", "A.", {}, 1)]))


async def get(port: int, path: str) -> tuple[int, str]:
    timeout = aiohttp.ClientTimeout(total=20)
    url = f"http://127.0.0.1:{port}{path}"
    async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as answer:
        return answer.status, await answer.text()


async def test_a_ready_host_answers_all_three() -> None:
    async with endpoints() as served:
        assert await get(served.port, "/healthz") == (200, "ok\n")
        assert await get(served.port, "/readyz?verbose") == (200, "ok\n")
        assert (await get(served.port, "/metrics"))[1].endswith("a 1\n")
        assert (await get(served.port, "/"))[0] == 404


async def test_a_host_that_is_not_ready_says_why() -> None:
    async with endpoints(why="ImexInUse: taken") as served:
        assert await get(served.port, "/readyz") == (503, "ImexInUse: taken\n")
        assert (await get(served.port, "/healthz"))[0] == 200


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"POST /healthz HTTP/1.1\r\n\r\n", b"405"),
        (b"\x16\x03\x01 tls\r\n\r\n", b"400"),
        (b"GET /" + b"x" * (2 * LONGEST_REQUEST), b"400"),
    ],
    ids=["post", "no http", "too long"],
)
async def test_anything_else_gets_one_answer_and_the_end(request_: bytes, status: bytes) -> None:
    async with endpoints() as served, asyncio.timeout(20):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(request_)
        answer = await reader.readline()
        assert status in answer.split()
        writer.close()


def test_labels_are_escaped_so_that_prometheus_reads_them() -> None:
    text = render([("m", "gauge", "M.", {"why": 'a "b"\n\\c'}, 2.5), ("m", "gauge", "M.", {"why": "d"}, 1)])
    (family,) = text_string_to_metric_families(text)
    assert [(sample.labels["why"], sample.value) for sample in family.samples] == [('a "b"\n\\c', 2.5), ("d", 1.0)]
    assert text.count("# TYPE") == 1


async def test_the_idle_program_serves_its_endpoints_within_30_mb() -> None:
    with short_folder() as folder:
        settings = settings_for(folder, "127.0.0.1")
        program = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "interlace.imex",
            f"--imex-socket={settings.socket}",
            f"--imex-run-dir={settings.run_dir}",
            f"--container-driver-root={folder}",
            f"--hosts-path={settings.hosts_file}",
            "--pod-ip=127.0.0.1",
            "--healthcheck-port=0",
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        assert program.stdout is not None
        try:
            async with asyncio.timeout(30):
                while b"health endpoints on port" not in (line := await program.stdout.readline()):
                    assert line, "the program ended"
            port = int(line.rsplit(b" ", 1)[1])
            assert (await get(port, "/readyz"))[0] == 200
            metrics = (await get(port, "/metrics"))[1]
            assert 'interlace_imex_phase{phase="Idle"} 1' in metrics
            async with asyncio.TaskGroup() as group:
                link = HostLink(settings.socket)
                task = group.create_task(link.run())
                await until(lambda: link.state is not None, what="the host answers")
                task.cancel()
            with open(f"/proc/{program.pid}/status", encoding="ascii") as status:  # noqa: PTH123
                resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
            assert resident < 30 * 1024
        finally:
            program.send_signal(signal.SIGTERM)
            await program.communicate()
        assert program.returncode == 0
