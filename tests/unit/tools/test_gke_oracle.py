"""The comparison with gcloud: with a program of that name which sends what it is told, and without any."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from tools import gke_oracle
from tools.gke_recorder import recording

CASE = "net-seed-1"
RECORDED = Path(__file__).parents[2] / "data" / "gke" / "golden" / f"{CASE}.json"

PROGRAM = """#!{python}
import json, os, sys, urllib.request
assert sys.argv[1:3] == ["compute", "networks"] and os.environ["CLOUDSDK_AUTH_DISABLE_CREDENTIALS"] == "true"
base = os.environ["CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE"]
body = json.loads({body!r})
url = base + "projects/example-project/global/networks"
request = urllib.request.Request(url + "?alt=json", data=json.dumps(body).encode(), method="POST")
operation = json.load(urllib.request.urlopen(request, timeout=30))
assert operation["status"] == "RUNNING"
wait = urllib.request.Request(operation["selfLink"] + "/wait?alt=json", data=b"", method="POST")
assert json.load(urllib.request.urlopen(wait, timeout=30))["status"] == "DONE"
"""


@pytest.fixture
def recorded() -> dict[str, object]:
    body: dict[str, object] = json.loads(RECORDED.read_text())["requests"][0]["body"]
    return body


def install(folder: Path, body: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / "gcloud"
    program.write_text(PROGRAM.format(python=sys.executable, body=json.dumps(body)))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")


def test_without_gcloud_nothing_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gke_oracle.main([CASE]) == 3
    assert "gcloud is not installed" in capsys.readouterr().err


def test_equal_requests_are_equal(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    recorded: dict[str, object],
) -> None:
    install(tmp_path, recorded, monkeypatch)
    assert gke_oracle.main([CASE]) == 0
    assert capsys.readouterr().out.splitlines() == [f"equal  {CASE}", "1 equal, 0 refused, 0 different"]


def test_another_body_is_shown_beside_ours(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    recorded: dict[str, object],
) -> None:
    install(tmp_path, recorded | {"mtu": 1500}, monkeypatch)
    assert gke_oracle.main([CASE]) == 1
    out = capsys.readouterr().out
    assert f"differs  {CASE}" in out
    assert '"mtu": 1500' in out
    assert '"mtu": 8244' in out


def test_the_recorder_writes_google_for_itself() -> None:
    with recording() as server:
        sent = {"service": "compute", "method": "POST", "query": {}}
        body = {"network": f"{server.url}/compute/v1/n"}
        server.requests += [sent | {"path": "/x", "body": body}, sent | {"path": "/x/wait", "body": None}]
        (found,) = server.mutations()
    assert found["body"] == {"network": "https://compute.googleapis.com/compute/v1/n"}
