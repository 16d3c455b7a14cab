"""``interlace inject --require-plugin``: daemons that a runtime does not make without their injector."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from interlace.cli.main import main
from interlace.pods.starting import REQUIRED

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "train"},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "docker.io/library/train:1",
                "command": ["train"],
                "resources": {"limits": {"nvidia.com/gpu": 8}},
            }
        ]
    },
}


def test_the_name_stands_in_an_annotation_of_the_daemon(tmp_path: Path) -> None:
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(POD))
    found = CliRunner().invoke(
        main, ["inject", "-f", str(file), "--family", "a3-mega", "--require-plugin", "interlace"]
    )
    assert found.exit_code == 0, found.output
    annotations = json.loads(found.stdout)["metadata"]["annotations"]
    assert annotations[f"{REQUIRED}tcpxo-daemon"] == '["interlace"]'


def test_what_is_no_name_is_refused() -> None:
    found = CliRunner().invoke(main, ["inject", "-f", "-", "--require-plugin", "a b"], input="{}")
    assert found.exit_code == 2
    assert "--require-plugin: 'a b' is no name" in found.stderr
