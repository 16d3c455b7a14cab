"""Forms of an NCCL environment: shell, dotenv, Kubernetes and JSON; and the plugin's answer to one. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from interlace.cli.exits import Code, Exit
from interlace.fabric.environment import Environment, Setting
from interlace.fabric.guest_config import Finding, GuestConfig

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)\Z")
_PATH = "LD_LIBRARY_PATH"
_WHY_PATH = "NCCL and its plugin on the node come before those of the image"


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """Of what an environment is."""

    family: str
    software: str
    profile: str


def render(found: Environment, *, what: Subject, form: Literal["sh", "dotenv", "k8s", "json"], explain: bool) -> str:
    """The environment in one of the forms, with a newline at the end."""
    if form == "json":
        return msgspec.json.encode(_document(found, what)).decode() + "\n"
    head = f"# NCCL environment of {what.family}, software {what.software}, profile {what.profile}"
    lines = {"sh": _sh, "dotenv": _dotenv, "k8s": _k8s}[form](found, explain)
    return "\n".join([head, *lines, *(_left_out(found) if explain else ())]) + "\n"


def plain(found: Environment) -> dict[str, str]:
    """Names and values, with the folders of the library path."""
    values = {setting.name: setting.value for setting in found.settings}
    return {_PATH: ":".join(found.library_path), **values} if found.library_path else values


def parse_dotenv(text: str, *, name: str) -> dict[str, str]:
    """Lines ``NAME=value``, with or without ``export`` and quotes; comments and empty lines are skipped.

    Raises Exit, which names the line.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.match(line)
        if match is None:
            raise Exit(Code.REFUSED, f"{name}: line {number} is not NAME=value: {line.strip()[:60]}")
        value = match.group(2).strip()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        found[match.group(1)] = value
    return found


def findings(found: tuple[Finding, ...], config: GuestConfig) -> str:
    """What the plugin would say, the worst first."""
    lines = [f"error: {finding.why}; the plugin ends the job" for finding in found if finding.ends]
    lines += [f"warning: {finding.why}; the job goes on" for finding in found if not finding.ends]
    enforced = sum(rule.policy in {"enforced", "required"} for rule in config.rules)
    lines.append(f"{enforced} settings are enforced, {sum(finding.ends for finding in found)} of them differ")
    if config.cpus:
        lines.append(f"not checked here: processes should be bound to CPUs {config.cpus}")
    return "\n".join(lines) + "\n"


def findings_document(found: tuple[Finding, ...], config: GuestConfig) -> str:
    """The same for programs."""
    return msgspec.json.encode({"findings": found, "rules": config.rules, "cpus": config.cpus}).decode() + "\n"


def _sh(found: Environment, explain: bool) -> Iterator[str]:  # noqa: FBT001  one of three alike
    if found.script:
        yield f"# the script {found.script} on the node sets the profile's values too"
    if found.library_path:
        yield from [f"# {_WHY_PATH}"] * explain
        yield f'export {_PATH}="{":".join(found.library_path)}${{{_PATH}:+:${_PATH}}}"'
    for setting in found.settings:
        yield from _comment(setting, explain=explain)
        yield f"export {setting.name}={shlex.quote(setting.value)}"


def _dotenv(found: Environment, explain: bool) -> Iterator[str]:  # noqa: FBT001  one of three alike
    if found.library_path:
        yield "# put the image's own folders behind these"
        yield f"{_PATH}={':'.join(found.library_path)}"
    for setting in found.settings:
        yield from _comment(setting, explain=explain)
        yield f"{setting.name}={setting.value}"


def _k8s(found: Environment, explain: bool) -> Iterator[str]:  # noqa: FBT001  one of three alike
    yield "env:"
    if found.library_path:
        yield "# replaces the image's value: Kubernetes cannot prepend to what an image sets"
        yield f"- name: {_PATH}"
        yield f"  value: {_quoted(':'.join(found.library_path))}"
    for setting in found.settings:
        yield from _comment(setting, explain=explain)
        yield f"- name: {setting.name}"
        yield f"  value: {_quoted(setting.value)}"


def _comment(setting: Setting, *, explain: bool) -> list[str]:
    if not explain:
        return []
    need = {"enforced": "enforced by the plugin", "required": "required", "recommended": "recommended"}
    return [f"# {need[setting.variable.need]}: {setting.variable.why}"]


def _left_out(found: Environment) -> Iterator[str]:
    for each in found.left_out:
        yield f"# left out: {each.name}{f'={each.value}' if each.value else ''}: {each.why}"


def _quoted(value: str) -> str:
    """A YAML string in double quotes, which JSON's are."""
    return msgspec.json.encode(value).decode()


def _document(found: Environment, what: Subject) -> dict[str, Any]:
    return {
        "family": what.family,
        "software": what.software,
        "profile": what.profile,
        "script": found.script,
        "libraryPath": found.library_path,
        "variables": [
            {
                "name": setting.name,
                "value": setting.value,
                "need": setting.variable.need,
                "why": setting.variable.why,
                "source": setting.variable.source,
            }
            for setting in found.settings
        ],
        "leftOut": [{"name": each.name, "value": each.value, "why": each.why} for each in found.left_out],
    }
