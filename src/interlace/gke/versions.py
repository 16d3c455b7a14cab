"""Versions that GKE offers at a place, and which of them a family works on. Pure.

Invariant: a version is offered here only if GKE offers it for control plane and nodes alike, since both must be new
enough; what the table of the family does not speak of is said to be unknown.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from interlace.fabric.family import Family
from interlace.fabric.minimum import judge
from interlace.fabric.version import GkeVersion, VersionError, gke_version
from interlace.gke.errors import Refused

STATIC: Final = "static"
"""How versions are called that are offered without a channel."""


class Channel(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A release channel."""

    channel: str = ""
    default_version: str = ""
    valid_versions: tuple[str, ...] = ()


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Answer of getServerConfig, as far as it is read."""

    default_cluster_version: str = ""
    valid_master_versions: tuple[str, ...] = ()
    valid_node_versions: tuple[str, ...] = ()
    channels: tuple[Channel, ...] = ()


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A version. ``channels`` that offer it, ``default_of`` those that take it by themselves.

    ``supported``: the family works on it; ``known``: the table of the family says so. ``why``: in a sentence.
    """

    version: str
    channels: tuple[str, ...]
    default_of: tuple[str, ...]
    supported: bool
    known: bool
    why: str


def read_config(document: Any, *, what: str) -> ServerConfig:
    """The answer of getServerConfig. ``what``: where it is from, for the error. Raises Refused."""
    if isinstance(document, dict) and isinstance(document.get("body"), dict) and "validMasterVersions" not in document:
        document = document["body"]
    try:
        config = msgspec.convert(document, ServerConfig)
    except msgspec.ValidationError as error:
        raise Refused(f"{what} is no answer of getServerConfig: {error}.") from None
    if not config.valid_master_versions and not config.channels:
        raise Refused(
            f"{what} names no versions.",
            remedy="Write one with `gcloud container get-server-config --location L --format json`.",
        )
    return config


def offers(family: Family, config: ServerConfig) -> tuple[Offer, ...]:
    """Every version that is offered, newest first, with the verdict about the family."""
    found: dict[GkeVersion, tuple[list[str], list[str]]] = {}
    nodes = set(config.valid_node_versions)
    static = [each for each in config.valid_master_versions if not nodes or each in nodes]
    places = [(STATIC, config.default_cluster_version, static)]
    places += [(each.channel.lower(), each.default_version, list(each.valid_versions)) for each in config.channels]
    for name, default, versions in places:
        for text in dict.fromkeys([*versions, *([default] if default in versions else [])]):
            try:
                version = gke_version(text)
            except VersionError:
                continue
            channels, defaults = found.setdefault(version, ([], []))
            channels.append(name)
            if text == default:
                defaults.append(name)
    return tuple(_offer(family, version, *found[version]) for version in sorted(found, reverse=True))


def _offer(family: Family, version: GkeVersion, channels: list[str], defaults: list[str]) -> Offer:
    verdict = judge(family, version)
    return Offer(
        version=str(version),
        channels=tuple(channels),
        default_of=tuple(defaults),
        supported=verdict.ok,
        known=verdict.known,
        why=verdict.why,
    )
