"""The Pods of the GKE guide: bare, as they are before the guide adds anything, and whole, as it prints them; and any
Pod as fields and values, in the words of ``tests/data/seeds/gpudirect-*.tsv``.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from interlace.fabric.devices import PREFIX, read

TABLES = Path(__file__).parents[2] / "data" / "seeds"
Json = dict[str, Any]

BARE: dict[str, Json] = {
    "a3-mega": {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a3plus-workloads"},
        "spec": {
            "containers": [{"name": "main-application-container", "resources": {"limits": {"nvidia.com/gpu": 8}}}]
        },
    },
    "a3-high": {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a3-gpu-workloads-example", "labels": {"name": "a3-gpu-workloads-example"}},
        "spec": {"containers": [{"name": "a3-gpu-workloads-example", "resources": {"limits": {"nvidia.com/gpu": 8}}}]},
    },
}


def bare(family: str) -> Json:
    """A copy."""
    return copy.deepcopy(BARE[family])


def whole(family: str, *, image: str) -> Json:
    """The Pod as the guide prints it, its indentation put right."""
    rows = dict(rows_of(family))
    pod = bare(family)
    daemon = rows["daemon.name"]
    devices = [value for field, value in rows.items() if field.startswith("devices[")]
    interfaces = [value.split("=") for field, value in rows.items() if field.startswith("interfaces[")]
    pod["metadata"]["annotations"] = {
        f"{PREFIX}{daemon}": "".join(f"- path: {device}\n" for device in devices),
        "networking.gke.io/default-interface": rows["default-interface"],
        "networking.gke.io/interfaces": json.dumps(
            [{"interfaceName": interface, "network": network} for interface, network in interfaces]
        ),
    }
    mega = family == "a3-mega"
    sidecar: Json = {
        "name": daemon,
        "image": image,
        "imagePullPolicy": "Always",
        "securityContext": {"capabilities": {"add": ["NET_ADMIN", "NET_BIND_SERVICE"] if mega else ["NET_ADMIN"]}},
        "volumeMounts": _mounts(rows, "daemon"),
        "env": _env(rows, "daemon"),
    }
    if mega:
        sidecar |= {
            "command": ["/bin/sh", "-c"],
            "args": ["".join(f"{rows[f'daemon.args[{index}]']}\n" for index in range(3))],
        }
    else:
        sidecar["command"] = [rows[f"daemon.command[{index}]"] for index in range(9)]
    main = pod["spec"]["containers"][0]
    main |= {"volumeMounts": _mounts(rows, "main"), "env": _env(rows, "main")}
    pod["spec"]["containers"].insert(0, sidecar)
    volumes = [field[8:-6] for field in rows if field.startswith("volumes[") and field.endswith(".name")]
    pod["spec"]["volumes"] = [
        {"name": name, "hostPath": {"path": rows[f"volumes[{name}].hostPath"]}}
        if f"volumes[{name}].hostPath" in rows
        else {"name": name, "emptyDir": None}
        for name in volumes
    ]
    return pod


def rows_of(family: str) -> list[tuple[str, str]]:
    """Field and value of the family's table."""
    name = "gpudirect-tcpxo.tsv" if family == "a3-mega" else "gpudirect-tcpx.tsv"
    lines = (TABLES / name).read_text().splitlines()
    return [(field, value) for field, _, value in (line.partition("\t") for line in lines if line[0] != "#")]


def fields(pod: Json) -> dict[str, str]:
    """A Pod in the words of the tables; what they have no word for comes under its own path."""
    return dict(_fields(pod))


def _fields(pod: Json) -> Iterator[tuple[str, str]]:
    metadata, spec = pod["metadata"], pod["spec"]
    yield from ((key, pod[key]) for key in ("apiVersion", "kind"))
    yield "name", metadata["name"]
    yield from ((f"labels[{key}]", value) for key, value in metadata.get("labels", {}).items())
    for key, value in metadata.get("annotations", {}).items():
        if key.startswith(PREFIX):
            yield from ((f"devices[{device.path}]", device.path) for device in read(value).devices)
        elif key.endswith("/interfaces"):
            for each in json.loads(value):
                yield f"interfaces[{each['interfaceName']}]", f"{each['interfaceName']}={each['network']}"
        elif key.endswith("/default-interface"):
            yield "default-interface", value
        else:
            yield f"annotations[{key}]", value
    for place in ("initContainers", "containers"):
        for container in spec.get(place, []):
            role = "daemon" if container["name"].endswith("-daemon") else "main"
            if role == "daemon" and place != "containers":
                yield "daemon.place", place
            yield from ((f"{role}.{field}", value) for field, value in _container(container))
    for volume in spec.get("volumes", []):
        yield f"volumes[{volume['name']}].name", volume["name"]
        for kind in volume.keys() - {"name"}:
            source = volume[kind] or {}
            yield f"volumes[{volume['name']}].{kind}", source.get("path", json.dumps(source) if source else "{}")
    for key in spec.keys() - {"initContainers", "containers", "volumes"}:
        yield key, json.dumps(spec[key])


def _container(container: Json) -> Iterator[tuple[str, str]]:
    for key, value in container.items():
        match key:
            case "volumeMounts":
                for mount in value:
                    at = mount["mountPath"]
                    yield f"mounts[{at}].name", mount["name"]
                    yield f"mounts[{at}].path", at
                    if "readOnly" in mount:
                        yield f"mounts[{at}].readOnly", json.dumps(mount["readOnly"])
            case "env":
                for each in value:
                    yield f"env[{each['name']}].name", each["name"]
                    yield f"env[{each['name']}].value", each["value"]
            case "resources":
                yield from ((f"limits[{name}]", str(amount)) for name, amount in value["limits"].items())
            case "securityContext":
                yield from ((f"capabilities[{name}]", name) for name in value["capabilities"]["add"])
            case "args":
                for text in value:
                    yield from ((f"args[{index}]", line) for index, line in enumerate(text.splitlines()))
            case "command" if len(value) > 3:
                yield from ((f"command[{index}]", word) for index, word in enumerate(value))
            case _:
                yield key, value if isinstance(value, str) else json.dumps(value)


def _mounts(rows: dict[str, str], role: str) -> list[Json]:
    paths = [value for field, value in rows.items() if field.startswith(f"{role}.mounts[") and field.endswith("].path")]
    return [
        {
            "name": rows[f"{role}.mounts[{path}].name"],
            "mountPath": path,
            **({"readOnly": True} if f"{role}.mounts[{path}].readOnly" in rows else {}),
        }
        for path in paths
    ]


def _env(rows: dict[str, str], role: str) -> list[Json]:
    names = [value for field, value in rows.items() if field.startswith(f"{role}.env[") and field.endswith("].name")]
    return [{"name": name, "value": rows[f"{role}.env[{name}].value"]} for name in names]
