"""The witness tells every difference, and none where there is none."""

from __future__ import annotations

from interlace.sim.witness import Sight, changes

BEFORE = Sight(objects={"Pod a": "1", "Pod b": "2"}, events={"Pod a: Formed": 1}, processes={"tray-1": (7,)})


def test_equal_sights_show_no_change() -> None:
    assert changes(BEFORE, Sight(objects=dict(BEFORE.objects), events=BEFORE.events, processes=BEFORE.processes)) == []


def test_each_kind_of_change_is_told() -> None:
    after = Sight(
        objects={"Pod a": "1", "Pod b": "3", "Pod c": "4"}, events={"Pod a: Formed": 2}, processes={"tray-1": (8,)}
    )
    assert changes(BEFORE, after) == [
        "Pod b: 2 became 3",
        "Pod c: nothing became 4",
        "event on Pod a: Formed: 1 became 2",
        "nvidia-imex of tray-1: (7,) became (8,)",
    ]
