"""The table of built-in types against the document that the real server publishes."""

from __future__ import annotations

import json
from importlib import resources

from interlace.sim.apiserver.typegen import build
from interlace.sim.plane import Plane
from tests.contract.wire import admin


async def test_the_table_of_types_is_that_of_the_real_server(real_plane: Plane) -> None:
    async with admin(real_plane) as wire:
        swagger = (await wire("GET", "/openapi/v2")).body
    published = build(swagger, {}, {}, {}, real_plane.version)
    table = json.loads(resources.files("interlace.sim.apiserver").joinpath("builtin.json").read_bytes())
    assert table["kinds"] == published["kinds"]
    assert table["version"] == published["version"]
    assert table["types"].keys() == published["types"].keys()
    for name, entry in published["types"].items():
        for key, value in entry.items():
            assert table["types"][name][key] == value, name
