"""Any mixture of passing faults and kills: runs that are repeated until one is done end in the same place."""

from __future__ import annotations

import tempfile
from pathlib import Path

import looptime
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlace.gke.errors import GkeError
from interlace.sim.gke.faults import Fault, Kind
from tests.unit.gke.engine.sky import SMALL, Crash, Sky, apply_on, destroy_on, plan_on

PASSING = (
    Kind.RATE_LIMIT,
    Kind.UNAVAILABLE,
    Kind.NOT_JSON,
    Kind.DROPPED_BEFORE,
    Kind.DROPPED_AFTER,
    Kind.UNAUTHENTICATED,
)
PLACES = ("POST .*/networks$", "POST .*/clusters$", "POST .*/nodePools$", "GET ", "/wait$", "DELETE ", ".")

faults = st.lists(
    st.builds(
        Fault,
        kind=st.sampled_from(PASSING),
        match=st.sampled_from(PLACES),
        times=st.integers(1, 3),
        after=st.integers(0, 12),
        retry_after=st.sampled_from([None, 1, 7]),
    ),
    max_size=4,
)
kills = st.lists(st.tuples(st.integers(0, 45), st.sampled_from(["before", "amid", "after"])), max_size=3)


async def _until_done(sky: Sky, folder: Path, deaths: list[tuple[int, str]]) -> None:
    """Run again and again; a kill or a bad ending is a reason for another run, ten of them for giving up."""
    offset = sky.requests
    for attempt in range(10):
        place = deaths[attempt] if attempt < len(deaths) else None
        sky.crash = lambda number, when, place=place, offset=offset: place == (number - offset, when)  # type: ignore[misc]
        try:
            run = await apply_on(sky, folder)
        except BaseException as error:
            if not _is_weather(error):
                raise
        else:
            if all(ending.state == "done" for ending in run.endings.values()):
                return
        offset = sky.requests
    raise AssertionError("ten runs were not enough")


def _is_weather(error: BaseException) -> bool:
    """A kill, or a look that Google did not allow for too long."""
    if isinstance(error, BaseExceptionGroup):
        return all(_is_weather(each) for each in error.exceptions)
    return isinstance(error, Crash | GkeError)


async def _weather(weather: list[Fault], deaths: list[tuple[int, str]], folder: Path) -> None:
    calm = Sky(text=SMALL, seconds=0.3, narrow=True)
    before = calm.paths()
    await apply_on(calm, folder / "calm")
    sky = Sky(text=SMALL, seconds=0.3, narrow=True)
    sky.world.faults.active.extend(weather)
    await _until_done(sky, folder / "storm", deaths)
    assert sky.paths() == calm.paths()
    assert sky.carried_out_twice() == []
    sky.world.faults.active.clear()
    sky.crash = lambda *_: False
    assert (await plan_on(sky, folder / "storm")).empty
    endings = await destroy_on(sky, folder / "storm")
    assert {str(ending.reason) for ending in endings.values() if ending.reason} == set()
    assert sky.paths() == before


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(weather=faults, deaths=kills)
def test_every_storm_passes(weather: list[Fault], deaths: list[tuple[int, str]]) -> None:
    for fault in weather:  # hypothesis may give the same value again
        fault.struck, fault._passed = 0, 0
    loop = looptime.new_event_loop()
    try:
        with tempfile.TemporaryDirectory() as name:
            loop.run_until_complete(_weather(weather, deaths, Path(name)))
    finally:
        loop.close()
