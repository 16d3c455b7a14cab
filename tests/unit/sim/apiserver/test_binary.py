"""Bodies in the binary encoding read as the JSON of the same object."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.sim.apiserver import binary


def varint(value: int) -> bytes:
    """A number, as the wire has it."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    """A numeric field."""
    return varint(field << 3) + varint(value)


def text(field: int, value: bytes | str) -> bytes:
    """A field of bytes: a string or a message."""
    raw = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(raw)) + raw


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    """What clients put around an object."""
    return binary.MAGIC + text(1, text(1, api_version) + text(2, kind)) + text(2, raw)


def test_a_deployment_is_read_with_empty_fields_left_out_and_set_zeros_kept() -> None:
    meta = text(1, "d") + text(2, "") + text(11, text(1, "app") + text(2, "x"))
    container = text(1, "main") + text(2, "a.example/x:1") + text(3, "sleep") + text(3, "5") + text(5, "")
    template = text(2, text(2, container) + number(4, 30))
    spec = number(1, 0) + text(3, template) + number(5, 0) + number(7, 0)
    assert binary.decode(envelope("apps/v1", "Deployment", text(1, meta) + text(2, spec))) == {
        "kind": "Deployment",
        "apiVersion": "apps/v1",
        "metadata": {"name": "d", "labels": {"app": "x"}},
        "spec": {
            "replicas": 0,
            "template": {
                "spec": {
                    "containers": [
                        {"name": "main", "image": "a.example/x:1", "command": ["sleep", "5"]},
                    ],
                    "terminationGracePeriodSeconds": 30,
                }
            },
        },
    }


def test_structs_that_json_inlines_are_inlined() -> None:
    volume = text(1, "v") + text(2, text(1, text(1, "/x")))
    read = binary.decode(envelope("v1", "Pod", text(2, text(1, volume))))
    assert read["spec"] == {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}


def test_leaves_have_their_json_form() -> None:
    secret = binary.decode(envelope("v1", "Secret", text(2, text(1, "k") + text(2, b"\x00\xff"))))
    assert secret["data"] == {"k": "AP8="}
    lease = text(2, text(1, "me") + number(2, 15) + text(4, number(1, 1_767_225_600) + number(2, 5_000)))
    assert binary.decode(envelope("coordination.k8s.io/v1", "Lease", lease))["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "renewTime": "2026-01-01T00:00:00.000005Z",
    }
    budget = text(2, text(1, number(1, 1) + text(3, "50%")))
    assert binary.decode(envelope("policy/v1", "PodDisruptionBudget", budget))["spec"] == {"minAvailable": "50%"}
    options = binary.decode(envelope("v1", "DeleteOptions", number(1, 0)))
    assert options == {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}


@given(st.integers(-(2**31), 2**31 - 1))
def test_numbers_keep_their_sign(value: int) -> None:
    body = envelope("apps/v1", "Deployment", text(2, number(1, value)))
    assert binary.decode(body)["spec"] == {"replicas": value}


@pytest.mark.parametrize(
    "body",
    [
        binary.MAGIC,
        binary.MAGIC + b"\xff",
        binary.MAGIC + text(1, text(1, "v1") + text(2, "Nothing")),
        envelope("v1", "Pod", b"\x0a\xff"),
        envelope("v1", "Pod", b"\x0b"),
    ],
)
def test_a_damaged_body_is_a_value_error(body: bytes) -> None:
    with pytest.raises(ValueError, match="the binary body cannot be read"):
        binary.decode(body)


@given(st.binary(max_size=60))
def test_no_body_raises_anything_else(raw: bytes) -> None:
    for body in (binary.MAGIC + raw, envelope("v1", "Pod", raw)):
        try:
            binary.decode(body)
        except ValueError:
            continue
