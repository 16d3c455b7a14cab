from __future__ import annotations

from pathlib import Path

import click
import pytest

from interlace.cli.domain_document import Document, Summary
from interlace.cli.main import main as group
from interlace.imex.host import HostSettings
from interlace.imex.host import SettingsError as HostError
from tools import cli_reference


def test_the_reference_names_every_command_option_and_field() -> None:
    page = cli_reference.render()
    for command, context in cli_reference.commands(group, click.Context(group, info_name="interlace")):
        assert f"\n### {context.command_path}\n" in page
        for parameter in command.get_params(context):
            skipped = isinstance(parameter, click.Argument) or {"--help", "--version"} & set(parameter.opts)
            assert skipped or all(f"`{name}`" in page for name in parameter.opts)
    for field in (*Summary.__struct_fields__, *Document.__struct_fields__):
        assert f"| `{field}` |" in page


def test_a_page_that_is_behind_the_code_is_noticed_and_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli_reference, "TARGET", tmp_path / "cli.md")
    monkeypatch.setattr("sys.argv", ["cli_reference", "--check"])
    assert cli_reference.main() == 1
    assert "run: python -m tools.cli_reference" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", ["cli_reference"])
    assert cli_reference.main() == 0
    monkeypatch.setattr("sys.argv", ["cli_reference", "--check"])
    assert cli_reference.main() == 0


def test_the_help_of_imex_host_lists_the_flags_that_it_takes() -> None:
    with pytest.raises(HostError) as told:
        HostSettings.parse(["--nothing"], {})
    known = str(told.value).partition("known are ")[2].split(", ")
    page = cli_reference.render()
    assert known
    assert all(f"  {flag} " in page for flag in known)
