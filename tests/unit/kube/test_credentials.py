"""Tokens that change, and programs that print credentials: real files and real child processes."""

from __future__ import annotations

import asyncio
import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from interlace.kube.config import Config, ExecCredential
from interlace.kube.credentials import REREAD_AFTER, Credentials, exec_info, read_plugin
from interlace.kube.errors import ConfigError
from tests.unit.kube.support import running, wait_for
from tests.unit.kube.test_transport import USER
from tests.waiting import eventually

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"


def plugin(folder: Path, script: str, **options: Any) -> ExecCredential:
    """A credential plugin: a shell script that is also told where it may leave notes."""
    path = folder / "plugin"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return ExecCredential(
        command=str(path), **{"interactive": "Never", "env": {"NOTES": str(folder / "notes")}} | options
    )


def printed(status: dict[str, Any], *, version: str = V1) -> str:
    answer = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})
    return f"echo run >> $NOTES; echo '{answer}'"


def runs(folder: Path) -> int:
    notes = folder / "notes"
    return notes.read_text().count("run") if notes.exists() else 0


def credentials(folder: Path, script: str, **options: Any) -> Credentials:
    return Credentials(Config(server="http://x", exec=plugin(folder, script, **options)), env={"PATH": "/usr/bin:/bin"})


async def test_a_plugin_runs_once_and_its_token_is_used_until_it_expires(tmp_path: Path) -> None:
    who = credentials(tmp_path, printed({"token": "abc", "expirationTimestamp": "2999-01-01T00:00:00Z"}))
    grants = await asyncio.gather(*(who.current() for _ in range(5)))
    assert {grant.authorization for grant in grants} == {"Bearer abc"}
    assert runs(tmp_path) == 1
    assert "abc" not in repr(grants[0])


async def test_an_expired_token_is_fetched_again(tmp_path: Path) -> None:
    soon = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    who = credentials(tmp_path, printed({"token": "abc", "expirationTimestamp": soon}))
    await who.current()
    await who.current()
    assert runs(tmp_path) == 2


async def test_a_refused_token_runs_the_plugin_once_for_all_who_were_refused(tmp_path: Path) -> None:
    script = f"""echo run >> $NOTES
printf '{{"apiVersion":"{V1}","kind":"ExecCredential","status":{{"token":"t%s"}}}}' $(wc -l < $NOTES)"""
    who = credentials(tmp_path, script)
    first = await who.current()
    assert first.authorization == "Bearer t1"
    assert await asyncio.gather(*(who.refused(first) for _ in range(5))) == [True] * 5
    assert runs(tmp_path) == 2
    assert (await who.current()).authorization == "Bearer t2"


async def test_the_same_refused_token_is_not_tried_again(tmp_path: Path) -> None:
    who = credentials(tmp_path, printed({"token": "abc"}))
    assert not await who.refused(await who.current())


async def test_a_client_certificate_of_a_plugin_is_loaded(tmp_path: Path) -> None:
    status = {"clientCertificateData": USER.pem.decode(), "clientKeyData": USER.key_pem.decode()}
    answer = json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status})
    (tmp_path / "answer").write_text(answer)
    found = plugin(tmp_path, f"cat {tmp_path / 'answer'}")
    grant = await Credentials(Config(server="https://x", exec=found)).current()
    assert grant.authorization is None
    assert grant.tls is not None


async def test_the_plugin_learns_of_cluster_and_interaction(tmp_path: Path) -> None:
    script = 'printf "%s" "$KUBERNETES_EXEC_INFO" > $NOTES.info; ' + printed({"token": "x"}, version=V1BETA1)
    found = plugin(tmp_path, script, api_version=V1BETA1, provide_cluster_info=True, cluster_config={"audience": "me"})
    await Credentials(Config(server="http://x", ca=b"CA", tls_server_name="n", exec=found)).current()
    assert json.loads((tmp_path / "notes.info").read_text()) == {
        "apiVersion": V1BETA1,
        "kind": "ExecCredential",
        "spec": {
            "interactive": False,
            "cluster": {
                "server": "http://x",
                "tls-server-name": "n",
                "certificate-authority-data": "Q0E=",
                "config": {"audience": "me"},
            },
        },
    }


def test_the_cluster_is_told_only_when_asked_for() -> None:
    info = exec_info(ExecCredential(command="x"), config=Config(server="https://x", insecure=True), interactive=True)
    assert info == {"apiVersion": V1, "kind": "ExecCredential", "spec": {"interactive": True}}
    asked = ExecCredential(command="x", provide_cluster_info=True)
    config = Config(server="https://x", insecure=True, proxy_url="http://p")
    assert exec_info(asked, config=config, interactive=False)["spec"]["cluster"] == {
        "server": "https://x",
        "insecure-skip-tls-verify": True,
        "proxy-url": "http://p",
    }


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'log in first' >&2; exit 3", "exit code 3: log in first"),
        ("echo nonsense", "printed something else than an ExecCredential"),
        ("echo '{}'", f"printed no apiVersion without kind, and the kubeconfig asks for {V1} ExecCredential"),
        (
            printed({"token": "x"}, version=V1BETA1),
            f"printed {V1BETA1} ExecCredential, and the kubeconfig asks for {V1}",
        ),
        (printed({}), "printed neither a token nor a client certificate"),
        (printed({"token": "x", "clientKeyData": "y"}), "a client certificate or a key without the other"),
        (printed({"token": "x", "expirationTimestamp": "2026-01-01T00:00:00"}), "has no time zone"),
    ],
)
async def test_a_plugin_that_fails_is_one_sentence(tmp_path: Path, script: str, message: str) -> None:
    who = credentials(tmp_path, script)
    with pytest.raises(ConfigError, match=f"credential plugin {tmp_path / 'plugin'}: .*") as caught:
        await who.current()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_plugin_that_is_missing_names_the_hint() -> None:
    missing = ExecCredential(command="/no/such/plugin", install_hint="install\nit", interactive="Never")
    with pytest.raises(ConfigError, match="cannot be started: No such file or directory; install it"):
        await Credentials(Config(server="http://x", exec=missing)).current()


async def test_a_plugin_that_must_ask_needs_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    who = Credentials(Config(server="http://x", exec=ExecCredential(command="x", interactive="Always")))
    with pytest.raises(ConfigError, match="needs a terminal on stdin"):
        await who.current()


async def test_a_plugin_that_hangs_is_killed_when_nobody_waits_any_more(tmp_path: Path) -> None:
    who = credentials(tmp_path, "echo $$ > $NOTES; exec sleep 1000")

    async def ask() -> None:
        await who.current()

    async with running(ask()) as (task,):
        notes = tmp_path / "notes"
        await eventually(lambda: notes.exists() and notes.read_text().strip(), within=10)
        child = int(notes.read_text())
        task.cancel()
        await wait_for(task)
        assert task.cancelled()
        assert not Path(f"/proc/{child}").exists()


def test_a_token_without_certificate_is_enough() -> None:
    raw = json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": {"token": "x", "other": 1}}).encode()
    assert read_plugin(raw, plugin=ExecCredential(command="x")).token == "x"


async def test_a_static_token_wins_over_a_plugin(tmp_path: Path) -> None:
    config = Config(server="http://x", token="static", exec=plugin(tmp_path, "exit 1"))
    who = Credentials(config)
    grant = await who.current()
    assert grant.authorization == "Bearer static"
    assert not await who.refused(grant)


@pytest.mark.looptime
async def test_a_token_file_is_read_again_each_minute(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one\n")
    who = Credentials(Config(server="http://x", token_file=path, token="ignored"))
    assert (await who.current()).authorization == "Bearer one"
    path.write_text("two\n")
    assert (await who.current()).authorization == "Bearer one"
    await asyncio.sleep(REREAD_AFTER)
    assert (await who.current()).authorization == "Bearer two"
    path.unlink()
    await asyncio.sleep(REREAD_AFTER)
    assert (await who.current()).authorization == "Bearer two", "the old one may still do"


async def test_a_token_file_that_was_never_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"token file .*none: cannot be read"):
        await Credentials(Config(server="http://x", token_file=tmp_path / "none")).current()
