"""What answers mean: recorded errors of the services, repetitions that are safe, and pauses."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.gke.answers import Answer, Next, pause, refusal, retry_after, what_next
from interlace.gke.failures import ApiError, OperationFailed
from interlace.gke.request import Request

SERVER = Path(__file__).parents[3] / "data/gke/server"

GET = Request(service="compute", method="GET", path="/compute/v1/projects/p/global/networks")
WAIT = Request(service="compute", method="POST", path="/compute/v1/projects/p/global/operations/o/wait")
KNOWN = Request(
    service="compute", method="POST", path="/compute/v1/projects/p/global/networks", query={"requestId": "x"}, body={}
)
BLIND = Request(service="container", method="POST", path="/v1/projects/p/locations/l/clusters", body={})


def recorded(name: str) -> Answer:
    raw: dict[str, Any] = json.loads((SERVER / f"{name}.json").read_text())
    return Answer(status=raw["http_status"], body=raw["body"])


@pytest.mark.parametrize(
    ("name", "reason", "words"),
    [
        ("compute-error-400-in-use", "resourceInUseByAnotherResource", "Take away what the message names"),
        ("compute-error-403-permission", "forbidden", "Grant the role"),
        ("compute-error-403-quota", "quotaExceeded", "have it raised"),
        ("compute-error-403-service-disabled", "SERVICE_DISABLED", "gcloud services enable"),
        ("compute-error-409-already-exists", "alreadyExists", "interlace gke adopt"),
        ("compute-error-412-org-policy", "conditionNotMet", "exception"),
        ("container-error-400-autoupgrade-channel", None, "maintenance exclusion"),
        ("container-error-400-has-operation", "CLUSTER_ALREADY_HAS_OPERATION", "Wait until that has ended"),
        ("container-error-403-quota", None, "have it raised"),
        ("container-error-429-concurrent-operations", None, "--parallel"),
    ],
)
def test_recorded_errors_are_told_with_a_remedy(name: str, reason: str | None, words: str) -> None:
    answer = recorded(name)
    found = refusal(answer)
    assert found.status == answer.status
    assert found.message == answer.body["error"]["message"]
    assert reason is None or found.reason == reason
    error = ApiError(BLIND, found)
    assert words in error.remedy
    assert " ".join(found.message.split()) in str(error)


def test_a_busy_cluster_names_the_operation_that_is_in_the_way() -> None:
    found = refusal(recorded("container-error-400-has-operation"))
    assert found.busy
    assert found.operation == "operation-1700000000002-11111111-2222-3333-4444-555555555555"


@pytest.mark.parametrize("body", [None, "", "<html>bad gateway</html>", [], {"error": "no"}, {"error": {}}])
def test_an_error_of_any_form_has_a_message(body: Any) -> None:
    found = refusal(Answer(status=502, body=body))
    assert found.message


TABLE: list[tuple[Request, Answer | None, Next]] = [
    (GET, None, Next.AGAIN),
    (WAIT, None, Next.AGAIN),
    (KNOWN, None, Next.LOOK),
    (BLIND, None, Next.LOOK),
    (GET, Answer(status=503), Next.AGAIN),
    (KNOWN, Answer(status=503), Next.AGAIN),
    (BLIND, Answer(status=503), Next.LOOK),
    (KNOWN, Answer(status=500), Next.LOOK),
    (KNOWN, Answer(status=502), Next.LOOK),
    (GET, Answer(status=502), Next.AGAIN),
    (BLIND, Answer(status=429), Next.AGAIN),
    (KNOWN, Answer(status=429), Next.AGAIN),
    (GET, Answer(status=401), Next.RENEW),
    (BLIND, Answer(status=400), Next.STOP),
    (BLIND, Answer(status=403), Next.STOP),
    (KNOWN, Answer(status=409), Next.STOP),
    (GET, Answer(status=404), Next.STOP),
    (BLIND, Answer(status=403, body={"error": {"errors": [{"reason": "rateLimitExceeded"}]}}), Next.AGAIN),
]


@pytest.mark.parametrize(("request_", "answer", "step"), TABLE)
def test_a_mutation_is_sent_again_only_where_that_is_safe(request_: Request, answer: Answer | None, step: Next) -> None:
    assert what_next(request_, answer) is step


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0),
        ("Thu, 01 Jan 2026 00:00:30 GMT", 30.0),
        ("Wed, 31 Dec 2025 00:00:00 GMT", 0.0),
        ("soon", None),
        ("", None),
        ("-3", None),
        ("١", None),
    ],
)
def test_the_hint_of_the_server_is_read(text: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": text}, now=datetime(2026, 1, 1, tzinfo=UTC)) == seconds


@given(text=st.text(max_size=40))
def test_no_hint_breaks_anything(text: str) -> None:
    found = retry_after({"retry-after": text})
    assert found is None or found >= 0


@given(tries=st.integers(1, 1000), chance=st.floats(0, 1), asked=st.none() | st.floats(0, 600))
def test_pauses_keep_what_was_asked_and_do_not_grow_for_ever(tries: int, chance: float, asked: float | None) -> None:
    seconds = pause(tries, asked=asked, chance=chance)
    assert (asked or 0.0) <= seconds <= (asked or 0.0) + 30


def test_a_date_to_come_back_at_is_measured_by_the_clock_of_the_server() -> None:
    headers = {"retry-after": "Thu, 01 Jan 2099 00:00:30 GMT", "date": "Thu, 01 Jan 2099 00:00:00 GMT"}
    assert retry_after(headers) == 30.0


def test_what_a_server_says_reaches_the_terminal_as_one_line_of_text() -> None:
    hostile = "quota\x1b[2J\nexceeded\x07"
    errors = [
        ApiError(GET, refusal(Answer(status=400, body={"error": {"message": hostile}}))),
        OperationFailed("network/n", code="QUOTA", message=hostile),
    ]
    for error in errors:
        assert str(error).isprintable()
        assert "quota\N{REPLACEMENT CHARACTER}[2J exceeded" in str(error)
