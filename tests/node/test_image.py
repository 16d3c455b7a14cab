"""Our own image, as the nodes of this tier run it."""

from __future__ import annotations

import json
import sys
import tarfile

import pytest

from tests.node.world import Parts


@pytest.fixture(scope="module")
def names(parts: Parts) -> set[str]:
    """All paths in its layer."""
    with tarfile.open(parts.own) as image:
        members = {member.name: member for member in image.getmembers()}

        def read(name: str) -> bytes:
            file = image.extractfile(members[name])
            assert file is not None
            return file.read()

        def blob(digest: str) -> str:
            return "blobs/" + digest.replace(":", "/")

        (described,) = json.loads(read("index.json"))["manifests"]
        (layer,) = json.loads(read(blob(described["digest"])))["layers"]
        with tarfile.open(fileobj=image.extractfile(members[blob(layer["digest"])])) as files:
            return set(files.getnames())


def test_it_has_what_the_components_import_and_no_tools_of_development(names: set[str]) -> None:
    packages = {name.partition("site-packages/")[2].partition("/")[0] for name in names if "site-packages" in name}
    assert {"interlace", "aiohttp", "click", "grpclib", "msgspec", "google", "yaml", "pynvml.py"} <= packages
    assert "cryptography" in packages, "what the webhook needs"
    assert not packages & {"pytest", "mypy", "hypothesis", "ruff", "grpc_tools", "pip", "matplotlib", "testbed"}


@pytest.mark.parametrize("optimization", ["", ".opt-2"])
def test_it_is_compiled_as_it_is_started_so_that_a_read_only_root_starts_fast(
    names: set[str], optimization: str
) -> None:
    """The components of nodes run without docstrings, for their memory's sake."""
    wanted = ("interlace/node/{}/agent", "aiohttp/{}/client", "msgspec/{}/inspect")
    tag = f"{sys.implementation.cache_tag}{optimization}.pyc"
    library = f"usr/local/lib/python{sys.version_info.major}.{sys.version_info.minor}"
    paths = {f"{library}/site-packages/{each.format('__pycache__')}.{tag}" for each in wanted}
    paths.add(f"{library}/asyncio/__pycache__/events.{tag}")
    assert paths <= names
