from __future__ import annotations

import asyncio
import json
import signal
import sys

import aiohttp

from interlace.imex.control import HostLink
from tests.unit.imex.support import settings_for, short_folder, until


async def get(port: int, path: str) -> tuple[int, str]:
    timeout = aiohttp.ClientTimeout(total=20)
    url = f"http://127.0.0.1:{port}{path}"
    async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as answer:
        return answer.status, await answer.text()


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
            stderr=asyncio.subprocess.PIPE,
        )
        assert program.stderr is not None
        try:
            async with asyncio.timeout(30):
                while b"health endpoints on port" not in (line := await program.stderr.readline()):
                    assert line, "the program ended"
            port = int(json.loads(line)["event"].rsplit(" ", 1)[1])
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
