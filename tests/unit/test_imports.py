"""What a component loads decides what it takes on every node, so each list says what must stay out."""

from __future__ import annotations

import subprocess
import sys

import pytest

COMMAND_LINE = ("click", "rich", "yaml", "pynvml", "interlace.cli", "interlace.sim", "testbed")
"""For terminals, kubeconfig files, the child process that reads NVML, and simulation."""
SERVERS = ("aiohttp.web", "aiohttp.web_runner", "prometheus_client")
API = ("ssl", "aiohttp", "grpclib", "google.protobuf")
UNWANTED = {
    "interlace.node": (*COMMAND_LINE, *SERVERS, "interlace.domains", "interlace.imex.host"),
    "interlace.domains": (*COMMAND_LINE, *SERVERS, "grpclib", "google.protobuf", "interlace.node", "interlace.imex"),
    "interlace.imex": (*COMMAND_LINE, *SERVERS, *API, "interlace.node", "interlace.domains", "interlace.kube.client"),
}


def loaded_by(module: str) -> set[str]:
    """Names of the modules in a process that has imported ``module``, and has none of ``None``."""
    text = f"import sys, {module}; print(*(name for name, found in sys.modules.items() if found))"
    command = [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}; {text}"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return set(done.stdout.split())


@pytest.mark.parametrize("component", UNWANTED)
def test_a_component_loads_only_what_it_uses(component: str) -> None:
    loaded = loaded_by(f"{component}.__main__")
    assert f"{component}.__main__" in loaded
    assert loaded.isdisjoint(UNWANTED[component])


def test_the_list_would_find_what_is_loaded() -> None:
    assert not loaded_by("interlace.cli.serve").isdisjoint(COMMAND_LINE)


def test_help_loads_no_component() -> None:
    loaded = loaded_by("interlace.cli.main")
    assert loaded.isdisjoint({"asyncio", "aiohttp", "msgspec", "rich", "yaml"})
