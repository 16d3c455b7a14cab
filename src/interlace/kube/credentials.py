"""Who we are, as it changes: rotated token files, credential plugins with expiry, client certificates.

Invariant: a credential that the server refused is used again only if nothing newer can be had;
however many requests find a credential stale, one of them renews it and the others wait.
"""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from interlace.kube.config import Config, ExecCredential
from interlace.kube.errors import ConfigError
from interlace.kube.transport import add_client_certificate, tls_context

REREAD_AFTER = 60.0
"""Seconds after which a token file is read again; kubelet rotates it at 80 % of its life."""
PLUGIN_LIMIT = 60.0
"""Seconds that a credential plugin may take when nobody can type."""
INTERACTIVE_LIMIT = 600.0
"""Seconds that it may take when it can ask its user to log in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What one request carries; ``tls`` is None for plain HTTP."""

    authorization: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = None


class ExecStatus(msgspec.Struct, frozen=True, rename="camel"):
    """``status`` of what a plugin prints."""

    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: datetime | None = None


class _ExecAnswer(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: ExecStatus | None = None


class Credentials:
    """The current grant for a configuration."""

    def __init__(self, config: Config, *, env: Mapping[str, str] = os.environ) -> None:
        self._config = config
        self._env = env
        self._lock = asyncio.Lock()
        self._grant: Grant | None = None
        self._stale_at: float | None = None
        self._expires: datetime | None = None
        self._tls: ssl.SSLContext | None = None

    async def current(self) -> Grant:
        """A grant that is not known to be stale. Raises ``ConfigError``."""
        grant = self._grant
        if grant is not None and not self._stale():
            return grant
        async with self._lock:
            if self._grant is None or self._stale():
                self._grant = await self._renew()
            return self._grant

    async def refused(self, grant: Grant) -> bool:
        """The server answered 401 to ``grant``: whether there is another one to try now."""
        async with self._lock:
            if self._grant is grant:
                self._grant = await self._renew()
            return self._grant != grant

    def _stale(self) -> bool:
        if self._stale_at is not None and asyncio.get_running_loop().time() >= self._stale_at:
            return True
        return self._expires is not None and datetime.now(UTC) >= self._expires

    async def _renew(self) -> Grant:
        config = self._config
        if config.token_file is not None:
            return self._from_file(config.token_file)
        if config.token is None and config.exec is not None:
            return await self._from_plugin(config.exec)
        return self._grant or Grant(authorization=_static(config), tls=self._context())

    def _from_file(self, path: Path) -> Grant:
        self._stale_at = asyncio.get_running_loop().time() + REREAD_AFTER
        try:
            token = path.read_text().strip()
        except OSError as error:
            if self._grant is not None:  # being replaced at this moment: the old one may still do
                return self._grant
            raise ConfigError(f"token file {path}: cannot be read: {error.strerror or error}") from error
        return Grant(authorization=f"Bearer {token}", tls=self._context())

    async def _from_plugin(self, plugin: ExecCredential) -> Grant:
        status = await run_plugin(plugin, config=self._config, env=self._env)
        tls = self._context()
        if status.client_certificate_data and status.client_key_data:
            tls = tls_context(ca=self._config.ca, insecure=self._config.insecure)
            add_client_certificate(
                tls, certificate=status.client_certificate_data.encode(), key=status.client_key_data.encode()
            )
        self._expires = status.expiration_timestamp
        return Grant(authorization=f"Bearer {status.token}" if status.token else None, tls=tls)

    def _context(self) -> ssl.SSLContext | None:
        config = self._config
        if self._tls is None and config.server.startswith("https://"):
            self._tls = tls_context(ca=config.ca, insecure=config.insecure)
            if config.client_cert is not None and config.client_key is not None:
                add_client_certificate(self._tls, certificate=config.client_cert, key=config.client_key)
        return self._tls


def _static(config: Config) -> str | None:
    if config.token:
        return f"Bearer {config.token}"
    if config.username:
        pair = f"{config.username}:{config.password or ''}"
        return "Basic " + base64.b64encode(pair.encode()).decode()
    return None


async def run_plugin(plugin: ExecCredential, *, config: Config, env: Mapping[str, str]) -> ExecStatus:
    """Run a credential plugin and return what it printed. Raises ``ConfigError``; a cancelled run is killed."""
    terminal = sys.stdin is not None and sys.stdin.isatty()
    if plugin.interactive == "Always" and not terminal:
        raise ConfigError(f"credential plugin {plugin.command}: needs a terminal on stdin (interactiveMode Always)")
    interactive = terminal and plugin.interactive != "Never"
    info = exec_info(plugin, config=config, interactive=interactive)
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            env={**env, **plugin.env, "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()},
            stdin=None if interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=None if interactive else asyncio.subprocess.PIPE,
        )
    except OSError as error:
        hint = f"; {' '.join(plugin.install_hint.split())}" if plugin.install_hint else ""
        raise ConfigError(
            f"credential plugin {plugin.command}: cannot be started: {error.strerror or error}{hint}"
        ) from error
    limit = INTERACTIVE_LIMIT if interactive else PLUGIN_LIMIT
    try:
        async with asyncio.timeout(limit):
            out, err = await process.communicate()
    except TimeoutError as error:
        raise ConfigError(f"credential plugin {plugin.command}: no answer in {limit:.0f} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        said = " ".join((err or b"").decode(errors="replace").split())[-300:]
        raise ConfigError(
            f"credential plugin {plugin.command}: exit code {process.returncode}{f': {said}' if said else ''}"
        )
    return read_plugin(out, plugin=plugin)


def read_plugin(out: bytes, *, plugin: ExecCredential) -> ExecStatus:
    """Decode an ``ExecCredential``. Raises ``ConfigError``."""
    name = f"credential plugin {plugin.command}"
    try:
        answer = msgspec.json.decode(out, type=_ExecAnswer)
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{name}: printed something else than an ExecCredential: {error}") from error
    if answer.kind != "ExecCredential" or answer.api_version != plugin.api_version:
        raise ConfigError(
            f"{name}: printed {answer.api_version or 'no apiVersion'} {answer.kind or 'without kind'}, "
            f"and the kubeconfig asks for {plugin.api_version} ExecCredential"
        )
    status = answer.status
    if status is None or not (status.token or status.client_certificate_data):
        raise ConfigError(f"{name}: printed neither a token nor a client certificate")
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise ConfigError(f"{name}: printed a client certificate or a key without the other")
    expires = status.expiration_timestamp
    if expires is not None and expires.tzinfo is None:
        raise ConfigError(f"{name}: expirationTimestamp {expires.isoformat()} has no time zone")
    return status


def exec_info(plugin: ExecCredential, *, config: Config, interactive: bool) -> dict[str, Any]:
    """What ``KUBERNETES_EXEC_INFO`` tells the plugin."""
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.provide_cluster_info:
        cluster: dict[str, Any] = {"server": config.server}
        if config.tls_server_name:
            cluster["tls-server-name"] = config.tls_server_name
        if config.insecure:
            cluster["insecure-skip-tls-verify"] = True
        if config.ca is not None:
            cluster["certificate-authority-data"] = base64.b64encode(config.ca).decode()
        if config.proxy_url:
            cluster["proxy-url"] = config.proxy_url
        if plugin.cluster_config is not None:
            cluster["config"] = plugin.cluster_config
        spec["cluster"] = cluster
    return {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
