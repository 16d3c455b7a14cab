"""How hardware families are shown to people and to programs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from interlace.cli.printing import columns
from interlace.fabric.bands import Band, Floor, table
from interlace.fabric.facts import Fact
from interlace.fabric.family import Family

_SECTIONS = (
    ("node", "Node"),
    ("refused", "Machine types that are not of this family"),
    ("networks", "Networks, in the order of the NICs"),
    ("versions", "Least GKE version of each minor"),
    ("tuples", "Software that was released together"),
    ("profiles", "NCCL environments"),
    ("pod", "What a Pod needs"),
    ("installer", "Installer of the NCCL plugin"),
    ("test", "NCCL tests"),
)


def summary(family: Family) -> dict[str, Any]:
    """The line of the list, for programs."""
    node = family.node
    return {
        "family": family.id,
        "title": family.title,
        "machines": family.machines,
        "gpus": node.gpus,
        "product": node.product,
        "nics": node.nics,
        "nicGbps": node.nic_gbps,
        "transport": node.transport,
        "mnnvl": node.mnnvl,
        "gke": node.gke,
        "software": [each.id for each in family.tuples],
    }


def listing(families: Iterable[Family]) -> Table:
    """All families, one a line."""
    shown = columns("FAMILY", "MACHINE TYPES", "GPUS", "NICS", "TRANSPORT", "SOFTWARE")
    for family in families:
        node = family.node
        transport = f"{node.transport}{' + nvlink' if node.mnnvl and node.transport != 'nvlink' else ''}"
        shown.add_row(
            family.id,
            ", ".join(family.machines),
            f"{node.gpus} x {node.product.removeprefix('NVIDIA-').split('-')[0]}",
            f"{node.nics} x {node.nic_gbps} Gbit/s",
            transport,
            family.software_for(None).id,
        )
    return shown


def page(family: Family, facts: tuple[Fact, ...]) -> Iterator[RenderableType]:
    """Everything about a family; the letters in the last column are those of the sources at the end."""
    yield Text(f"{family.id}: {family.title}", style="bold")
    yield Text(f"machine types: {', '.join(family.machines)}")
    for prefix, title in _SECTIONS:
        rows = [fact for fact in facts if fact.path.partition(".")[0].partition("[")[0] == prefix]
        if rows:
            yield Text(f"\n{title}", style="bold")
            yield _facts(rows)
    bands = [row for row in table().bands if row.family == family.id]
    floors = [row for row in table().floors if row.family == family.id]
    if bands or floors:
        yield Text("\nWhat a measurement has to reach", style="bold")
        yield _bands(bands, floors)
    yield Text("\nSources", style="bold")
    yield _sources(family, {row.source for row in bands} | {row.source for row in floors})


def document(family: Family, facts: tuple[Fact, ...]) -> dict[str, Any]:
    """The page for programs."""
    return {
        **summary(family),
        "facts": facts,
        "bands": [row for row in table().bands if row.family == family.id],
        "floors": [row for row in table().floors if row.family == family.id],
        "sources": {**family.sources, **{f"bands.{key}": value for key, value in table().sources.items()}},
    }


def versions_table(families: Iterable[Family]) -> Table:
    """Least GKE versions."""
    shown = columns("FAMILY", "MINOR", "LEAST VERSION", "RECOMMENDED", "SOURCE", "NOTE")
    for family in families:
        if not family.versions:
            shown.add_row(family.id, "-", "not offered on GKE", "-", "-", "")
        for row in family.versions:
            at = family.sources[row.source]
            least, better = row.version or "any patch", row.recommended or "-"
            shown.add_row(family.id, row.minor, least, better, f"{row.source}, {at.date}", row.why)
    return shown


def versions_document(family: Family) -> dict[str, Any]:
    """The same for programs."""
    return {
        "family": family.id,
        "versions": [{**msgspec.to_builtins(row), "date": family.sources[row.source].date} for row in family.versions],
    }


def _facts(facts: Iterable[Fact]) -> Table:
    shown = columns("FACT", "VALUE", "SOURCE")
    for fact in facts:
        if not fact.names_itself:
            value = fact.value if isinstance(fact.value, str) else msgspec.json.encode(fact.value).decode()
            # Text: brackets in a path are no markup.
            shown.add_row(Text(fact.path), Text(value.replace("\n", "\\n")), fact.source)
    return shown


def _bands(bands: Iterable[Band], floors: Iterable[Floor]) -> Table:
    shown = columns("WHERE", "WHAT", "PASS", "DEGRADED", "FROM", "SOURCE")
    for band in bands:
        shown.add_row(
            "between nodes" if band.scope == "nodes" else "within NVLink",
            ", ".join(band.collectives),
            f"{band.pass_share * band.bound_gb_s:.0f} GB/s ({band.pass_share:.0%} of {band.bound_gb_s:g})",
            f"{band.degraded_share * band.bound_gb_s:.0f} GB/s ({band.degraded_share:.0%})",
            f"{band.from_bytes >> 20} MiB",
            f"bands.{band.source}",
        )
    for floor in floors:
        where = "between nodes" if floor.scope == "nodes" else "within NVLink"
        shown.add_row(
            where, f"{floor.bytes >> 20} MiB", f"at most {floor.most_ms:g} ms", "-", "-", f"bands.{floor.source}"
        )
    return shown


def _sources(family: Family, bands: set[str]) -> Table:
    shown = columns("SOURCE", "DATE", "TITLE")
    for key, source in family.sources.items():
        shown.add_row(key, source.date, source.title)
    for key in sorted(bands):
        source = table().sources[key]
        shown.add_row(f"bands.{key}", source.date, source.title)
    return shown
