"""``interlace completion SHELL``: the script that a shell sources."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for SHELL; `source <(interlace completion bash)` uses it."""
    from interlace.cli.main import main

    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"click knows no completion for {shell}")
    click.echo(found(main, {}, "interlace", "_INTERLACE_COMPLETE").source())
