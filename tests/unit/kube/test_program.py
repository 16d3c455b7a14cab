"""Components as processes: the real signals, exit statuses and output."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

LIMIT = 30.0
HEAD = """
import asyncio, sys
from interlace.kube.errors import Unreachable
from interlace.kube.log import get_logger
from interlace.kube.program import run

class Own(Exception):
    pass
"""


@asynccontextmanager
async def program(folder: Path, text: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Python running ``text``, which has to call ``run``."""
    script = folder / "program.py"
    script.write_text(HEAD + textwrap.dedent(text))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        script,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(LIMIT):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_is_the_normal_end_after_cleaning_up(tmp_path: Path, number: signal.Signals) -> None:
    text = """
    async def main():
        try:
            print("runs", flush=True)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            print("cleaned up", flush=True)
    sys.exit(run(lambda argv, env: main(), []))
    """
    async with program(tmp_path, text) as process:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"runs\n"
        process.send_signal(number)
        out, err = await process.communicate()
    assert (process.returncode, out, err) == (0, b"cleaned up\n", b"")


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ("ValueError('colour 7')", 2),
        ("Unreachable('no server', url='u')", 4),
        ("Own('rival')", 4),
        ("OSError('disk')", 4),
    ],
)
async def test_what_can_be_corrected_is_one_sentence(tmp_path: Path, fault: str, status: int) -> None:
    place = "start" if status == 2 else "main"
    text = f"""
    async def main():
        async with asyncio.TaskGroup() as group:
            group.create_task(part("main"))
    async def part(name):
        fail(name)
    def fail(name):
        if name == {place!r}:
            raise {fault}
    def start(argv, env):
        fail("start")
        return main()
    sys.exit(run(start, [], failures=(Own,)))
    """
    async with program(tmp_path, text) as process:
        out, err = await process.communicate()
    assert (process.returncode, out) == (status, b"")
    assert err.startswith(b"interlace: ")
    assert err.count(b"\n") == 1


async def test_a_bug_shows_its_traceback(tmp_path: Path) -> None:
    text = """
    async def main():
        raise ValueError("not for the user")
    sys.exit(run(lambda argv, env: main(), []))
    """
    async with program(tmp_path, text) as process:
        _, err = await process.communicate()
    assert process.returncode == 1
    assert b"Traceback" in err


async def test_the_log_goes_to_stderr_as_json(tmp_path: Path) -> None:
    text = """
    async def main():
        get_logger("interlace.x").info("hello", key=1)
    sys.exit(run(lambda argv, env: main(), []))
    """
    async with program(tmp_path, text) as process:
        out, err = await process.communicate()
    assert (process.returncode, out) == (0, b"")
    assert b'"event":"hello","key":1' in err


@pytest.mark.parametrize("module", ["interlace.node", "interlace.domains", "interlace.imex"])
@pytest.mark.parametrize("env", [{}, {"LOG_LEVEL": "loud"}])
async def test_bad_settings_are_refused_without_a_traceback(module: str, env: dict[str, str]) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        *([] if env else ["--colour=7"]),
        env={**os.environ, **env, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(LIMIT):
        out, err = await process.communicate()
    assert (process.returncode, out) == (2, b"")
    assert (b"loud" if env else b"--colour") in err
    assert b"Traceback" not in err
