"""Entry point: a click group that imports a verb's module only when that verb is called.

Invariant: every end of a verb passes through ``Verbs.invoke``, so exit codes and the form of errors are
decided in one place.
"""

from __future__ import annotations

import importlib
from typing import Any, ClassVar

import click

from interlace import __version__
from interlace.cli.exits import Code, Exit


class Verbs(click.Group):
    """Verbs by name, with the line that ``--help`` shows, without importing them."""

    table: ClassVar[dict[str, tuple[str, str]]] = {
        "demo": ("interlace.cli.demo:demo", "Watch a domain form, heal, shrink and go, on simulated nodes."),
        "domains": ("interlace.cli.domains:domains", "See ComputeDomains and what they wait for."),
        "inject": ("interlace.cli.inject:inject", "Set up the Pods of manifests for the fabric of their nodes."),
        "families": ("interlace.cli.families:families", "See what is known about each hardware family."),
        "env": ("interlace.cli.env:env", "Print the NCCL environment of a family, or check one."),
        "gke": ("interlace.cli.gke:gke", "Make a GKE cluster for GPUDirect from one file, and keep it so."),
        "verify": ("interlace.cli.verify:verify", "Read and judge measurements with nccl-tests."),
        "manifests": (
            "interlace.cli.manifests:print_manifests",
            "Print the YAML that installs Interlace.",
        ),
        "sim": ("interlace.cli.sim:sim", "Serve a simulation of the Google APIs, to try things on."),
        "serve": ("interlace.cli.serve:serve", "Run a component (what the Pods of Interlace call)."),
        "completion": ("interlace.cli.completion:completion", "Print a shell completion script."),
    }

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        """Names in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the verb's module."""
        entry = self.table.get(cmd_name)
        if entry is None:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = entry[0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Call the verb; an Exit becomes its code and one sentence on stderr."""
        try:
            return super().invoke(ctx)
        except Exit as end:
            if end.message:
                click.echo(f"interlace: {end.message}", err=True)
            ctx.exit(end.code)
        except BrokenPipeError:  # click knows what to do when nobody reads
            raise
        except OSError as error:  # such as a full disk behind stdout
            click.echo(f"interlace: {error.strerror or error}", err=True)
            ctx.exit(Code.FAILED)
        except KeyboardInterrupt:  # while a verb was still being imported
            ctx.exit(Code.INTERRUPTED)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  click names it
        """The table of verbs."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, line) for name, (_, line) in self.table.items()])


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="interlace")
def main() -> None:
    """The fastest GPU-to-GPU path for every multi-node job on Kubernetes, formed and proven.

    \b
    interlace demo                    see it work, on simulated nodes
    interlace manifests               what to install in a cluster
    interlace domains explain NAME    why a job does not have its channel

    Also as `kubectl interlace`. Exit codes: 0 good, 1 the answer is bad, 2 refused, 3 cannot tell,
    4 failed, 130 interrupted.
    """  # noqa: D301  click wants the control character


if __name__ == "__main__":
    main()
