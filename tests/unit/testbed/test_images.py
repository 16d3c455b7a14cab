"""Images without a registry: what a container runtime reads of them."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from testbed.images import Root, helper_root, write_image


@pytest.fixture
def root(tmp_path: Path) -> Root:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o700)
    return Root(
        files={"opt/a/program": program},
        links={"bin/program": "../opt/a/program"},
        texts={"bin/run": "#!/bin/sh\n"},
        command=["run"],
        env={"PATH": "/bin"},
    )


def read(image: Path) -> tuple[dict[str, Any], dict[str, Any], tarfile.TarFile]:
    """Manifest, config and layer; each blob has the digest and the size that is said of it."""
    blobs: dict[str, bytes] = {}
    with tarfile.open(image) as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member)
            assert file is not None
            blobs[member.name] = file.read()
    assert json.loads(blobs["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}

    def blob(descriptor: dict[str, Any]) -> bytes:
        content = blobs["blobs/" + descriptor["digest"].replace(":", "/")]
        assert descriptor["digest"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
        assert descriptor["size"] == len(content)
        return content

    (described,) = json.loads(blobs["index.json"])["manifests"]
    assert described["annotations"]["io.containerd.image.name"] == "localhost/team/thing:7"
    manifest = json.loads(blob(described))
    (layer,) = manifest["layers"]
    config = json.loads(blob(manifest["config"]))
    assert config["rootfs"]["diff_ids"] == [layer["digest"]]
    return manifest, config, tarfile.open(fileobj=io.BytesIO(blob(layer)))


def test_an_image_is_whole_and_says_how_it_starts(root: Root, tmp_path: Path) -> None:
    write_image(tmp_path / "image.tar", name="localhost/team/thing:7", root=root)
    _, config, layer = read(tmp_path / "image.tar")
    with layer:
        members = {member.name: member for member in layer.getmembers()}
    assert config["config"] == {"Cmd": ["run"], "Env": ["PATH=/bin"]}
    assert config["os"] == "linux"
    assert members["opt/a/program"].mode == members["bin/run"].mode == 0o755
    assert members["bin/program"].linkname == "../opt/a/program"
    assert members["tmp"].mode == 0o1777


def test_folders_come_once_and_before_what_lies_in_them(root: Root, tmp_path: Path) -> None:
    write_image(tmp_path / "image.tar", name="localhost/team/thing:7", root=root)
    _, _, layer = read(tmp_path / "image.tar")
    with layer:
        names = layer.getnames()
    assert len(names) == len(set(names))
    for name in names:
        parent = name.rpartition("/")[0]
        assert not parent or names.index(parent) < names.index(name)


def test_the_same_files_give_the_same_image(root: Root, tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_image(tmp_path / name, name="localhost/team/thing:7", root=root)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_helper_is_callable_by_each_of_its_names(tmp_path: Path) -> None:
    helper = tmp_path / "helper"
    helper.touch(mode=0o755)
    made = helper_root(helper, verbs=("mnnvl-workload",))
    assert made.links == {"bin/mnnvl-workload": "helper"}
