from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import click
import pytest
from click.testing import CliRunner

from interlace import __version__
from interlace.cli.exits import Code, Exit
from interlace.cli.main import Verbs, main
from tests.unit.cli.programs import interlace

HEAVY = {"aiohttp", "rich", "msgspec", "yaml", "asyncio", "grpclib", "google", "prometheus_client"}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["completion", "bash"]])
def test_what_must_be_quick_imports_nothing_heavy(arguments: list[str]) -> None:
    program = (
        "import sys\n"
        "from interlace.cli.main import main\n"
        f"main({arguments!r}, standalone_mode=False)\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env, check=True)
    loaded = {name.partition(".")[0] for name in run.stderr.split()}
    assert run.stdout
    assert "interlace" in loaded
    assert not loaded & HEAVY


def test_help_names_every_verb_and_each_verb_is_there() -> None:
    told = CliRunner().invoke(main, ["--help"])
    assert told.exit_code == 0
    for name in main.list_commands(click.Context(main)):
        assert f"\n  {name} " in told.output
        verb = CliRunner().invoke(main, [name, "--help"])
        assert verb.exit_code == 0, verb.output
        assert verb.output.startswith("Usage: ")


def test_the_version_is_that_of_the_package() -> None:
    assert CliRunner().invoke(main, ["--version"]).output == f"interlace, version {__version__}\n"


def test_a_verb_that_does_not_exist_is_refused() -> None:
    told = CliRunner().invoke(main, ["fly"])
    assert (told.exit_code, told.stdout) == (2, "")
    assert "'fly'" in told.stderr


@pytest.mark.parametrize("code", [Code.GOOD, Code.BAD, Code.REFUSED, Code.UNKNOWN, Code.FAILED, Code.INTERRUPTED])
def test_an_exit_becomes_its_code_and_one_line(code: Code) -> None:
    group = Verbs("interlace")

    @group.command()
    def verb() -> NoReturn:
        raise Exit(code, "the kettle is empty; fill it")

    told = CliRunner().invoke(group, ["verb"])
    assert (told.exit_code, told.stdout, told.stderr) == (code, "", "interlace: the kettle is empty; fill it\n")


def test_an_interrupt_before_the_verb_runs_ends_with_130() -> None:
    group = Verbs("interlace")

    @group.command()
    def verb() -> NoReturn:
        raise KeyboardInterrupt

    told = CliRunner().invoke(group, ["verb"])
    assert (told.exit_code, told.output) == (130, "")


async def test_kubectl_finds_the_command_as_a_plugin(tmp_path: Path) -> None:
    folder = Path(sys.executable).parent
    assert os.access(folder / "kubectl-interlace", os.X_OK)
    run = subprocess.run([folder / "kubectl-interlace", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout == (await interlace("--version")).out


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("interlace domains w", {"wait", "watch"}),
        ("interlace demo --server re", {"real"}),
        ("interlace man", {"manifests"}),
        ("interlace manifests --im", {"--image"}),
    ],
)
def test_bash_completes_verbs_options_and_choices(words: str, offered: set[str]) -> None:
    split = words.split()
    script = (
        'source <(interlace completion bash)\nCOMP_WORDS=("${@}")\nCOMP_CWORD=$(($# - 1))\n'
        '_interlace_completion interlace\necho "${COMPREPLY[@]}"\n'
    )
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    run = subprocess.run(["bash", "-c", script, "bash", *split], capture_output=True, text=True, env=env, check=True)
    assert set(run.stdout.split()) == offered


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--namespace", "Bad NS"], "'Bad NS' is not the name of a namespace"),
        (["--image", "a b"], "'a b' is not the name of an image"),
        (["--driver-root", "usr"], "'usr' is not an absolute path"),
        (["--replicas", "0"], "0 is not in the range"),
    ],
)
def test_manifests_that_no_cluster_would_take_are_refused(arguments: list[str], says: str) -> None:
    told = CliRunner().invoke(main, ["manifests", *arguments])
    assert (told.exit_code, told.stdout) == (2, "")
    assert says in told.stderr
