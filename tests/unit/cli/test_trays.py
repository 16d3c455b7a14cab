from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from interlace.api.computedomain import ComputeDomainNode
from interlace.cli.trays import State, Tray, draw, state_of

READY = ComputeDomainNode(name="n", ip_address="10.0.0.1", clique_id="r.0", index=4, status="Ready")
NOT_READY = ComputeDomainNode(name="n", ip_address="10.0.0.1", clique_id="r.0", index=4)


def lines(picture: RenderableType, *, width: int) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=width, no_color=True).print(picture)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def trays(count: int, *, rack: int = 18, state: State = State.READY) -> list[Tray]:
    return [Tray(name=f"tray-{i:02d}", rack=f"r.{i // rack}", state=state, index=i % rack) for i in range(count)]


@pytest.mark.parametrize(
    ("powered", "installed", "row", "bound", "pod_ready", "state"),
    [
        (False, True, READY, True, True, State.DARK),
        (True, False, None, False, False, State.STARTING),
        (True, True, None, False, False, State.FREE),
        (True, True, None, True, False, State.POD),
        (True, True, NOT_READY, True, False, State.FORMING),
        (True, True, READY, True, False, State.FORMING),
        (True, True, READY, True, True, State.READY),
    ],
)
def test_a_tray_is_in_one_state(
    powered: bool, installed: bool, row: ComputeDomainNode | None, bound: bool, pod_ready: bool, state: State
) -> None:
    found = state_of(powered=powered, installed=installed, row=row, bound=bound, pod_ready=pod_ready)
    assert found is state


def test_one_rack_is_drawn_tray_by_tray_with_the_index_in_the_domain() -> None:
    drawn = lines(draw(trays(18), width=116, height=10), width=116)
    assert len(drawn) == 3
    assert drawn[0].startswith("tray-00 imex 0     tray-01 imex 1     tray-02 imex 2")
    assert drawn[2].endswith("tray-17 imex 17")


def test_racks_are_named_where_there_are_several() -> None:
    drawn = lines(draw(trays(20), width=116, height=10), width=116)
    assert [line for line in drawn if line.startswith("rack")] == ["rack 0", "rack 1"]


def test_many_trays_become_dots_with_a_legend() -> None:
    some = [*trays(35), Tray(name="tray-35", rack="r.1", state=State.DARK)]
    drawn = lines(draw(some, width=76, height=8), width=76)
    assert drawn[0] == "rack 0  " + "●" * 18
    assert drawn[1] == "rack 1  " + "●" * 17 + "✗"
    assert "● ready" in drawn[2]
    assert "✗ dark" in drawn[2]


@given(count=st.integers(1, 250), width=st.integers(30, 200), height=st.integers(3, 60))
def test_the_picture_fits_into_its_place(count: int, width: int, height: int) -> None:
    drawn = lines(draw(trays(count), width=width, height=height), width=width)
    assert len(drawn) <= height
    assert all(len(line) <= width for line in drawn)
