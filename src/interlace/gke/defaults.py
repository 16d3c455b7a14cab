"""Project and location as gcloud has them configured on this machine, read from its files without running it.

Invariant: nothing is changed, and a configuration that is damaged or not there means no defaults, never an error.
"""

from __future__ import annotations

import configparser
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from interlace.gke.cluster import LOCATION, PROJECT

_LARGEST: Final = 1 << 16
_NAME: Final = re.compile(r"[a-z][-a-z0-9]*\Z")


class Defaults(msgspec.Struct, frozen=True, kw_only=True):
    """Empty where nothing is configured. ``source``: what they were read from, for people."""

    project: str = ""
    location: str = ""
    source: str = ""


def configured(environment: Mapping[str, str], *, home: Path) -> Defaults:
    """What gcloud would take: its environment variables first, then its active configuration."""
    folder = Path(environment.get("CLOUDSDK_CONFIG") or home / ".config" / "gcloud")
    name = environment.get("CLOUDSDK_ACTIVE_CONFIG_NAME") or _text(folder / "active_config").strip() or "default"
    if not _NAME.match(name):
        return Defaults()
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(_text(folder / "configurations" / f"config_{name}"))
    except configparser.Error:
        parser = configparser.RawConfigParser()

    def value(section: str, key: str, pattern: str) -> str:
        variable = f"CLOUDSDK_{section.upper()}_{key.upper()}"
        found = environment.get(variable) or parser.get(section, key, fallback="") or ""
        return found if re.fullmatch(pattern, found) else ""

    project = value("core", "project", PROJECT)
    location = value("compute", "zone", LOCATION) or value("compute", "region", LOCATION)
    source = f"gcloud configuration {name}" if project or location else ""
    return Defaults(project=project, location=location, source=source)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(_LARGEST).decode("utf-8", errors="replace")
    except OSError:
        return ""
