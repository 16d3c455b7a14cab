"""How bytes reach the API server: TLS contexts, proxies from the environment, socket options.

Invariant: a TLS context is built once for a set of certificates; a private key that came as
bytes is on disk only while OpenSSL reads it, in a file that nobody else can open.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from interlace.kube.errors import ConfigError

KEEPALIVE_IDLE = 20
"""Seconds of silence before the kernel probes a connection."""
KEEPALIVE_INTERVAL = 10
KEEPALIVE_PROBES = 3
UNACKNOWLEDGED_MS = 30_000
"""Milliseconds after which sent and unacknowledged bytes break a connection."""


def tls_context(*, ca: bytes | None, insecure: bool) -> ssl.SSLContext:
    """A client context that trusts ``ca`` (PEM), or the system's roots. Raises ``ConfigError``.

    Cluster CAs are often made without the key identifiers that Python asks for since 3.13, and
    Go accepts any listed certificate as a root; both are allowed here too.
    """
    if ca is None:
        context = ssl.create_default_context()
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            context.load_verify_locations(cadata=ca.decode("ascii"))
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(f"the cluster's CA certificate is not PEM: {error}") from error
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def add_client_certificate(context: ssl.SSLContext, *, certificate: bytes | Path, key: bytes | Path) -> None:
    """Let ``context`` present a client certificate, given as PEM bytes or files. Raises ``ConfigError``."""
    try:
        pem = b"\n".join(part.read_bytes() if isinstance(part, Path) else part for part in (certificate, key))
    except OSError as error:
        raise ConfigError(f"client certificate {error.filename}: cannot be read: {error.strerror}") from error
    handle, name = tempfile.mkstemp(prefix="interlace-")  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(pem)
        context.load_cert_chain(name)
    except ssl.SSLError as error:
        raise ConfigError(f"the client certificate and its key cannot be used: {error.reason or error}") from error
    finally:
        Path(name).unlink()


def open_socket(address: tuple[Any, ...]) -> socket.socket:
    """A socket that notices a dead peer within about a minute, also when nothing is sent."""
    family, kind, protocol = address[0], address[1], address[2]
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", KEEPALIVE_IDLE),
        ("TCP_KEEPINTVL", KEEPALIVE_INTERVAL),
        ("TCP_KEEPCNT", KEEPALIVE_PROBES),
        ("TCP_USER_TIMEOUT", UNACKNOWLEDGED_MS),
    ):
        if hasattr(socket, option):  # macOS names some of them otherwise
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made


def proxy_from_env(server: str, env: Mapping[str, str]) -> str | None:
    """The proxy that ``HTTPS_PROXY`` or ``HTTP_PROXY`` names for ``server``, unless ``NO_PROXY`` exempts it.

    As in Go, loopback addresses never go through a proxy.
    """
    url = urlsplit(server)
    host, name = url.hostname or "", f"{url.scheme}_proxy"
    proxy = env.get(name.upper()) or env.get(name)
    if not proxy or _exempt(host, url.port, env.get("NO_PROXY") or env.get("no_proxy") or ""):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _exempt(host: str, port: int | None, listed: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = None
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    for entry in (part.strip().lower() for part in listed.split(",")):
        if not entry:
            continue
        if entry == "*":
            return True
        if address is not None and "/" in entry:
            try:
                if address in ipaddress.ip_network(entry, strict=False):
                    return True
            except ValueError:
                continue
        name, colon, wanted = entry.rpartition(":")
        if not (colon and wanted.isdigit() and ":" not in name):  # no port, or an IPv6 address
            name, wanted = entry, ""
        suffix = name.removeprefix("*").lstrip(".")
        if wanted in ("", str(port)) and (host == name or host.endswith("." + suffix)):
            return True
    return False
