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
