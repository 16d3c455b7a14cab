"""Kubeconfig files as kubectl reads them, and the files that a pod finds."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from interlace.kube.config import Config, in_cluster, kubeconfig_paths, load, load_kubeconfig
from interlace.kube.errors import ConfigError

Write = Callable[..., Path]


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def document(
    *, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, name: str = "one", **extra: Any
) -> dict[str, Any]:
    """A kubeconfig with one cluster, user and context, all of the same name."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": cluster or {"server": f"https://{name}:6443"}}],
        "users": [{"name": name, "user": user or {"token": f"token-{name}"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": f"ns-{name}"}}],
        **extra,
    }


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a kubeconfig and return its path."""

    def to(content: Any, name: str = "config") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return path

    return to


def test_server_token_and_namespace_of_the_current_context_are_read(write: Write) -> None:
    config = load_kubeconfig(write(document()), env={})
    assert (config.server, config.token, config.namespace) == ("https://one:6443", "token-one", "ns-one")


def test_another_context_can_be_chosen(write: Write) -> None:
    both = document()
    for part in ("clusters", "users", "contexts"):
        both[part] += document(name="two")[part]
    assert load_kubeconfig(write(both), context="two", env={}).server == "https://two:6443"


def test_of_several_files_the_first_that_says_something_wins_and_missing_ones_are_skipped(
    write: Write, tmp_path: Path
) -> None:
    first = write({"current-context": "two"}, "first")
    second = write(document(name="two") | {"current-context": "ignored"}, "second")
    third = write(document(name="two", cluster={"server": "https://elsewhere"}), "third")
    env = {"KUBECONFIG": f"{first}:{tmp_path / 'missing'}::{second}:{third}"}
    config = load_kubeconfig(env=env)
    assert (config.server, config.namespace) == ("https://two:6443", "ns-two")


def test_relative_paths_count_from_the_file_they_stand_in(write: Write, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "ca.pem").write_text("CA")
    user = {"client-certificate": "c.pem", "client-key": "k.pem", "tokenFile": "token"}
    clusters = document(cluster={"server": "https://one", "certificate-authority": "ca.pem"}) | {"users": []}
    users = document(user=user) | {"clusters": [], "contexts": [], "current-context": ""}
    env = {"KUBECONFIG": f"{write(clusters, 'a/config')}:{write(users, 'b/config')}"}
    config = load_kubeconfig(env=env)
    assert config.ca == b"CA"
    assert config.client_cert == tmp_path / "b" / "c.pem"
    assert config.client_key == tmp_path / "b" / "k.pem"
    assert config.token_file == tmp_path / "b" / "token"


def test_data_wins_over_files_and_is_not_in_the_repr(write: Write) -> None:
    user = {
        "client-certificate": "c.pem",
        "client-certificate-data": b64("CERT"),
        "client-key-data": b64("KEY"),
        "token": "secret",
        "password": "secret",
        "username": "me",
    }
    cluster = {
        "server": "https://one/prefix/",
        "certificate-authority-data": b64("CA"),
        "insecure-skip-tls-verify": True,
        "tls-server-name": "inside",
        "proxy-url": "http://proxy:3128",
    }
    config = load_kubeconfig(write(document(cluster=cluster, user=user)), env={"HTTPS_PROXY": "http://other"})
    assert (config.ca, config.client_cert, config.client_key) == (b"CA", b"CERT", b"KEY")
    assert (config.server, config.insecure, config.tls_server_name) == ("https://one/prefix", True, "inside")
    assert config.proxy_url == "http://proxy:3128"
    for secret in ("secret", "KEY", "CERT"):
        assert secret not in repr(config)


def test_an_exec_plugin_is_read_with_its_environment_and_the_clusters_extension(write: Write, tmp_path: Path) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "./bin/login",
        "args": ["a", "b"],
        "env": [{"name": "X", "value": "1"}],
        "installHint": "get it",
        "provideClusterInfo": True,
        "interactiveMode": "Never",
    }
    extensions = [
        {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "me"}},
        {"name": "other", "extension": 1},
    ]
    path = write(
        document(cluster={"server": "https://one", "extensions": extensions}, user={"exec": plugin, "token": None})
    )
    found = load_kubeconfig(path, env={}).exec
    assert found is not None
    assert found.command == str(tmp_path / "bin" / "login")
    assert (found.args, dict(found.env)) == (("a", "b"), {"X": "1"})
    assert (found.interactive, found.provide_cluster_info, found.cluster_config) == ("Never", True, {"audience": "me"})
    del plugin["interactiveMode"]
    plugin |= {"command": "login", "args": None, "env": None}
    again = load_kubeconfig(write(document(user={"exec": plugin})), env={}).exec
    assert again is not None
    assert (again.command, again.args, again.interactive) == ("login", (), "IfAvailable")


def test_impersonation_is_read(write: Write) -> None:
    user = {"as": "jane", "as-uid": "7", "as-groups": ["a"], "as-user-extra": {"scope": ["x", "y"]}}
    who = load_kubeconfig(write(document(user=user)), env={}).impersonate
    assert who is not None
    assert (who.user, who.uid, who.groups, dict(who.extra)) == ("jane", "7", ("a",), {"scope": ("x", "y")})


def test_the_environments_proxy_is_used_where_the_kubeconfig_names_none(write: Write) -> None:
    path = write(document())
    assert load_kubeconfig(path, env={"HTTPS_PROXY": "proxy:1"}).proxy_url == "http://proxy:1"
    assert load_kubeconfig(path, env={"HTTPS_PROXY": "proxy:1", "NO_PROXY": "one"}).proxy_url is None


BAD: list[tuple[Any, str]] = [
    ("a: [", r"config, line 1: not YAML: "),
    ("just text", r"config: Expected `object`, got `str`"),
    ("\x00", r"config.*: not YAML: "),
    ("a: 2026-13-45", r"config: not readable: month must be in 1..12"),
    ("[" * 5000, r"config: not readable: maximum recursion depth"),
    ("clusters: &a [*a]", r"config: Expected `object`, got `array` - at `\$.clusters\[0\]`"),
    (document(cluster={"server": "https://x", "extensions": [1]}), r"Expected `object`, got `int`"),
    ({}, r"no current-context; name one of none"),
    (document() | {"current-context": "two"}, r"no context 'two'; known: one"),
    (document() | {"clusters": []}, r"context 'one' names cluster 'one', which is not defined; known: none"),
    (document() | {"users": None}, r"context 'one' names user 'one', which is not defined"),
    (document() | {"contexts": {"one": 1}}, r"Expected `array \| null`, got `object` - at `\$.contexts`"),
    (document(cluster={"server": 7}), r"Expected `str \| null`, got `int` - at `\$.clusters\[0\].cluster.server`"),
    (document(cluster={"server": "one:6443"}), r"server 'one:6443'; it must be a URL"),
    (document(cluster={"proxy-url": "x"}), r"server None; it must be a URL"),
    (
        document(cluster={"server": "https://x", "certificate-authority-data": "%"}),
        r"certificate-authority-data is not base64",
    ),
    (
        document(cluster={"server": "https://x", "certificate-authority": "none.pem"}),
        r"certificate-authority .*none.pem: cannot be read: No such file",
    ),
    (document(user={"client-key-data": "QQ=="}), r"client-certificate and client-key go together"),
    (document(user={"auth-provider": {"name": "gcp"}}), r"auth-provider 'gcp' was removed from Kubernetes"),
    (
        document(user={"exec": {"apiVersion": "client.authentication.k8s.io/v1alpha1", "command": "x"}}),
        r"'client.authentication.k8s.io/v1alpha1' is not one of .*; update x",
    ),
    (document(user={"exec": {"command": "x"}}), r"missing required field `apiVersion`"),
]


@pytest.mark.parametrize(("content", "message"), BAD)
def test_a_bad_file_is_one_sentence_with_its_path(write: Write, content: Any, message: str) -> None:
    path = write(content)
    with pytest.raises(ConfigError, match=message) as caught:
        load_kubeconfig(path, env={})
    assert str(path.parent) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_text_or_not_there_is_one_sentence(tmp_path: Path) -> None:
    missing = tmp_path / "none"
    with pytest.raises(ConfigError, match=f"kubeconfig {missing}: cannot be read: No such file or directory"):
        load_kubeconfig(missing, env={})
    with pytest.raises(ConfigError, match=f"no kubeconfig at {missing}; set KUBECONFIG"):
        load_kubeconfig(env={"KUBECONFIG": str(missing)})
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\xfa\x00\xff")
    with pytest.raises(ConfigError, match=r"kubeconfig .*binary"):
        load_kubeconfig(binary, env={})
    with pytest.raises(ConfigError, match="Is a directory"):
        load_kubeconfig(tmp_path, env={})


@given(st.binary(max_size=60))
def test_any_bytes_are_a_configuration_or_a_config_error(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(raw)
    with pytest.raises(ConfigError):
        load_kubeconfig(path, env={})


def test_the_default_is_the_file_in_the_home_folder() -> None:
    assert kubeconfig_paths({"HOME": "/home/me"}) == [Path("/home/me/.kube/config")]
    assert kubeconfig_paths({"KUBECONFIG": "a::b", "HOME": "/x"}) == [Path("a"), Path("b")]


def service_account(folder: Path) -> dict[str, str]:
    """The environment and the files of a pod."""
    for name, content in (("token", "t"), ("ca.crt", "CA"), ("namespace", "mine\n")):
        (folder / name).write_text(content)
    return {
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "KUBERNETES_SERVICE_PORT": "443",
        "INTERLACE_SERVICE_ACCOUNT_DIR": str(folder),
        "HOME": str(folder / "nobody"),
    }


def test_a_pod_finds_its_server_token_and_namespace(tmp_path: Path) -> None:
    env = service_account(tmp_path)
    config = in_cluster(env)
    assert (config.server, config.ca, config.namespace) == ("https://10.0.0.1:443", b"CA", "mine")
    assert config.token_file == tmp_path / "token"
    assert in_cluster(env | {"KUBERNETES_SERVICE_HOST": "fd00::1"}).server == "https://[fd00::1]:443"
    (tmp_path / "namespace").unlink()
    assert in_cluster(env).namespace == "default"


def test_outside_a_pod_or_with_missing_files_it_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="KUBERNETES_SERVICE_HOST is not set"):
        in_cluster({})
    env = service_account(tmp_path)
    (tmp_path / "token").unlink()
    with pytest.raises(ConfigError, match=r"ServiceAccount token .*token: cannot be read"):
        in_cluster(env)


def test_load_prefers_a_kubeconfig_then_the_pod_and_else_explains(write: Write, tmp_path: Path) -> None:
    env = service_account(tmp_path)
    assert load(env=env).namespace == "mine"
    path = write(document())
    assert load(env=env | {"KUBECONFIG": str(path)}).namespace == "ns-one"
    assert load(path, env=env).namespace == "ns-one"
    with pytest.raises(ConfigError, match="no context 'two'"):
        load(path, context="two", env=env)
    with pytest.raises(ConfigError, match="set KUBECONFIG"):
        load(env={"HOME": str(tmp_path)})


def test_a_configuration_made_by_hand_needs_only_a_server() -> None:
    assert Config(server="https://x").namespace == "default"
