"""What a command does not say itself: project and place, from our own command line, the page, or gcloud's properties.

Invariant: a value on the command wins; nothing comes from the machine that reads the page.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from interlace.gke.gcloud.call import Call
from interlace.gke.gcloud.refusal import PageError
from interlace.gke.gcloud.table import Track

COMPUTE: Final[dict[Track, str]] = {"ga": "v1", "beta": "beta", "alpha": "alpha"}
CONTAINER: Final[dict[Track, str]] = {"ga": "v1", "beta": "v1beta1", "alpha": "v1alpha1"}

_ZONE: Final = re.compile(r"[a-z]+(?:-[a-z]+)+\d+-[a-z]\Z")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Defaults; empty where there is none. ``given``: properties that the page sets with ``gcloud config set``."""

    project: str = ""
    location: str = ""
    zone: str = ""
    region: str = ""
    cluster: str = ""

    def set(self, name: str, value: str, *, line: int) -> Settings:
        """With a property of gcloud set. Raises PageError for one that changes what commands mean in other ways."""
        short = name.partition("/")[2] or name
        if name in {"project", "core/project", "compute/zone", "compute/region", "container/cluster"}:
            return msgspec.structs.replace(self, **{short: value})
        if (name.startswith("core/") and short in {"disable_prompts", "account", "verbosity"}) or name == "account":
            return self
        raise PageError(f"the property {name} is not taken", line=line, remedy="Write it as a flag of each command.")


def project(call: Call, settings: Settings) -> str:
    """The project of a call."""
    value = call.text("--project") or settings.project
    if not value:
        call.refuse("no project is known", remedy="Give --project.")
    return value


def location(call: Call, settings: Settings) -> str:
    """Zone or region of a cluster: one of three flags."""
    ways = ("--location", "--zone", "--region")
    for flag in ways:
        call.understands(flag)
    given = [flag for flag in ways if call.has(flag)]
    if len(given) > 1:
        call.refuse(f"{given[0]} and {given[1]} exclude each other", remedy="Give one of them.")
    value = call.text(given[0]) if given else settings.zone or settings.region or settings.location
    if not value:
        call.refuse("no location is known", remedy="Give --location, --zone or --region.")
    return plain(call, given[0] if given else "location", value)


def region(call: Call, settings: Settings) -> str:
    """Region of a subnet or policy."""
    value = call.text("--region") or settings.region or region_of(settings.location)
    if not value:
        call.refuse("no region is known", remedy="Give --region.")
    return plain(call, "--region", value)


def zone(call: Call, settings: Settings) -> str:
    """Zone of a reservation."""
    value = call.text("--zone") or settings.zone or (settings.location if _ZONE.match(settings.location) else "")
    if not value:
        call.refuse("no zone is known", remedy="Give --zone.")
    return plain(call, "--zone", value)


def region_of(place: str) -> str:
    """Region of a zone; a region is its own."""
    return place.rpartition("-")[0] if _ZONE.match(place) else place


def plain(call: Call, what: str, value: str) -> str:
    """A name alone: paths and URLs are read by gcloud in ways that are not taken here."""
    if "/" in value:
        call.refuse(f"{what}: {value} is a path", remedy="Write the name alone, and --project for another project.")
    return value


def only_name(call: Call, *, what: str) -> str:
    """The one name that a command of this kind has."""
    if not call.names:
        call.refuse(f"the name of the {what} is missing", remedy="Write it behind the command.")
    if len(call.names) > 1:
        call.refuse(
            f"{call.names[1]} is one word too many", cause="The command takes one name.",
            remedy="Put a value with spaces in quotes.",
        )  # fmt: skip
    return plain(call, what, call.names[0])


def network(call: Call, flag: str, value: str) -> str:
    """A name, ``projects/P/global/networks/N``, or a URL; gcloud makes something else of other paths."""
    if "/" in value and not re.match(r"(https://|projects/[^/]+/global/\w+/[^/]+\Z)", value):
        call.refuse(f"{flag}={value} is half a path", remedy="Write the name, or projects/P/global/networks/NAME.")
    if value.startswith("https://"):
        call.refuse(f"{flag}={value} is a URL", remedy="Write the name, or projects/P/global/networks/NAME.")
    return value
