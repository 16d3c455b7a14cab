"""What an hour costs: never more exact than what is known."""

from __future__ import annotations

from typing import Any

import pytest

from interlace.gke.answers import Answer
from interlace.gke.client import Client
from interlace.gke.desired import desired
from interlace.gke.prices import assemble, live, machines, price, table
from interlace.gke.shapes import shapes
from tests.unit.gke.engine.sky import MEGA, cluster_of

CORE, RAM, GPU = 0.03, 0.003, 9.0


def sku(
    text: str, dollars: float, *, unit: str = "h", usage: str = "OnDemand", region: str = "us-central1"
) -> dict[str, Any]:
    whole = int(dollars)
    rate = {"unitPrice": {"currencyCode": "USD", "units": str(whole), "nanos": round((dollars - whole) * 1e9)}}
    return {
        "description": text,
        "category": {"usageType": usage},
        "serviceRegions": [region],
        "pricingInfo": [{"pricingExpression": {"usageUnit": unit, "tieredRates": [rate]}}],
    }


SKUS = [
    sku("A3Plus Instance Core running in Americas", CORE),
    sku("A3Plus Instance Ram running in Americas", RAM, unit="GiBy.h"),
    sku("Nvidia H100 80GB Mega GPU running in Americas", GPU),
    sku("Spot Preemptible A3Plus Instance Core", 0.01),
    sku("A3Plus Instance Core running in Paris", 0.9, region="europe-west9"),
    sku("Nvidia H100 80GB Mega GPU attached to Spot VMs", 1.0, usage="Preemptible"),
]
MACHINE = 208 * CORE + 1872 * RAM + 8 * GPU


def test_every_price_has_a_date_and_a_source() -> None:
    found = table()
    assert found.source
    assert found.date.isoformat() >= "2026-11-30"
    assert all(amount > 0 for amount in found.machines.values())


def test_the_machines_of_all_pools_and_zones_count() -> None:
    wanted = desired(cluster_of(MEGA))
    assert machines(wanted) == {"a3-megagpu-8g": 2, "e2-standard-8": 1}
    assert machines(wanted, zones=3) == {"a3-megagpu-8g": 6, "e2-standard-8": 3}


def test_a_machine_of_unknown_price_is_named_and_not_free() -> None:
    found = price({"a3-megagpu-8g": 2, "new-machine": 3})
    assert found.amount == pytest.approx(2 * 106.6547)
    assert found.unknown == {"new-machine": 3}
    assert str(found).startswith("about 210 USD an hour, and 3 × new-machine of unknown price (")
    assert str(price({"new-machine": 3})).startswith("no price known: for 3 × new-machine (")


def test_a_live_price_is_the_sum_of_all_parts_of_the_region() -> None:
    assert assemble(SKUS, shapes()["a3-megagpu-8g"], region="us-central1") == pytest.approx(MACHINE)


@pytest.mark.parametrize("left_out", [0, 1, 2])
def test_without_one_of_its_parts_a_machine_has_no_live_price(left_out: int) -> None:
    skus = [each for index, each in enumerate(SKUS) if index != left_out]
    assert assemble(skus, shapes()["a3-megagpu-8g"], region="us-central1") is None


def test_two_prices_for_one_part_are_none() -> None:
    skus = [*SKUS, sku("A3Plus Instance Core running in Iowa", 0.05)]
    assert assemble(skus, shapes()["a3-megagpu-8g"], region="us-central1") is None


@pytest.mark.looptime
async def test_the_catalogue_is_read_page_by_page() -> None:
    pages = [{"skus": SKUS[:2], "nextPageToken": "x"}, {"skus": SKUS[2:]}]

    async def send(*_: object) -> Answer:
        return Answer(status=200, body=pages.pop(0))

    wanted = {"a3-megagpu-8g": 2, "e2-standard-8": 1}
    found = await live(Client(send), wanted, region="us-central1", shapes=shapes())
    assert found is not None
    assert price(wanted, found).amount == pytest.approx(2 * MACHINE)
    assert "Cloud Billing" in str(price(wanted, found))


@pytest.mark.looptime
async def test_where_the_catalogue_may_not_be_read_there_is_no_live_price() -> None:
    async def send(*_: object) -> Answer:
        return Answer(status=403, body={"error": {"message": "no"}})

    assert await live(Client(send), {"a3-megagpu-8g": 2}, region="us-central1", shapes=shapes()) is None
