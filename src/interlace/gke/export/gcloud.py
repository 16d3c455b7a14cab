"""A cluster as a shell script of gcloud commands that may be run again.

Invariant: what is there already is left as it is, so a script that was interrupted goes on where it was; it changes
and deletes nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from interlace.gke.export.commands import Command, commands
from interlace.gke.export.fields import Exported
from interlace.gke.resource import Resource

_HEAD = """\
#!/usr/bin/env bash
# {title}
# Written by interlace gke export. May be run again: what is there is left as it is, nothing is changed or deleted.
# The flags are those of gcloud 528. A change of the cluster file is for interlace gke plan, not for this script.
set -euo pipefail
export CLOUDSDK_CORE_DISABLE_PROMPTS=1
"""


def as_script(resources: Iterable[Resource], *, title: str) -> Exported:
    """The script. Raises Refused for what gcloud cannot say."""
    notes: list[str] = []
    parts = [_HEAD.format(title=title)]
    for resource in resources:
        for command in commands(resource):
            if command.note:
                notes.append(command.note)
            parts.append("".join(f"{line}\n" for line in _lines(command)))
    return Exported(text="\n".join(parts), notes=tuple(notes))


def _lines(command: Command) -> Iterator[str]:
    if command.note:
        yield f"# {command.note}."
    ask = shlex.join(command.ask)
    if command.expect:
        yield f"if ! {ask} | grep {shlex.quote(command.expect)} >/dev/null; then"
    else:
        yield f"if ! {ask} >/dev/null 2>&1; then"
    words = [shlex.quote(each) for each in command.run]
    flags = next(index for index, each in enumerate(words) if each.startswith("--"))
    lines = [" ".join(words[:flags]), *words[flags:]]
    for index, line in enumerate(lines):
        more = " \\" if index < len(lines) - 1 else ""
        yield f"{'  ' if index == 0 else '    '}{line}{more}"
    yield "fi"
