"""Objects of ``resource.k8s.io`` and what both servers say of those that are wrong."""

from __future__ import annotations

from typing import Any

from interlace.sim.apiserver.raw import RawJson

DRIVER = "compute-domain.nvidia.com"


def request(**changes: Any) -> dict[str, Any]:
    exactly = {"deviceClassName": f"channel.{DRIVER}", "allocationMode": "ExactCount", "count": 1}
    return {"name": "channel", "exactly": exactly | changes}


def config(**changes: Any) -> dict[str, Any]:
    return {"opaque": {"driver": DRIVER, "parameters": RawJson(b'{"domainID":"u"}')} | changes}


def claim(*requests: dict[str, Any], **devices: Any) -> dict[str, Any]:
    found = {"requests": list(requests) or [request()], "config": [config() | {"requests": ["channel"]}]}
    return {"metadata": {"name": "c"}, "spec": {"devices": found | devices}}


def template(*requests: dict[str, Any], **devices: Any) -> dict[str, Any]:
    return {"metadata": {"name": "t"}, "spec": {"spec": claim(*requests, **devices)["spec"]}}


def device(**changes: Any) -> dict[str, Any]:
    attributes = {"type": {"string": "channel"}, "id": {"int": 0}, "domain": {"string": ""}, "clique": {"string": "c"}}
    return {"name": "channel-0", "attributes": attributes} | changes


def resource_slice(*devices: dict[str, Any], **spec: Any) -> dict[str, Any]:
    pool = {"name": "node-1", "generation": 1, "resourceSliceCount": 1}
    found = {"driver": DRIVER, "nodeName": "node-1", "pool": pool, "devices": list(devices) or [device()]}
    return {"metadata": {"name": "s"}, "spec": {k: v for k, v in (found | spec).items() if v is not None}}


ONE_OF = "exactly one of `exactly` or `firstAvailable` is required"


BAD_CLAIMS: list[tuple[dict[str, Any], str]] = [
    (claim(request(deviceClassName="")), "spec.devices.requests[0].exactly.deviceClassName: Required value"),
    (claim({"name": "channel"}), f"spec.devices.requests[0]: Required value: {ONE_OF}"),
    (
        claim(request() | {"firstAvailable": [{"name": "a"}]}),
        f"spec.devices.requests[0]: Invalid value: null: {ONE_OF}, but multiple fields are set",
    ),
    (claim(request(), request()), 'spec.devices.requests[1]: Duplicate value: "channel"'),
    (
        claim(request(count=-1)),
        "spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater than zero",
    ),
    (
        claim(request(allocationMode="All")),
        (
            "spec.devices.requests[0].exactly.count: Invalid value: 1: "
            "must not be specified when allocationMode is 'All'"
        ),
    ),
    (
        claim(request(allocationMode="Some")),
        (
            'spec.devices.requests[0].exactly.allocationMode: Unsupported value: "Some": '
            'supported values: "All", "ExactCount"'
        ),
    ),
    (
        claim(request(selectors=[{}])),
        "spec.devices.requests[0].exactly.selectors[0].cel: Required value",
    ),
    (
        claim(request(selectors=[{"cel": {"expression": "device.driver"}}])),
        (
            "spec.devices.requests[0].exactly.selectors[0].cel.expression: Invalid value: "
            '"device.driver": must evaluate to bool or the unknown type, not string'
        ),
    ),
    (
        claim(request(selectors=[{"cel": {"expression": "x" * 10241}}])),
        "spec.devices.requests[0].exactly.selectors[0].cel.expression: Too long: may not be more than 10240 bytes",
    ),
    (
        claim(*[request() | {"name": f"r{n}"} for n in range(33)]),
        "spec.devices.requests: Too many: 33: must have at most 32 items",
    ),
    (
        claim(config=[config() | {"requests": ["other"]}]),
        (
            'spec.devices.config[0].requests[0]: Invalid value: "other": must be the name of a request in the '
            "claim or the name of a request and a subrequest separated by '/'"
        ),
    ),
    (claim(config=[{}]), "spec.devices.config[0].opaque: Required value"),
    (claim(config=[config(parameters=None)]), "spec.devices.config[0].opaque.parameters: Required value"),
    (
        claim(config=[config(parameters="text")]),
        'spec.devices.config[0].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object',
    ),
    (
        claim(config=[config(parameters=RawJson(b'{"a":"' + b"x" * 10240 + b'"}'))]),
        "spec.devices.config[0].opaque.parameters: Too long: may not be more than 10240 bytes",
    ),
    (claim(config=[config(driver="")]), "spec.devices.config[0].opaque.driver: Required value"),
    (
        claim(constraints=[{"requests": ["channel"], "matchAttribute": "clique"}]),
        (
            'spec.devices.constraints[0].matchAttribute: Invalid value: "clique": '
            "a fully qualified name must be a domain and a name separated by a slash"
        ),
    ),
    (
        claim(constraints=[{}]),
        (
            'spec.devices.constraints[0]: Required value: exactly one of "matchAttribute" or "distinctAttribute" '
            "is required, but multiple fields are set"
        ),
    ),
]

"""A claim, and one of the findings on it."""

PLACE = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"


BAD_SLICES: list[tuple[dict[str, Any], str]] = [
    (resource_slice(nodeName=None), f"spec: Required value: {PLACE}"),
    (
        resource_slice(allNodes=True),
        f'spec: Invalid value: "{{`nodeName`, `allNodes`}}": {PLACE}, but multiple fields are set',
    ),
    (
        resource_slice(nodeName=""),
        'spec.nodeName: Invalid value: "": must be either unset or set to a non-empty string',
    ),
    (resource_slice(allNodes=False), "spec.allNodes: Invalid value: false: must be either unset or set to true"),
    (resource_slice(driver=""), "spec.driver: Required value"),
    (
        resource_slice(pool={"name": "p", "generation": -1, "resourceSliceCount": 1}),
        "spec.pool.generation: Invalid value: -1: must be greater than or equal to zero",
    ),
    (
        resource_slice(pool={"name": "p", "generation": 1}),
        "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero",
    ),
    (resource_slice(pool={"resourceSliceCount": 1}), "spec.pool.name: Required value"),
    (resource_slice(device(), device()), 'spec.devices[1]: Duplicate value: "channel-0"'),
    (resource_slice(device(name="")), 'spec.devices[0].name: Invalid value: "": a lowercase RFC 1123 label must'),
    (
        resource_slice(device(attributes={"id": {"int": 0, "string": "x"}})),
        'spec.devices[0].attributes[id]: Invalid value: {"IntValue":0,"BoolValue":null,"StringValue":"x",',
    ),
    (
        resource_slice(device(attributes={"id": {}})),
        'spec.devices[0].attributes[id]: Invalid value: "": exactly one value must be specified',
    ),
    (
        resource_slice(device(attributes={"v": {"version": "1.0"}})),
        'spec.devices[0].attributes[v].version: Invalid value: "1.0": must be a string compatible with semver.org',
    ),
    (
        resource_slice(device(attributes={"s": {"string": "x" * 65}})),
        "spec.devices[0].attributes[s].string: Too long: may not be more than 64 bytes",
    ),
    (
        resource_slice(device(attributes={"a b": {"int": 1}})),
        'spec.devices[0].attributes: Invalid value: "a b": a valid C identifier must start with',
    ),
    (
        resource_slice(device(attributes={"/x": {"int": 1}})),
        'spec.devices[0].attributes: Invalid value: "": the domain must not be empty',
    ),
    (
        resource_slice(device(attributes={f"a{n}": {"int": n} for n in range(33)})),
        "spec.devices[0]: Invalid value: 33: the total number of attributes and capacities must not exceed 32",
    ),
    (
        resource_slice(*[device(name=f"channel-{n}") for n in range(129)]),
        "spec.devices: Too many: 129: must have at most 128 items",
    ),
    (
        resource_slice(*[device(name=f"channel-{n}", taints=[{"key": "a"}]) for n in range(65)]),
        "spec.devices: Too many: 65: must have at most 64 items",
    ),
]

"""A slice, and how one of the findings on it begins."""
