"""The NCCL environment of a Pod: a profile with the names of its interfaces filled in. Pure.

Invariant: names of interfaces come from the caller, who knows the Network objects; nothing here assumes ``eth1``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from interlace.fabric.family import Family, LeftOut, SoftwareTuple, Variable

_PLACE: Final = re.compile(r"\{(control|data|lib)(?:\[(\d+)\])?\}")


class Interfaces(msgspec.Struct, frozen=True, kw_only=True):
    """Names in the Pod: ``control`` for bootstrap, ``data`` for traffic of GPUs in the order of the NICs."""

    control: str = "eth0"
    data: tuple[str, ...] = ()


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """A variable with its final value."""

    name: str
    value: str
    variable: Variable


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """All that a GPU container's environment needs, and what it does without."""

    library_path: tuple[str, ...]
    """Folders that go before those of the image on ``LD_LIBRARY_PATH``."""
    settings: tuple[Setting, ...]
    left_out: tuple[LeftOut, ...]
    script: str
    """The file that sets the profile's values when sourced; empty: there is none."""


def environment(family: Family, *, software: SoftwareTuple, profile: str, interfaces: Interfaces) -> Environment:
    """The environment of a GPU container: the Pod contract's variables, then the profile's.

    Raises FamilyError for a profile that the tuple does not have, ValueError for too few interfaces.
    """
    chosen = family.profile(profile, of=software)
    lib = family.pod.lib
    return Environment(
        library_path=family.pod.library_path,
        settings=settings((*family.pod.env, *chosen.variables), interfaces=interfaces, lib=lib),
        left_out=chosen.left_out,
        script=fill(chosen.script, interfaces=interfaces, lib=lib),
    )


def default_interfaces(family: Family) -> Interfaces:
    """The names that a family's Network objects give by default."""
    return Interfaces(
        control=family.pod.default_interface or "eth0",
        data=tuple(network.interface for network in family.gpu_networks),
    )


def settings(variables: Iterable[Variable], *, interfaces: Interfaces, lib: str) -> tuple[Setting, ...]:
    """Each variable with interface names and folder filled in, in the order given.

    Raises ValueError if a value asks for an interface that is not there.
    """
    return tuple(
        Setting(
            name=variable.name,
            value=fill(variable.value, interfaces=interfaces, lib=lib),
            variable=variable,
        )
        for variable in variables
    )


def fill(text: str, *, interfaces: Interfaces, lib: str) -> str:
    """``text`` with ``{control}``, ``{data}`` (all, by commas), ``{data[0]}`` and ``{lib}`` replaced."""

    def value(match: re.Match[str]) -> str:
        name, index = match.groups()
        if name == "lib":
            return lib
        if name == "control":
            return interfaces.control
        if index is None:
            return ",".join(interfaces.data)
        if int(index) >= len(interfaces.data):
            raise ValueError(
                f"{text} needs {int(index) + 1} interfaces for traffic of GPUs, and there are {len(interfaces.data)}: "
                f"{', '.join(interfaces.data) or 'none'}"
            )
        return interfaces.data[int(index)]

    return _PLACE.sub(value, text)
