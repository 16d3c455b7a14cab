"""Tokens say who asks, and stop saying it when their owner is gone."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.sim.apiserver.auth import AUDIENCE, Tokens, UserInfo


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class Objects:
    """What exists: uids by resource, namespace and name."""

    def __init__(self) -> None:
        self.uids = {
            ("serviceaccounts", "interlace-system", "agent"): "sa-uid",
            ("pods", "interlace-system", "agent-x"): "pod-uid",
            ("nodes", "", "node-1"): "node-uid",
        }

    def __call__(self, resource: str, *, namespace: str, name: str, uid: str) -> bool:
        return self.uids.get((resource, namespace, name)) == uid


def bound(tokens: Tokens, **changes: Any) -> str:
    arguments: dict[str, Any] = {"pod": ("agent-x", "pod-uid"), "node": ("node-1", "node-uid"), "seconds": 600}
    return tokens.issue_bound("interlace-system", "agent", "sa-uid", **(arguments | changes))[0]


def claims_of(token: str) -> dict[str, Any]:
    body = token.split(".")[1]
    decoded: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return decoded


def test_a_pod_bound_token_names_service_account_pod_and_node() -> None:
    tokens = Tokens()
    user = tokens.authenticate(bound(tokens), still_there=Objects())
    assert user is not None
    assert user.username == "system:serviceaccount:interlace-system:agent"
    assert user.uid == "sa-uid"
    assert user.groups == [
        "system:serviceaccounts",
        "system:serviceaccounts:interlace-system",
        "system:authenticated",
    ]
    assert user.node == "node-1"
    assert user.extra["authentication.kubernetes.io/node-uid"] == ["node-uid"]
    assert user.extra["authentication.kubernetes.io/pod-name"] == ["agent-x"]
    assert user.extra["authentication.kubernetes.io/pod-uid"] == ["pod-uid"]
    assert user.extra["authentication.kubernetes.io/credential-id"][0].startswith("JTI=")
    assert user.service_account == ("interlace-system", "agent")


def test_the_claims_have_the_layout_of_the_real_server() -> None:
    clock = Clock()
    claims = claims_of(bound(Tokens(clock=clock)))
    assert claims.pop("jti")
    assert claims == {
        "aud": [AUDIENCE],
        "exp": 1_800_000_600,
        "iat": 1_800_000_000,
        "iss": AUDIENCE,
        "nbf": 1_800_000_000,
        "sub": "system:serviceaccount:interlace-system:agent",
        "kubernetes.io": {
            "namespace": "interlace-system",
            "serviceaccount": {"name": "agent", "uid": "sa-uid"},
            "pod": {"name": "agent-x", "uid": "pod-uid"},
            "node": {"name": "node-1", "uid": "node-uid"},
        },
    }


@pytest.mark.parametrize("gone", ["serviceaccounts", "pods"])
def test_a_token_dies_with_its_account_and_with_its_pod(gone: str) -> None:
    tokens, objects = Tokens(), Objects()
    token = bound(tokens)
    objects.uids = {key: uid for key, uid in objects.uids.items() if key[0] != gone}
    assert tokens.authenticate(token, still_there=objects) is None


def test_a_pod_of_the_same_name_does_not_inherit_the_token() -> None:
    tokens, objects = Tokens(), Objects()
    token = bound(tokens)
    objects.uids["pods", "interlace-system", "agent-x"] = "another-uid"
    assert tokens.authenticate(token, still_there=objects) is None


def test_the_node_is_looked_up_only_for_a_token_bound_to_the_node_alone() -> None:
    tokens, objects = Tokens(), Objects()
    with_pod, without_pod = bound(tokens), bound(tokens, pod=None)
    del objects.uids["nodes", "", "node-1"]
    assert tokens.authenticate(with_pod, still_there=objects) is not None
    assert tokens.authenticate(without_pod, still_there=objects) is None


def test_a_token_expires_a_minute_after_its_time() -> None:
    clock = Clock()
    tokens = Tokens(clock=clock)
    token = bound(tokens)
    clock.now += 659
    assert tokens.authenticate(token, still_there=Objects()) is not None
    clock.now += 2
    assert tokens.authenticate(token, still_there=Objects()) is None


def test_a_token_for_another_audience_is_not_accepted() -> None:
    tokens = Tokens()
    token = bound(tokens, audiences=["vault"])
    assert tokens.authenticate(token, still_there=Objects()) is None
    assert tokens.authenticate(token, still_there=Objects(), audiences=["vault"]) is not None


def test_a_token_of_another_server_is_not_accepted_but_one_of_the_same_key_is() -> None:
    first = Tokens()
    token = bound(first)
    assert Tokens().authenticate(token, still_there=Objects()) is None
    assert Tokens(key=first.key).authenticate(token, still_there=Objects()) is not None


@given(position=st.integers(0, 10_000), letter=st.sampled_from("AbZ9-_."))
def test_a_changed_token_is_never_accepted_as_another(position: int, letter: str) -> None:
    tokens = Tokens()
    token = bound(tokens)
    # The last character carries bits that no decoder reads.
    index = position % (len(token) - 1)
    changed = token[:index] + letter + token[index + 1 :]
    user = tokens.authenticate(changed, still_there=Objects())
    assert (user is not None) == (changed == token)


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "....", "é.é.é", "e30.e30.e30"])
def test_nonsense_is_nobody(token: str) -> None:
    assert Tokens().authenticate(token, still_there=Objects()) is None


def test_a_token_without_a_signature_is_refused_whatever_it_claims() -> None:
    tokens = Tokens()
    head = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    body = bound(tokens).split(".")[1]
    assert tokens.authenticate(f"{head}.{body}.", still_there=Objects()) is None


def test_a_static_token_stands_for_its_user_and_for_all_who_are_known() -> None:
    tokens = Tokens()
    token = tokens.issue("kate", ["team"])
    assert tokens.authenticate(token, still_there=Objects()) == UserInfo(
        "kate", groups=["team", "system:authenticated"]
    )
    controller = tokens.authenticate(
        tokens.issue("system:serviceaccount:kube-system:job-controller"), still_there=Objects()
    )
    assert controller is not None
    assert "system:serviceaccounts:kube-system" in controller.groups


def test_only_a_key_on_the_right_curve_signs() -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP384R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with pytest.raises(ValueError, match="P-256"):
        Tokens(key=key)
