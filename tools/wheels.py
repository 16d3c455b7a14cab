"""A wheel of each locked package for the image, on both architectures: ``python -m tools.wheels``.

Asks the package index which file pip would take and writes ``requirements/wheels.toml``. That everything locked is
there, that the files fit the image, and that their hashes are those of the lock, is then checked offline.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.markers import Marker, default_environment
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements/dev.txt"
TABLE = ROOT / "requirements/wheels.toml"
DOCKERFILE = ROOT / "Dockerfile"
ARCHITECTURES = ("x86_64", "aarch64")
GLIBC = 36
"""Minor version of glibc 2 in Debian bookworm, on which the image is based."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """One entry of the lock."""

    name: str
    version: Version
    marker: str
    hashes: frozenset[str]

    def counts(self, python: tuple[int, int], architecture: str) -> bool:
        """Whether it is installed on Linux with this Python."""
        version = f"{python[0]}.{python[1]}"
        environment = {name: str(value) for name, value in default_environment().items()} | {
            "python_version": version,
            "python_full_version": f"{version}.0",
            "implementation_name": "cpython",
            "platform_python_implementation": "CPython",
            "platform_machine": architecture,
            "platform_system": "Linux",
            "sys_platform": "linux",
            "os_name": "posix",
        }
        return not self.marker or Marker(self.marker).evaluate(environment)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A file of the index."""

    file: str
    sha256: str


def pins(lock: str) -> list[Pin]:
    """All entries of a lock."""
    entry = re.compile(
        r"^([A-Za-z0-9][\w.-]*)==([^\s;\\]+)(?: *; *([^\n\\]+?))? *\\?\n((?:[ \t]+--hash=\S+[^\n]*\n?)*)", re.MULTILINE
    )
    return [
        Pin(
            name=canonicalize_name(name),
            version=Version(version),
            marker=marker or "",
            hashes=frozenset(re.findall(r"--hash=sha256:(\w+)", hashes)),
        )
        for name, version, marker, hashes in entry.findall(lock)
    ]


def image_python(dockerfile: str) -> tuple[int, int]:
    """The version of Python in the image."""
    found = re.search(r"^ARG PYTHON=\S+:(\d+)\.(\d+)-slim-bookworm$", dockerfile, re.MULTILINE)
    if found is None:
        raise ValueError("Dockerfile: ARG PYTHON names no image of Debian bookworm with Python; correct GLIBC here too")
    return int(found[1]), int(found[2])


def platforms(architecture: str) -> list[str]:
    """What the image can load, the newest first."""
    oldest, names = (5, ("2014", "2010", "1")) if architecture == "x86_64" else (17, ("2014",))
    numbered = [f"manylinux_2_{minor}_{architecture}" for minor in range(GLIBC, oldest - 1, -1)]
    return [*numbered, *(f"manylinux{name}_{architecture}" for name in names), f"linux_{architecture}"]


def supported(python: tuple[int, int], architecture: str) -> set[Tag]:
    """Tags of wheels that the image can load."""
    able = platforms(architecture)
    interpreter = f"cp{python[0]}{python[1]}"
    return {*cpython_tags(python, platforms=able), *compatible_tags(python, interpreter, able)}


def problems(lock: list[Pin], table: Mapping[str, Mapping[str, Wheel]], *, python: tuple[int, int]) -> Iterator[str]:
    """What is missing or does not fit, one line each."""
    for architecture in ARCHITECTURES:
        wheels, tags = table.get(architecture, {}), supported(python, architecture)
        wanted = {pin.name: pin for pin in lock if pin.counts(python, architecture)}
        for name in sorted(wheels.keys() - wanted.keys()):
            yield f"{architecture}: {name} is not in the lock"
        for name, pin in sorted(wanted.items()):
            wheel = wheels.get(name)
            if wheel is None:
                yield f"{architecture}: {name} {pin.version} has no wheel"
                continue
            found, version, _, offered = parse_wheel_filename(wheel.file)
            if (found, version) != (name, pin.version):
                yield f"{architecture}: {wheel.file} is not {name} {pin.version}"
            if not offered & tags:
                yield f"{architecture}: {wheel.file} does not fit Python {python[0]}.{python[1]}"
            if wheel.sha256 not in pin.hashes:
                yield f"{architecture}: {wheel.file} has another hash than the lock"


def read(table: str) -> dict[str, dict[str, Wheel]]:
    """By architecture and name."""
    return {
        architecture: {name: Wheel(**entry) for name, entry in entries.items()}
        for architecture, entries in tomllib.loads(table).items()
    }


def render(table: Mapping[str, Mapping[str, Wheel]]) -> str:
    """The file's content."""
    lines = ["# Written by `python -m tools.wheels`: what the image installs on each architecture."]
    for architecture, wheels in table.items():
        lines += ["", f"[{architecture}]"]
        lines += [
            f'{name} = {{ file = "{wheel.file}", sha256 = "{wheel.sha256}" }}' for name, wheel in sorted(wheels.items())
        ]
    return "\n".join(lines) + "\n"


def ask(lock: list[Pin], *, python: tuple[int, int], architecture: str) -> dict[str, Wheel]:
    """What pip would take from the index. Raises ``CalledProcessError`` where it finds none for a package."""
    with tempfile.TemporaryDirectory() as name:
        wanted, report = Path(name) / "wanted.txt", Path(name) / "report.json"
        lines = [
            f"{pin.name}=={pin.version} " + " ".join(f"--hash=sha256:{each}" for each in sorted(pin.hashes))
            for pin in lock
            if pin.counts(python, architecture)
        ]
        wanted.write_text("\n".join(lines) + "\n")
        # What a package says of Python is compared with the one that runs this, not with the image's.
        options = "--quiet --dry-run --ignore-installed --ignore-requires-python --no-deps --require-hashes"
        version = f"{python[0]}.{python[1]}"
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", *options.split()]
        command += ["--only-binary", ":all:", "--implementation", "cp", "--python-version", version]
        command += [f"--platform={each}" for each in platforms(architecture)]
        command += ["--target", f"{name}/target", "--report", str(report), "--requirement", str(wanted)]
        subprocess.run(command, check=True)
        found: dict[str, Wheel] = {}
        for entry in json.loads(report.read_text())["install"]:
            file = unquote(urlsplit(entry["download_info"]["url"]).path).rpartition("/")[2]
            sha256 = entry["download_info"]["archive_info"]["hashes"]["sha256"]
            found[canonicalize_name(entry["metadata"]["name"])] = Wheel(file=file, sha256=sha256)
        return found


def main() -> int:
    """Exit code: 0 if every package has a wheel for both architectures, else 1."""
    lock, python = pins(LOCK.read_text()), image_python(DOCKERFILE.read_text())
    try:
        table = {each: ask(lock, python=python, architecture=each) for each in ARCHITECTURES}
    except subprocess.CalledProcessError:
        return 1
    found = list(problems(lock, table, python=python))
    for problem in found:
        print(problem, file=sys.stderr)
    TABLE.write_text(render(table))
    print(f"{TABLE.relative_to(ROOT)}: {', '.join(f'{len(table[each])} for {each}' for each in table)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
