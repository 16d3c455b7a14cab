"""Whatever stands in a bundle, it is judged or refused by name; nothing else happens."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlace.gke.observed.bundle import BundleError
from interlace.gke.rules.checking import RULES
from interlace.rules.finding import SEVERITIES
from tests.unit.gke.rules.bundles import Bundle, asked, before, check, mega, placed, put, reserved

WORDS = ("example-net-1", "10.0.0.0/8", "1.30.4-gke.1", "COMPACT", "::/0", "projects/p/global/networks/n")
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 9),
    st.floats(allow_nan=False),
    st.text(max_size=6),
    st.sampled_from(WORDS),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner), max_leaves=4
)
calm = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
BASES = st.sampled_from([mega, reserved, placed, before, asked])


def places(value: Any, above: str = "") -> list[str]:
    """Pointers to every member."""
    found = []
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            where = f"{above}/{str(key).replace('~', '~0').replace('/', '~1')}"
            found += [where, *places(each, where)]
    return found


def judged(bundle: Bundle) -> None:
    """Findings of the form that programs read, or a refusal that names something."""
    try:
        findings = check(bundle)
    except BundleError:
        return
    for each in findings:
        assert each.severity in SEVERITIES
        assert each.rule in {rule.id for rule in RULES} | {"state.not-observed"}
        assert each.pointer == "" or each.pointer.startswith("/")
        assert each.text
        assert each.remedy


@calm
@given(base=BASES, data=st.data())
def test_a_bundle_with_changed_places_is_judged_or_refused(base: Any, data: st.DataObject) -> None:
    bundle = base()
    for _ in range(data.draw(st.integers(1, 4))):
        where = data.draw(st.sampled_from([each for each in places(bundle) if not each.startswith("/format")]))
        bundle = put(bundle, {where: data.draw(VALUES)})
    judged(json.loads(json.dumps(bundle)))


@calm
@given(base=BASES, data=st.data())
def test_a_bundle_with_members_taken_away_or_doubled_is_judged_or_refused(base: Any, data: st.DataObject) -> None:
    bundle = base()
    where = data.draw(st.sampled_from(places(bundle)))
    parent: Any = bundle
    *above, last = [step.replace("~1", "/").replace("~0", "~") for step in where.split("/")[1:]]
    for step in above:
        parent = parent[int(step)] if isinstance(parent, list) else parent[step]
    if isinstance(parent, list):
        if data.draw(st.booleans()):
            parent.append(parent[int(last)])
        else:
            del parent[int(last)]
    elif where != "/format":
        del parent[last]
    judged(bundle)


@calm
@given(st.dictionaries(st.sampled_from(["want", "cluster", "networks", "kubernetes", "quotaInfos"]), VALUES))
def test_a_bundle_of_anything_is_judged_or_refused(members: dict[str, Any]) -> None:
    judged({**members, "format": "observed-state/1"})
