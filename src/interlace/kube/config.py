"""Where the API server is and who we are: kubeconfig files, or the files that a pod finds.

Invariant: reading a configuration starts no program and opens no connection; whatever is wrong
is told as one ``ConfigError`` with the path of the file. Secrets are not part of any ``repr``.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import msgspec

from interlace.kube.errors import ConfigError
from interlace.kube.transport import proxy_from_env

EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
SERVICE_ACCOUNT_DIR = "/var/run/secrets/kubernetes.io/serviceaccount"

InteractiveMode = Literal["Never", "IfAvailable", "Always"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecCredential:
    """A program that prints credentials: ``users[].user.exec`` of a kubeconfig."""

    command: str
    api_version: str = EXEC_VERSIONS[0]
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive: InteractiveMode = "IfAvailable"
    cluster_config: Any = None
    """Extension ``client.authentication.k8s.io/exec`` of the cluster entry, handed to the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Impersonation:
    """Act as somebody else: the ``as`` fields of a kubeconfig user."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything that a ``Client`` needs; build it by hand, or with one of the functions below."""

    server: str
    """Base URL, for instance ``https://10.0.0.1:6443``."""
    ca: bytes | None = None
    """PEM certificates that sign the server's; None trusts the system's."""
    insecure: bool = False
    """Do not check the server's certificate."""
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    """Read again each minute and after a 401; wins over ``token``."""
    client_cert: bytes | Path | None = field(default=None, repr=False)
    """PEM, or the path of a PEM file."""
    client_key: bytes | Path | None = field(default=None, repr=False)
    exec: ExecCredential | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    namespace: str = "default"
    proxy_url: str | None = field(default=None, repr=False)
    """May hold a password."""
    tls_server_name: str | None = None
    """Name that the server's certificate must carry, where it is not the URL's host."""
    impersonate: Impersonation | None = None


class _Wire(msgspec.Struct, frozen=True, rename="kebab", kw_only=True):
    """Base of the kubeconfig structs; unknown fields are skipped."""


T = TypeVar("T")


class _Cluster(_Wire, frozen=True):
    server: str | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool = False
    tls_server_name: str | None = None
    proxy_url: str | None = None
    extensions: list[dict[str, Any]] | None = None


class _EnvVar(msgspec.Struct, frozen=True):
    name: str
    value: str


class _Exec(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    command: str
    api_version: str
    args: list[str] | None = None
    env: list[_EnvVar] | None = None
    install_hint: str | None = None
    provide_cluster_info: bool = False
    interactive_mode: InteractiveMode | None = None


class _User(_Wire, frozen=True):
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    token_file: str | None = msgspec.field(name="tokenFile", default=None)
    username: str | None = None
    password: str | None = None
    as_: str | None = msgspec.field(name="as", default=None)
    as_uid: str | None = None
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str]] | None = None
    auth_provider: dict[str, Any] | None = None
    exec: _Exec | None = None


class _Context(_Wire, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str | None = None


class _NamedCluster(_Wire, frozen=True):
    name: str
    cluster: _Cluster | None = None


class _NamedUser(_Wire, frozen=True):
    name: str
    user: _User | None = None


class _NamedContext(_Wire, frozen=True):
    name: str
    context: _Context | None = None


class _File(_Wire, frozen=True):
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str | None = None


@dataclass(frozen=True, slots=True)
class _Found(Generic[T]):
    """An entry and the file that it stands in: relative paths count from there."""

    value: T
    path: Path


@dataclass(slots=True)
class _Merged:
    """Several files as one: the first file that defines a name, or the current context, wins."""

    clusters: dict[str, _Found[_Cluster]] = field(default_factory=dict)
    users: dict[str, _Found[_User]] = field(default_factory=dict)
    contexts: dict[str, _Found[_Context]] = field(default_factory=dict)
    current: str = ""

    def add(self, path: Path, file: _File) -> None:
        for cluster in file.clusters or []:
            self.clusters.setdefault(cluster.name, _Found(cluster.cluster or _Cluster(), path))
        for user in file.users or []:
            self.users.setdefault(user.name, _Found(user.user or _User(), path))
        for context in file.contexts or []:
            self.contexts.setdefault(context.name, _Found(context.context or _Context(), path))
        self.current = self.current or file.current_context or ""


def load(path: Path | None = None, *, context: str | None = None, env: Mapping[str, str] = os.environ) -> Config:
    """The configuration for this process: a kubeconfig if there is one, else the pod's own.

    Raises ``ConfigError``.
    """
    asked = path is not None or context is not None or any(p.exists() for p in kubeconfig_paths(env))
    if not asked and env.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster(env)
    return load_kubeconfig(path, context=context, env=env)


def kubeconfig_paths(env: Mapping[str, str] = os.environ) -> list[Path]:
    """The files that ``KUBECONFIG`` lists, or ``~/.kube/config``."""
    listed = [Path(part).expanduser() for part in env.get("KUBECONFIG", "").split(os.pathsep) if part]
    return listed or [Path(env.get("HOME") or "~").expanduser() / ".kube" / "config"]


def load_kubeconfig(
    path: Path | None = None, *, context: str | None = None, env: Mapping[str, str] = os.environ
) -> Config:
    """Read ``path``, or what ``KUBECONFIG`` lists, or ``~/.kube/config``; take ``context``, or the current one.

    Files of the list that do not exist are skipped, as kubectl does. Raises ``ConfigError``.
    """
    paths = [path] if path is not None else kubeconfig_paths(env)
    merged = _Merged()
    found = False
    for each in paths:
        if path is None and not each.exists():
            continue
        merged.add(each, _read(each))
        found = True
    names = os.pathsep.join(str(p) for p in paths)
    if not found:
        raise ConfigError(f"no kubeconfig at {names}; set KUBECONFIG to the path of one")
    name = context or merged.current
    if not name:
        raise ConfigError(f"kubeconfig {names}: no current-context; name one of {_known(merged.contexts)}")
    chosen = merged.contexts.get(name)
    if chosen is None:
        raise ConfigError(f"kubeconfig {names}: no context {name!r}; known: {_known(merged.contexts)}")
    cluster = merged.clusters.get(chosen.value.cluster)
    if cluster is None:
        raise ConfigError(
            f"kubeconfig {chosen.path}: context {name!r} names cluster {chosen.value.cluster!r}, "
            f"which is not defined; known: {_known(merged.clusters)}"
        )
    user = merged.users.get(chosen.value.user, _Found(_User(), chosen.path) if not chosen.value.user else None)
    if user is None:
        raise ConfigError(
            f"kubeconfig {chosen.path}: context {name!r} names user {chosen.value.user!r}, "
            f"which is not defined; known: {_known(merged.users)}"
        )
    return _config(
        cluster, user, namespace=chosen.value.namespace or "default", cluster_name=chosen.value.cluster, env=env
    )


def in_cluster(env: Mapping[str, str] = os.environ) -> Config:
    """The ServiceAccount of the pod that we run in. Raises ``ConfigError``.

    ``INTERLACE_SERVICE_ACCOUNT_DIR`` names another folder than the usual one.
    """
    host, port = env.get("KUBERNETES_SERVICE_HOST", ""), env.get("KUBERNETES_SERVICE_PORT") or "443"
    if not host:
        raise ConfigError("KUBERNETES_SERVICE_HOST is not set: this process does not run in a pod; give a kubeconfig")
    folder = Path(env.get("INTERLACE_SERVICE_ACCOUNT_DIR") or SERVICE_ACCOUNT_DIR)
    token, ca, namespace = folder / "token", folder / "ca.crt", folder / "namespace"
    _bytes(token, "ServiceAccount token")
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return Config(
        server=server,
        ca=_bytes(ca, "ServiceAccount CA"),
        token_file=token,
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
        proxy_url=proxy_from_env(server, env),
    )


def _read(path: Path) -> _File:
    # Imported here: a Pod has no kubeconfig, and the parser costs each agent a megabyte.
    import yaml  # noqa: PLC0415

    raw = _bytes(path, "kubeconfig")
    try:
        document = yaml.safe_load(raw)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        problem = " ".join(str(getattr(error, "problem", None) or error).split())
        raise ConfigError(f"kubeconfig {path}{where}: not YAML: {problem}") from error
    except (ValueError, RecursionError) as error:  # a date that does not exist, a million brackets
        raise ConfigError(f"kubeconfig {path}: not readable: {error}") from error
    if document is None:
        return _File()
    try:
        return msgspec.convert(document, _File)
    except (msgspec.ValidationError, RecursionError) as error:
        raise ConfigError(f"kubeconfig {path}: {error}") from error


def _config(
    cluster: _Found[_Cluster], user: _Found[_User], *, namespace: str, cluster_name: str, env: Mapping[str, str]
) -> Config:
    where, who = cluster.value, user.value
    server = (where.server or "").rstrip("/")
    if not server.startswith(("https://", "http://")):
        raise ConfigError(
            f"kubeconfig {cluster.path}: cluster {cluster_name!r} has server {where.server!r}; "
            "it must be a URL that begins with https:// or http://"
        )
    if who.auth_provider is not None and who.exec is None:
        raise ConfigError(
            f"kubeconfig {user.path}: auth-provider {who.auth_provider.get('name', '')!r} was removed from Kubernetes; "
            "use an exec credential plugin instead"
        )
    certificate = _pem(who.client_certificate_data, who.client_certificate, user.path, "client-certificate")
    key = _pem(who.client_key_data, who.client_key, user.path, "client-key")
    if (certificate is None) != (key is None):
        raise ConfigError(f"kubeconfig {user.path}: client-certificate and client-key go together; one is missing")
    ca = _pem(where.certificate_authority_data, where.certificate_authority, cluster.path, "certificate-authority")
    return Config(
        server=server,
        ca=_bytes(ca, "certificate-authority") if isinstance(ca, Path) else ca,
        insecure=where.insecure_skip_tls_verify,
        token=who.token or None,
        token_file=_beside(user.path, who.token_file) if who.token_file else None,
        client_cert=certificate,
        client_key=key,
        exec=_exec(who.exec, user.path, cluster) if who.exec is not None else None,
        username=who.username,
        password=who.password,
        namespace=namespace,
        proxy_url=where.proxy_url or proxy_from_env(server, env),
        tls_server_name=where.tls_server_name or None,
        impersonate=_impersonation(who),
    )


def _exec(entry: _Exec, path: Path, cluster: _Found[_Cluster]) -> ExecCredential:
    if entry.api_version not in EXEC_VERSIONS:
        raise ConfigError(
            f"kubeconfig {path}: exec apiVersion {entry.api_version!r} is not one of {', '.join(EXEC_VERSIONS)}; "
            f"update {entry.command}"
        )
    extensions = {e.get("name"): e.get("extension") for e in cluster.value.extensions or []}
    # A command with a slash counts from the kubeconfig's folder, a bare one from PATH.
    command = str(_beside(path, entry.command)) if "/" in entry.command else entry.command
    return ExecCredential(
        command=command,
        api_version=entry.api_version,
        args=tuple(entry.args or ()),
        env={e.name: e.value for e in entry.env or ()},
        install_hint=entry.install_hint or "",
        provide_cluster_info=entry.provide_cluster_info,
        interactive=entry.interactive_mode or "IfAvailable",
        cluster_config=extensions.get("client.authentication.k8s.io/exec"),
    )


def _impersonation(user: _User) -> Impersonation | None:
    if not user.as_:
        return None
    extra = {key: tuple(values) for key, values in (user.as_user_extra or {}).items()}
    return Impersonation(user=user.as_, uid=user.as_uid or "", groups=tuple(user.as_groups or ()), extra=extra)


def _pem(data: str | None, file: str | None, path: Path, what: str) -> bytes | Path | None:
    if data:
        try:
            return base64.b64decode("".join(data.split()), validate=True)
        except (binascii.Error, ValueError) as error:
            raise ConfigError(f"kubeconfig {path}: {what}-data is not base64: {error}") from error
    return _beside(path, file) if file else None


def _beside(path: Path, name: str) -> Path:
    return path.parent / Path(name).expanduser()


def _bytes(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{what} {path}: cannot be read: {error.strerror or error}") from error


def _known(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
