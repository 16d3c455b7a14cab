from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from interlace.api.computedomain import DRIVER, ComputeDomainChannelConfig
from interlace.api.resource import ResourceClaimTemplate
from interlace.domains.template import own_or_free, parameters, template
from interlace.kube.codec import encode_object
from interlace.sim.apiserver.cel import Selector
from tests.unit.domains.objects import UID, domain

PARAMETERS = (
    f'{{"allocationMode":"Single","apiVersion":"resource.nvidia.com/v1beta1","domainID":"{UID}",'
    '"kind":"ComputeDomainChannelConfig"}'
).encode()


def body(**options: Any) -> dict[str, Any]:
    made = domain(**options)
    assert made.spec is not None
    found: dict[str, Any] = json.loads(encode_object(template(made, spec=made.spec), ResourceClaimTemplate.resource))
    return found


def test_the_template_is_that_of_the_existing_api_with_a_selector_and_a_label_more() -> None:
    assert body() == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {
            "name": "cd-rct",
            "namespace": "team",
            "labels": {
                "resource.nvidia.com/computeDomain": UID,
                "resource.nvidia.com/computeDomainTarget": "Workload",
            },
            "finalizers": ["resource.nvidia.com/computeDomain"],
        },
        "spec": {
            "metadata": {"labels": {"resource.nvidia.com/computeDomain": UID}},
            "spec": {
                "devices": {
                    "requests": [
                        {
                            "name": "channel",
                            "exactly": {
                                "deviceClassName": "compute-domain-default-channel.nvidia.com",
                                "selectors": [{"cel": {"expression": own_or_free(UID)}}],
                            },
                        }
                    ],
                    "config": [
                        {
                            "requests": ["channel"],
                            "opaque": {"driver": "compute-domain.nvidia.com", "parameters": json.loads(PARAMETERS)},
                        }
                    ],
                }
            },
        },
    }


def test_the_parameters_go_out_compact_and_sorted_byte_for_byte() -> None:
    made = domain()
    assert made.spec is not None
    sent = encode_object(template(made, spec=made.spec), ResourceClaimTemplate.resource)
    assert b'"parameters":' + PARAMETERS + b"}" in sent


@pytest.mark.parametrize("mode", ["Single", "All"])
def test_the_agents_strict_decoder_accepts_the_parameters(mode: str) -> None:
    config = msgspec.json.decode(parameters(UID, allocation_mode=mode), type=ComputeDomainChannelConfig)
    assert config == ComputeDomainChannelConfig(domain_id=UID, allocation_mode=mode)


def test_the_allocation_mode_of_the_domain_is_passed_on() -> None:
    config = body(mode="All")["spec"]["spec"]["devices"]["config"][0]
    assert config["opaque"]["parameters"]["allocationMode"] == "All"


@pytest.mark.parametrize(
    ("attributes", "matches"),
    [
        ({"type": "channel", "domain": ""}, True),
        ({"type": "channel", "domain": UID}, True),
        ({"type": "channel", "domain": "somebody-else"}, False),
        ({"type": "channel"}, True),
    ],
)
def test_the_selector_takes_free_and_own_devices_and_survives_a_missing_attribute(
    attributes: dict[str, str], matches: bool
) -> None:
    device = {"name": "channel-0", "attributes": {key: {"string": value} for key, value in attributes.items()}}
    assert Selector(own_or_free(UID)).matches(device, driver=DRIVER) is matches
