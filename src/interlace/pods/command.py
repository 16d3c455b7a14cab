"""The command of a GPU container behind a line of shell that prepares its environment.

Kubernetes cannot put a folder in front of a variable that the image sets, and cannot source a file; a shell in front
of the command can. The shape is fixed, so that it is recognised again: ``SHELL -c SCRIPT interlace COMMAND…``;
``args`` stay what they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from interlace.pods.draft import Container, Draft, words
from interlace.pods.errors import InjectError

_MARK: Final = "interlace"
_EXEC: Final = 'exec "$@"'
_SSH_SERVER: Final = re.compile(r"\bsshd\b|\bservice ssh\b|\bsystemctl \w+ ssh\b")
_HANDED_ON: Final = ("SetEnv", "PermitUserEnvironment", ".ssh/environment", "/etc/environment", "/etc/profile", " -x ")


def prepare(draft: Draft, container: Container, *, library_path: Sequence[str], source: str, reason: str) -> bool:
    """Put the shell in front of the command; False if the container leaves its command to the image.

    ``library_path``: folders to put first on ``LD_LIBRARY_PATH``; ``source``: a file to source before, or empty.
    Raises InjectError if another such line is there.
    """
    path = f"{container.path}.command"
    command = words(container.fields, "command", path)
    if not command:
        return False
    if source and does_so_itself(container, source):
        source = ""
    if library_path and does_so_itself(container, f"LD_LIBRARY_PATH={library_path[0]}"):
        library_path = ()
    shell, script = _script(library_path, source)
    if is_prepared(command):
        if command[2] != script:
            raise InjectError(
                path, command[2], f"it was prepared otherwise, and is to be {script}", "undo the earlier injection"
            )
    elif library_path or source:
        container.fields["command"] = [shell, "-c", script, _MARK, *command]
        draft.completed(path, script, reason)
    return True


def is_prepared(command: Sequence[str]) -> bool:
    """Whether a command has the shell in front."""
    return len(command) > 4 and command[1] == "-c" and command[3] == _MARK and command[2].endswith(_EXEC)


def does_so_itself(container: Container, what: str) -> bool:
    """Whether the user's own command or arguments contain it; a file counts by its name."""
    command = words(container.fields, "command", f"{container.path}.command")
    own = command[4:] if is_prepared(command) else command
    texts = own + words(container.fields, "args", f"{container.path}.args")
    wanted = what if "=" in what else what.rpartition("/")[2]
    return any(wanted in text.replace('"', "") for text in texts)


def hides_environment(container: Container) -> bool:
    """Whether the container starts an SSH server that keeps its settings from those who log in."""
    command = words(container.fields, "command", f"{container.path}.command")
    text = " ".join(command + words(container.fields, "args", f"{container.path}.args"))
    return _SSH_SERVER.search(text) is not None and not any(way in text for way in _HANDED_ON)


def _script(library_path: Sequence[str], source: str) -> tuple[str, str]:
    lines = [f". {source}"] if source else []
    if library_path:
        folders = ":".join(library_path)
        lines.append(f'export LD_LIBRARY_PATH="{folders}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"')
    return ("/bin/bash" if source else "/bin/sh"), "; ".join([*lines, _EXEC])
