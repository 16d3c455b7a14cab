"""The serving certificate: when it is renewed, and that no call can meet one that is not trusted."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from interlace.pods.certificates import (
    GRACE,
    LIFE,
    Pair,
    Step,
    Stored,
    authorities,
    bundle_text,
    from_secret,
    make,
    plan,
    to_secret,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NAMES = ("interlace-webhook.interlace-system.svc", "127.0.0.1")


def pair(*, made: datetime = NOW) -> Pair:
    return make(NAMES, now=made)


def planned(stored: Stored, *, now: datetime = NOW, trusted: set[bytes] | None = None) -> Step:
    return plan(stored, names=NAMES, trusted=trusted, now=now)


def data(stored: Stored) -> dict[str, str]:
    return {name: text for name, text in to_secret(stored).items() if text is not None}


def test_an_empty_secret_gets_a_certificate() -> None:
    step = planned(from_secret({}))
    assert step.action == "make"
    assert step.stored is not None
    assert step.stored.present is not None
    assert step.stored.bundle == (step.stored.present.authority,)


def test_what_is_stored_reads_back_as_it_was() -> None:
    stored = Stored(present=pair(), next=pair(made=NOW + timedelta(days=60)), bundle=(b"",))
    assert stored.present is not None
    assert stored.next is not None
    stored = Stored(present=stored.present, next=stored.next, bundle=(stored.present.authority, stored.next.authority))
    assert from_secret(data(stored)) == stored
    assert authorities(bundle_text(stored)) == list(stored.bundle)


def test_a_certificate_is_kept_until_two_thirds_of_its_life_are_over() -> None:
    present = pair()
    stored = Stored(present=present, bundle=(present.authority,))
    assert planned(stored) == Step(action="keep", again=(LIFE * 2 / 3).total_seconds())
    assert planned(stored, now=NOW + LIFE * 0.6).action == "keep"
    staged = planned(stored, now=NOW + LIFE * 0.67)
    assert staged.action == "stage"
    assert staged.stored is not None
    assert staged.stored.present == present
    assert staged.stored.next is not None
    assert staged.stored.bundle == (present.authority, staged.stored.next.authority)


def test_the_next_certificate_waits_until_it_is_trusted_and_everybody_has_heard() -> None:
    later = NOW + LIFE * 0.7
    present, following = pair(), pair(made=later)
    stored = Stored(present=present, next=following, bundle=(present.authority, following.authority))
    both = set(stored.bundle)
    assert planned(stored, now=later, trusted=both).action == "keep"
    assert planned(stored, now=later + GRACE, trusted={present.authority}).action == "keep"
    promoted = planned(stored, now=later + GRACE, trusted=both)
    assert promoted.action == "promote"
    assert promoted.stored == Stored(present=following, bundle=stored.bundle)


def test_without_any_webhook_there_is_nobody_to_wait_for() -> None:
    later = NOW + LIFE * 0.7
    stored = Stored(present=pair(), next=pair(made=later))
    assert planned(stored, now=later + GRACE, trusted=None).action == "promote"


def test_an_expired_certificate_is_replaced_at_once_by_the_next_if_there_is_one() -> None:
    following = pair(made=NOW + LIFE * 0.9)
    step = planned(Stored(present=pair(), next=following), now=NOW + LIFE)
    assert step.action == "make"
    assert step.stored is not None
    assert step.stored.present == following


def test_a_certificate_for_other_names_is_replaced_at_once() -> None:
    stored = Stored(present=make(("old.svc",), now=NOW))
    assert planned(stored).action == "make"


@pytest.mark.parametrize("part", ["tls.crt", "tls.key"])
@pytest.mark.parametrize("content", ["", "%%%", "Z2FyYmFnZQ=="])
def test_a_damaged_secret_is_made_anew(part: str, content: str) -> None:
    stored = Stored(present=pair())
    assert planned(from_secret(data(stored) | {part: content})).action == "make"


def test_a_key_of_another_certificate_is_no_pair() -> None:
    one, two = data(Stored(present=pair())), data(Stored(present=pair()))
    assert from_secret(one | {"tls.key": two["tls.key"]}).present is None


async def handshake(server: Pair, bundle: str, folder: Path) -> None:
    """A TLS connection to a server with this certificate, by a client that trusts this ``caBundle``."""
    file = folder / "server.pem"
    file.write_bytes(server.chain + server.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)

    async def bye(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(bye, "127.0.0.1", 0, ssl=context) as listening:
        port = listening.sockets[0].getsockname()[1]
        trust = ssl.create_default_context(cadata=b"".join(authorities(bundle)).decode())
        async with asyncio.timeout(10):
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
        writer.close()


async def test_each_of_two_certificates_is_good_under_the_bundle_of_both(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    present, following = pair(made=now), pair(made=now)
    both = bundle_text(Stored(bundle=(present.authority, following.authority)))
    await handshake(present, both, tmp_path)
    await handshake(following, both, tmp_path)
    with pytest.raises(ssl.SSLCertVerificationError):
        await handshake(following, bundle_text(Stored(bundle=(present.authority,))), tmp_path)


class Renewals(RuleBasedStateMachine):
    """Two replicas, one Secret, one API server, steps in any order; each handshake has to be trusted."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        first = plan(Stored(), names=NAMES, trusted=set(), now=NOW).stored
        assert first is not None
        self.stored = first
        self.served = [first.present, first.present]
        self.written = self.heard = set(first.bundle)
        """The bundle as it is written, and as the API server knows it."""

    def look(self, replica: int) -> None:
        """What `trust` does in one look."""
        step = plan(self.stored, names=NAMES, trusted=self.written, now=self.now)
        assert step.action != "make", "a certificate that was looked after never runs out"
        self.stored = step.stored or self.stored
        self.served[replica] = self.stored.present
        self.written = set(self.stored.bundle)

    @rule(replica=st.integers(0, 1))
    def a_replica_looks(self, replica: int) -> None:
        self.look(replica)

    @rule()
    def the_api_server_hears(self) -> None:
        self.heard = self.written

    @rule()
    def a_minute_passes(self) -> None:
        self.now += timedelta(minutes=1)

    @rule()
    def the_grace_passes_and_so_everybody_has_heard(self) -> None:
        self.look(0)
        self.look(1)
        self.heard = self.written
        self.now += GRACE

    @rule(days=st.integers(1, 20))
    def days_pass_in_which_replicas_look_each_day(self, days: int) -> None:
        for _ in range(days):
            self.the_grace_passes_and_so_everybody_has_heard()
            self.now += timedelta(days=1) - GRACE

    @invariant()
    def what_is_served_is_trusted_and_valid(self) -> None:
        for present in self.served:
            assert present is not None
            assert present.authority in self.heard
            assert present.expires > self.now


TestRenewals = Renewals.TestCase
TestRenewals.settings = settings(max_examples=20, stateful_step_count=25, deadline=None)
