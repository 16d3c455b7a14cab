"""Ports that never collide."""

import random
import socket
import subprocess
import sys
from collections.abc import Sequence

import pytest

from testbed import ports
from testbed.errors import BedError


class Fixed(random.Random):
    """Chooses what it was told to choose."""

    def __init__(self, *answers: int) -> None:
        super().__init__()
        self._answers = list(answers)

    def choice(self, seq: Sequence[int]) -> int:  # type: ignore[override]
        assert self._answers[0] in seq
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


@pytest.fixture
def two_ports() -> tuple[int, int]:
    """Two ports that were free a moment ago, from the middle of the range."""
    with ports.claim() as one, ports.claim() as two:
        return one.port, two.port


def test_claims_at_one_time_differ() -> None:
    claims = [ports.claim() for _ in range(50)]
    assert len({claim.port for claim in claims}) == 50
    for claim in claims:
        claim.release()


def test_a_claimed_port_is_not_given_again_until_released(two_ports: tuple[int, int]) -> None:
    first, second = two_ports
    with ports.claim(choice=Fixed(first)), ports.claim(choice=Fixed(first, second)) as other:
        assert other.port == second
    with ports.claim(choice=Fixed(first)) as again:
        assert again.port == first


def test_a_port_on_which_somebody_listens_is_passed_over(two_ports: tuple[int, int]) -> None:
    first, second = two_ports
    with socket.create_server(("127.0.0.1", first)), ports.claim(choice=Fixed(first, second)) as claim:
        assert claim.port == second


def test_a_claim_lasts_as_long_as_a_program_that_inherited_it(two_ports: tuple[int, int]) -> None:
    first, second = two_ports
    with ports.claim(choice=Fixed(first)) as claim:
        heir = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[claim.fileno()])
    with ports.claim(choice=Fixed(first, second)) as other:
        assert other.port == second
    heir.communicate(b"\n", timeout=10)
    with ports.claim(choice=Fixed(first)) as again:
        assert again.port == first


def test_ports_lie_below_those_that_the_kernel_takes_for_connections() -> None:
    lowest = int(ports.EPHEMERAL.read_text().split()[0])
    with ports.claim() as claim:
        assert ports.LOWEST <= claim.port < lowest


def test_no_free_port_is_said_with_the_range(two_ports: tuple[int, int]) -> None:
    first, _ = two_ports
    with (
        ports.claim(choice=Fixed(first)),
        pytest.raises(BedError, match=r"no free port found on 127\.0\.0\.1 from 20000"),
    ):
        ports.claim(choice=Fixed(first))
