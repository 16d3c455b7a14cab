from __future__ import annotations

import asyncio
import os
import sys

import pytest


@pytest.mark.parametrize("component", ["agent", "controller", "imex-host", "webhook"])
async def test_arguments_and_status_of_a_component_are_those_of_the_command(component: str) -> None:
    command = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "interlace.cli.main",
        "serve",
        component,
        "--colour=7",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, err = await command.communicate()
    assert (command.returncode, out) == (2, b"")
    assert b"--colour" in err
    assert b"Traceback" not in err


async def test_a_webhook_without_what_it_needs_says_what_to_install() -> None:
    without = (
        "import runpy, sys; sys.modules['cryptography'] = None; runpy.run_module('interlace.pods', run_name='__main__')"
    )
    command = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", without),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, err = await command.communicate()
    assert (command.returncode, out) == (2, b"")
    assert err.count(b"\n") == 1
    assert b"cryptography, which is not installed; pip install 'interlace[webhook]' gets it" in err
