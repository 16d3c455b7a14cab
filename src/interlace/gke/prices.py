"""What a cluster costs an hour: an order of magnitude from a dated table, or from Cloud Billing where one may ask it.

Invariant: a machine whose price nobody looked up has none; it is named as missing and never counted as free.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec

from interlace.gke.client import Client
from interlace.gke.errors import GkeError
from interlace.gke.request import Request
from interlace.gke.resource import Resource

COMPUTE_ENGINE: Final = "6F81-5844-456A"
"""Id of Compute Engine in the Cloud Billing catalogue."""
_PAGES: Final = 20


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Prices an hour by machine type, with where they come from."""

    date: date
    currency: str
    source: str
    machines: Mapping[str, float]


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """An hour of a cluster. ``unknown``: machine types without a price, with how many of them there are."""

    amount: float
    currency: str
    date: str
    source: str
    unknown: Mapping[str, int] = {}

    def __str__(self) -> str:
        """As people read it: rounded to two digits that count."""
        text = f"about {_rounded(self.amount):,.0f} {self.currency} an hour" if self.amount else "no price known"
        if self.unknown:
            text += f"{', and' if self.amount else ': for'} " + ", ".join(
                f"{count} × {name}" for name, count in sorted(self.unknown.items())
            )
            text += " of unknown price" if self.amount else ""
        return f"{text} ({self.source}, {self.date})"


@cache
def table() -> Table:
    """The table that comes with the program."""
    raw = tomllib.loads(files("interlace.gke").joinpath("data/prices.toml").read_text(encoding="utf-8"))
    return msgspec.convert({**raw["table"], "machines": raw["machines"]}, Table)


def machines(resources: Iterable[Resource], *, zones: int = 1) -> dict[str, int]:
    """How many machines of each type the pools of ``resources`` ask for, in all zones."""
    found: dict[str, int] = {}
    for resource in resources:
        pools = [resource.body] if resource.key.kind == "nodePool" else resource.body.get("nodePools") or ()
        for pool in pools if resource.key.kind in {"nodePool", "cluster"} else ():
            name = str((pool.get("config") or {}).get("machineType") or "e2-medium")
            nodes = int(pool.get("initialNodeCount") or 0) * (len(pool.get("locations") or ()) or zones)
            if nodes:
                found[name] = found.get(name, 0) + nodes
    return found


def price(wanted: Mapping[str, int], prices: Table | None = None) -> Price:
    """What machines cost an hour."""
    prices = prices or table()
    return Price(
        amount=sum(count * prices.machines[name] for name, count in wanted.items() if name in prices.machines),
        currency=prices.currency,
        date=prices.date.isoformat(),
        source=prices.source,
        unknown={name: count for name, count in wanted.items() if name not in prices.machines},
    )


async def live(client: Client, wanted: Mapping[str, int], *, region: str, shapes: Mapping[str, Shape]) -> Table | None:
    """Prices of today from the catalogue of Cloud Billing; None where it cannot be read or says too little.

    ``shapes``: what machines consist of. Raises nothing of the client's: the dated table is there instead.
    """
    if not shapes.keys() & wanted.keys():
        return None
    try:
        skus = await _skus(client)
    except GkeError:
        return None
    found: dict[str, float] = {}
    for name in wanted:
        shape = shapes.get(name)
        amount = None if shape is None else assemble(skus, shape, region=region)
        if amount is not None:
            found[name] = amount
    if not found:
        return None
    return Table(date=date.today(), currency="USD", source="Cloud Billing catalogue, parts summed up", machines=found)  # noqa: DTZ011


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of a machine as the catalogue sells them. ``family`` is the word in its descriptions, ``A3Plus``."""

    family: str
    cores: float
    ram_gib: float
    gpus: int
    gpu: str


def assemble(skus: Iterable[Mapping[str, Any]], shape: Shape, *, region: str) -> float | None:
    """Price an hour of a machine from its parts, on demand; None unless cores, memory and GPUs all have one. Pure."""
    parts = {
        "core": (rf"\b{re.escape(shape.family)} Instance Core\b", shape.cores),
        "ram": (rf"\b{re.escape(shape.family)} Instance Ram\b", shape.ram_gib),
        "gpu": (rf"\b{re.escape(shape.gpu)}\b.*\bGPU\b", float(shape.gpus)),
    }
    total = 0.0
    rows = [
        sku
        for sku in skus
        if region in (sku.get("serviceRegions") or ())
        and (sku.get("category") or {}).get("usageType") == "OnDemand"
        and not re.search(r"\b(Spot|Preemptible|Commitment|DWS)\b", str(sku.get("description")))
    ]
    for pattern, count in parts.values():
        amounts = [_unit(sku) for sku in rows if re.search(pattern, str(sku.get("description")), re.IGNORECASE)]
        known = [amount for amount in amounts if amount is not None]
        if len(set(known)) != 1:  # none, or more than one that it might be
            return None
        total += count * known[0]
    return total


def _unit(sku: Mapping[str, Any]) -> float | None:
    """Dollars an hour for one unit."""
    infos = sku.get("pricingInfo") or ()
    expression = (infos[0].get("pricingExpression") or {}) if infos else {}
    rates = expression.get("tieredRates") or ()
    if not rates or expression.get("usageUnit") not in {"h", "GiBy.h"}:
        return None
    unit = rates[-1].get("unitPrice") or {}
    if unit.get("currencyCode") != "USD":
        return None
    return float(unit.get("units") or 0) + float(unit.get("nanos") or 0) / 1e9


async def _skus(client: Client) -> list[Mapping[str, Any]]:
    skus: list[Mapping[str, Any]] = []
    query = {"pageSize": "5000"}
    for _ in range(_PAGES):
        path = f"/v1/services/{COMPUTE_ENGINE}/skus"
        page = await client.ask(Request(service="cloudbilling", method="GET", path=path, query=query)) or {}
        skus += page.get("skus") or ()
        if not page.get("nextPageToken"):
            break
        query = {**query, "pageToken": str(page["nextPageToken"])}
    return skus


def _rounded(amount: float) -> float:
    """To two digits that count."""
    return float(f"{amount:.2g}")
