"""What is said of a prepared claim whose IMEX is interrupted."""

from __future__ import annotations

import msgspec

from interlace.imex.order import State
from interlace.node.cdi import PreparedClaim
from interlace.node.errors import Reason
from interlace.node.outage import Served, observe, verdict
from interlace.node.standing import Verdict
from tests.unit.node.parts import CLIQUE, DOMAIN, NODE, ref

GOOD = Verdict(good=True, reason=Reason.PREPARED, message="ready")
SERVED = Served(pid=7, domain=DOMAIN)


def _host(phase: str = "Ready", *, pid: int = 7, **more: str) -> State:
    return State(domain=DOMAIN, index=2, phase=phase, pid=pid, **more)  # type: ignore[arg-type]


def _say(host: State | None, *, said: Verdict = GOOD, before: Served = SERVED, away: bool = False) -> Verdict:
    held = PreparedClaim(claim=ref(), devices=(), domain=DOMAIN, clique=CLIQUE, index=2, injected=True, completed=True)
    return verdict(held, host, node=NODE, said=said, before=before, away=away)


def test_a_process_that_never_changed_is_never_written_about() -> None:
    assert _say(_host()) is GOOD
    assert _say(None) is GOOD
    assert _say(_host(), before=Served()) is GOOD


def test_an_interruption_names_phase_and_cause() -> None:
    said = _say(_host("Starting", reason="ImexExited", message="nvidia-imex ended with signal 9"))
    assert (said.good, said.reason) == (False, Reason.IMEX_STARTING)
    assert "signal 9" in said.message
    assert _say(_host("Failed")).reason == Reason.IMEX_FAILED


def test_a_restart_that_nobody_saw_between_two_looks_is_still_told() -> None:
    said = _say(_host(pid=8))
    assert (said.good, said.reason) == (True, Reason.RESTORED)
    assert "no longer valid" in said.message


def test_an_imex_host_that_is_away_for_a_moment_is_no_outage() -> None:
    away = observe(SERVED, None, now=10.0)
    assert (away.pid, away.away_since) == (7, 10.0)
    assert observe(away, None, now=14.0).away_since == 10.0
    assert observe(away, _host(), now=14.0) == SERVED
    assert _say(None, away=True).reason == Reason.IMEX_HOST_UNREACHABLE


def test_a_domain_that_comes_again_after_the_node_was_idle_is_no_interruption() -> None:
    idle = observe(SERVED, State(), now=1.0)
    assert _say(_host(pid=9), before=idle) is GOOD


def test_a_node_that_moved_to_another_index_is_served_again_there() -> None:
    moved = msgspec.structs.replace(_host(pid=8), index=5)
    said = _say(moved)
    assert (said.good, said.reason) == (True, Reason.RESTORED)
    assert _say(moved, said=said, before=Served(pid=8, domain=DOMAIN)) is said
