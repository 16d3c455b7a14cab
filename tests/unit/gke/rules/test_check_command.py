"""``interlace gke check`` as a person or a program runs it; live projects are simulated."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from interlace.cli.exits import Code
from interlace.cli.main import main
from interlace.sim.gke.server import serve_gke
from tests.unit.gke.rules.bundles import healthy, put
from tests.unit.gke.spec.clusters import document, pool, text


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["gke", "check", *arguments], input=stdin)


def bundle(changes: dict[str, Any] | None = None) -> str:
    return json.dumps(put(healthy(), changes or {}))


def test_a_healthy_bundle_ends_with_zero_and_says_what_was_judged() -> None:
    told = run("--observed", "-", stdin=bundle())
    assert told.exit_code == Code.GOOD
    assert told.stdout.startswith("cluster example-cluster in project example-project, as stdin has it\n")
    assert told.stdout.endswith("info\n")


def test_an_error_ends_with_one_and_is_said_with_place_and_remedy() -> None:
    told = run("--observed", "-", stdin=bundle({"/networks/2/mtu": 1460}))
    assert told.exit_code == Code.BAD
    lines = told.stdout.splitlines()
    assert lines[1] == "error   network.mtu  /networks/2/mtu"
    assert lines[2].strip().startswith("network example-net-2 has MTU 1460, and a3-high needs 8244.")
    assert lines[3].strip().startswith("To do: set it with `gcloud compute networks update example-net-2 --mtu=8244`")


def test_programs_get_a_list_and_nothing_else() -> None:
    told = run("--observed", "-", "--json", stdin=bundle({"/networks/2/mtu": 1460}))
    assert told.exit_code == Code.BAD
    assert told.stderr == ""
    found = json.loads(told.stdout)
    assert [set(each) for each in found] == [{"rule", "severity", "pointer", "text", "remedy"}] * len(found)
    assert [each["rule"] for each in found if each["severity"] == "error"] == ["network.mtu"]


@pytest.mark.parametrize("read", [{}, {"want": {"flavour": "tcpx"}, "project": "p", "cluster": None, "networks": None}])
def test_a_bundle_in_which_nothing_was_read_cannot_tell(read: dict[str, Any]) -> None:
    told = run("--observed", "-", "--json", stdin=json.dumps({"format": "observed-state/1", **read}))
    assert (told.exit_code, told.stdout) == (Code.UNKNOWN, "")
    assert "stdin: nothing was read of the project" in told.stderr


def test_a_malformed_bundle_is_refused_with_file_and_place(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_text(bundle({"/networks/2/mtu": "much"}))
    told = run("--observed", str(file))
    assert told.exit_code == Code.REFUSED
    assert f"{file}: /networks/2/mtu has not the form that the API gives it: expected an integer, got a string." in (
        told.stderr
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--observed", "no-such-file"), "no-such-file: No such file"),
        (("--observed", "-", "--file", "x", "--nodes", "2"), "leave --file and --nodes out"),
        (("--file", "no-such-file"), "no-such-file"),
        (("--file", "x", "--project", "p"), "leave --project out"),
        (("--project", "p"), "name --location too"),
        (("--project", "p", "--location", "l", "--family", "a5"), "/want/flavour is 'a5'"),
        (("--project", "p", "--location", "l", "--endpoint", "x"), "--endpoint x: this is no URL"),
    ],
)
def test_bad_input_is_refused_by_name(arguments: tuple[str, ...], says: str) -> None:
    told = run(*arguments, stdin="")
    assert told.exit_code == Code.REFUSED
    assert says in told.stderr


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A simulation on a loop of its own, as another program would serve it."""
    ready, done = threading.Event(), threading.Event()
    url: list[str] = []

    async def serve() -> None:
        async with serve_gke(project="my-project") as fake:
            url.append(fake.url)
            ready.set()
            await asyncio.to_thread(done.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(30)
        yield url[0]
    finally:
        done.set()
        thread.join(30)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "cluster.yaml"
    path.write_text(text(document("a3-high")))
    return str(path)


def test_a_cluster_that_is_still_to_be_made_is_judged_in_its_project(file: str, endpoint: str, tmp_path: Path) -> None:
    saved = tmp_path / "state.json"
    told = run("--file", file, "--endpoint", endpoint, "--save", str(saved))
    assert told.exit_code == Code.GOOD, told.output
    assert told.stdout.startswith("no cluster train yet at us-central1-a in project my-project (simulated)\n")
    again = run("--observed", str(saved))
    assert again.exit_code == Code.GOOD


def test_what_is_in_the_way_is_an_error_at_its_key(endpoint: str, tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(text(document("a3-high", pools=[pool(reservation={"name": "mine"})])))
    told = run("--file", str(path), "--endpoint", endpoint, "--json")
    assert told.exit_code == Code.BAD
    found = [each for each in json.loads(told.stdout) if each["severity"] == "error"]
    assert [(each["rule"], each["pointer"]) for each in found] == [("reservation.missing", "/spec/pools/0/reservation")]
    assert "simulated" in told.stderr


def test_a_project_without_file_is_judged_by_name(endpoint: str) -> None:
    told = run("--project", "my-project", "--location", "us-central1-a", "--family", "a3-mega", "--endpoint", endpoint)
    assert told.stdout.startswith("no cluster yet at us-central1-a in project my-project (simulated)\n")


def test_where_nothing_can_be_read_the_answer_is_unknown(file: str, endpoint: str) -> None:
    told = run("--project", "other-project", "--location", "us-central1-a", "--endpoint", endpoint)
    assert told.exit_code == Code.UNKNOWN
    assert "Nothing of project other-project could be read" in told.stderr


def test_a_server_that_is_not_there_is_nothing_read(file: str) -> None:
    told = run("--file", file, "--endpoint", "http://127.0.0.1:9")
    assert told.exit_code == Code.UNKNOWN
    assert "no answer to" in told.stderr
