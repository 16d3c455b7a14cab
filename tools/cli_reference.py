"""The reference of the command line: ``python -m tools.cli_reference [--check]``.

Written to docs/cli.md from the click tree, the exit codes and the structs of the JSON documents, so that it
cannot say something else than the code; ``--check`` fails if the file is not what the code says now.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from interlace.cli import domain_document
from interlace.cli.exits import Code
from interlace.cli.main import main as group
from interlace.domains import chain
from interlace.domains.settings import ControllerSettings
from interlace.node.settings import AgentSettings
from interlace.sim.demo import result

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "cli.md"
HEAD = """# Command line

Made from the code by `python -m tools.cli_reference`; `make check` compares.

`interlace` is also installed as `kubectl-interlace`, so that `kubectl interlace …` is the same command.
`source <(interlace completion bash)` completes verbs and options (zsh and fish likewise).

Answers go to stdout, progress and warnings to stderr. Colour and live pictures appear on a terminal only; `NO_COLOR` is
honoured. An error is one sentence on stderr: what, where, why, and what to do.

## Exit codes

| code | meaning |
| --- | --- |
"""
DOCUMENTS = (
    (
        "interlace demo --json",
        "One document at the end; with `--keep` as soon as the cluster is ready to be used.",
        (
            result.Result,
            result.Cost,
            result.Requests,
            result.Teardown,
        ),
    ),
    ("interlace domains list --json", "", (domain_document.Domains, domain_document.Summary)),
    ("interlace domains wait --json", "One `Summary`, when the domain is Ready.", ()),
    (
        "interlace domains watch --json",
        "One document a line: a `Summary` at each change, at last a `Deleted`.",
        (domain_document.Deleted,),
    ),
    (
        "interlace domains show --json, interlace domains explain --json",
        "",
        (
            domain_document.Document,
            domain_document.PodChain,
            chain.Link,
            domain_document.Told,
            domain_document.Unhealthy,
        ),
    ),
)
SETTINGS = {"interlace serve agent": AgentSettings, "interlace serve controller": ControllerSettings}
ENUMS = (chain.Step, chain.Health)


def commands(command: click.Command, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    """A command and all below it, in the order of their help."""
    yield command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from commands(below, click.Context(below, info_name=name, parent=context))


def section(command: click.Command, context: click.Context) -> str:
    """One command: usage, what it does, options."""
    usage = " ".join(command.collect_usage_pieces(context))
    path = context.command_path
    text = inspect.cleandoc(command.help or "").replace("\b\n", "")
    parts = [f"\n### {path}\n", f"\n```text\n{path} {usage}\n```\n", f"\n{_prose(text)}\n"]
    if isinstance(command, click.Group):
        names = command.list_commands(context)
        if command.invoke_without_command:
            parts.append(_table("option", options(command, context)))
        parts.append(f"\nVerbs: {', '.join(f'[{name}](#{path}-{name})'.replace(' ', '-') for name in names)}.\n")
        parts.append(_table("option of all verbs", shared(command, context)))
    else:
        parent = context.parent
        common = shared(parent.command, parent) if parent else []
        parts.append(_table("option", [row for row in options(command, context) if row not in common]))
        if parent and common:
            group_path = parent.command_path
            parts.append(f"\nAnd the options of all verbs of [{group_path}](#{group_path.replace(' ', '-')}).\n")
    if path in SETTINGS:
        parts.append(f"\n```text\n{_flags(SETTINGS[path])}\n```\n")
    return "".join(parts)


def options(command: click.Command, context: click.Context) -> list[str]:
    """A row for each option."""
    return [row for row in map(_option, command.get_params(context)) if row]


def shared(command: click.Command, context: click.Context) -> list[str]:
    """Rows of the options that all verbs of a group have, if there are several verbs."""
    if not isinstance(command, click.Group) or command is group:
        return []
    verbs = [options(below, at) for below, at in commands(command, context) if below is not command]
    return [row for row in verbs[0] if all(row in rows for rows in verbs[1:])] if len(verbs) > 1 else []


def _table(title: str, rows: list[str]) -> str:
    return f"\n| {title} | what it is |\n| --- | --- |\n{''.join(rows)}" if rows else ""


def _flags(settings: type) -> str:
    """What ``--help`` of a component prints, without the usage."""
    out = io.StringIO()
    os.environ["COLUMNS"] = "100"
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        settings.parse(["--help"], {})  # type: ignore[attr-defined]
    return out.getvalue().partition("options:\n")[2].rstrip()


def _prose(text: str) -> str:
    """Paragraphs; one whose lines are aligned stays as it is."""
    found = []
    for paragraph in text.split("\n\n"):
        lines = paragraph.splitlines()
        if any("  " in line.strip() for line in lines):
            found.append("```text\n" + "\n".join(lines) + "\n```")
        else:
            found.append(" ".join(lines))
    return "\n\n".join(found)


def _option(parameter: click.Parameter) -> str:
    if not isinstance(parameter, click.Option) or "--help" in parameter.opts or parameter.name == "version":
        return ""
    names = ", ".join(f"`{name}`" for name in parameter.opts)
    kind = ""
    if not parameter.is_flag:
        choices = parameter.type.choices if isinstance(parameter.type, click.Choice) else None
        kind = f" {' or '.join(choices)}" if choices else f" {parameter.metavar or parameter.type.name.upper()}"
    default = parameter.to_info_dict()["default"]
    given = f" Default: {default}." if parameter.show_default and not parameter.is_flag else ""
    return f"| {names}{kind} | {parameter.help or ''}{given} |\n"


def fields(struct: type) -> list[tuple[str, str, str]]:
    """Name, type and docstring of each field of its own."""
    found: list[tuple[str, str, str]] = []
    body: list[Any] = ast.parse(inspect.getsource(struct)).body[0].body  # type: ignore[attr-defined]
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign):
            told = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            found.append((ast.unparse(node.target), ast.unparse(node.annotation), " ".join(str(told).split())))
    return found


def documents() -> str:
    """The JSON documents."""
    parts = ["\n## JSON documents\n\nFields may be added; none changes its meaning. Times are in seconds.\n"]
    for title, text, structs in DOCUMENTS:
        parts.append(f"\n### {title}\n" + (f"\n{text}\n" if text else ""))
        for struct in structs:
            about = " ".join((struct.__doc__ or "").split("\n\n")[0].split()).replace("``", "`")
            parts.append(f"\n`{struct.__name__}`: {about}\n\n| field | type | |\n| --- | --- | --- |\n")
            parts += [
                f"| `{name}` | {kind.replace('|', 'or')} | {told.replace('``', '`')} |\n"
                for name, kind, told in fields(struct)
            ]
    for enum in ENUMS:
        parts.append(f"\n`{enum.__name__}` is one of {', '.join(f'`{member.value}`' for member in enum)}.\n")
    parts.append("\n`Condition` and `ComputeDomainNode` are those of the Kubernetes API.\n")
    return "".join(parts)


def render() -> str:
    """The whole page."""
    told = {name: " ".join(text.split()) for name, _, text in _members()}
    codes = "".join(f"| {code.value} | {told[code.name]} |\n" for code in Code)
    root = click.Context(group, info_name="interlace")
    sections = "".join(section(*each) for each in commands(group, root))
    return HEAD + codes + "\n## Verbs\n" + sections + documents()


def _members() -> Iterator[tuple[str, str, str]]:
    body: list[Any] = ast.parse(inspect.getsource(Code)).body[0].body  # type: ignore[attr-defined]
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.Assign):
            yield ast.unparse(node.targets[0]), ast.unparse(node.value), str(ast.literal_eval(after.value))


def main() -> int:
    """Entry point."""
    page = render()
    if "--check" in sys.argv[1:]:
        if not TARGET.exists() or TARGET.read_text() != page:
            print("docs/cli.md is not up to date; run: python -m tools.cli_reference", file=sys.stderr)
            return 1
        return 0
    TARGET.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
