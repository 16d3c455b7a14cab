"""TLS, client certificates and proxies, over real sockets."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import ssl
import tempfile
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from interlace.kube.client import Client
from interlace.kube.config import Config
from interlace.kube.errors import ConfigError, Unreachable
from interlace.kube.transport import add_client_certificate, proxy_from_env, tls_context


@dataclass(frozen=True)
class Certificate:
    """PEM and what signs further ones."""

    pem: bytes
    key_pem: bytes
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def certificate(name: str, *, signer: Certificate | None = None, host: str = "", address: str = "") -> Certificate:
    """A CA without ``signer``, else a certificate for a server or client."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer.certificate.subject if signer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=signer is None, path_length=None), critical=True)
    )
    names: list[x509.GeneralName] = [x509.DNSName(host)] if host else []
    names += [x509.IPAddress(ipaddress.ip_address(address))] if address else []
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    if signer is not None:
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    made = builder.sign(signer.key if signer else key, hashes.SHA256())
    key_pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Certificate(made.public_bytes(serialization.Encoding.PEM), key_pem, made, key)


CA = certificate("test ca")
SERVER = certificate("server", signer=CA, address="127.0.0.1", host="inside.example")
USER = certificate("jane", signer=CA)
OTHER_CA = certificate("other ca")


@asynccontextmanager
async def serving(tmp_path: Path, *, leaf: Certificate = SERVER) -> AsyncIterator[str]:
    """A TLS server that answers with the name in the client's certificate; yields its URL."""

    async def who(request: web.Request) -> web.Response:
        peer = request.get_extra_info("peercert") or {}
        subject = dict(pair[0] for pair in peer.get("subject", ()))
        return web.json_response({"who": subject.get("commonName", "nobody")})

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pem = tmp_path / "server.pem"
    pem.write_bytes(leaf.pem + leaf.key_pem)
    context.load_cert_chain(pem)
    context.load_verify_locations(cadata=CA.pem.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    app = web.Application()
    app.router.add_get("/who", who)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    try:
        yield f"https://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def who(config: Config) -> bytes:
    async with Client(config, user_agent="t") as client:
        return await client.request("GET", "/who")


async def test_a_server_signed_by_the_ca_is_trusted(tmp_path: Path) -> None:
    async with serving(tmp_path) as url:
        assert await who(Config(server=url, ca=CA.pem)) == b'{"who": "nobody"}'


async def test_another_ca_is_refused_with_the_cause(tmp_path: Path) -> None:
    async with serving(tmp_path) as url:
        with pytest.raises(Unreachable, match=r"certificate is not trusted: .*; check certificate-authority"):
            await who(Config(server=url, ca=OTHER_CA.pem))
        assert await who(Config(server=url, ca=OTHER_CA.pem, insecure=True)) == b'{"who": "nobody"}'


async def test_the_server_may_have_another_name_than_its_address(tmp_path: Path) -> None:
    leaf = certificate("server", signer=CA, host="inside.example")
    async with serving(tmp_path, leaf=leaf) as url:
        with pytest.raises(Unreachable, match="IP address mismatch"):
            await who(Config(server=url, ca=CA.pem))
        assert await who(Config(server=url, ca=CA.pem, tls_server_name="inside.example")) == b'{"who": "nobody"}'


async def test_a_self_signed_server_certificate_in_the_ca_bundle_is_trusted(tmp_path: Path) -> None:
    async with serving(tmp_path) as url:
        assert await who(Config(server=url, ca=OTHER_CA.pem + SERVER.pem)) == b'{"who": "nobody"}'


@pytest.mark.parametrize("as_files", [False, True])
async def test_a_client_certificate_is_presented_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, as_files: bool
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    (tmp_path / "c.pem").write_bytes(USER.pem)
    (tmp_path / "k.pem").write_bytes(USER.key_pem)
    async with serving(tmp_path) as url:
        config = Config(
            server=url,
            ca=CA.pem,
            client_cert=tmp_path / "c.pem" if as_files else USER.pem,
            client_key=tmp_path / "k.pem" if as_files else USER.key_pem,
        )
        assert await who(config) == b'{"who": "jane"}'
    assert list(scratch.iterdir()) == []


def test_certificates_that_cannot_be_used_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ConfigError, match="CA certificate is not PEM"):
        tls_context(ca=b"nonsense", insecure=False)
    context = tls_context(ca=CA.pem, insecure=False)
    with pytest.raises(ConfigError, match="client certificate and its key cannot be used"):
        add_client_certificate(context, certificate=USER.pem, key=SERVER.key_pem)
    with pytest.raises(ConfigError, match=r"client certificate .*none: cannot be read: No such file"):
        add_client_certificate(context, certificate=tmp_path / "none", key=USER.key_pem)
    assert list(tmp_path.iterdir()) == []


async def test_requests_go_through_the_proxy_that_is_named() -> None:
    asked: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0])
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(proxy, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert await who(Config(server="http://api.example", proxy_url=f"http://127.0.0.1:{port}")) == b"{}"
    assert asked == [b"GET http://api.example/who HTTP/1.1"]


async def test_a_proxy_that_refuses_is_named_without_its_password() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with server:
        proxy = f"http://me:secret@127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(Unreachable, match="proxy answered 407 Proxy Authentication Required") as caught:
            await who(Config(server="https://api.example", proxy_url=proxy))
    assert "secret" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("server", "env", "proxy"),
    [
        ("https://api.example:6443", {}, None),
        ("https://api.example:6443", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ("https://api.example:6443", {"https_proxy": "p:1"}, "http://p:1"),
        ("https://api.example:6443", {"HTTP_PROXY": "http://p:1"}, None),
        ("http://api.example", {"HTTP_PROXY": "http://p:1"}, "http://p:1"),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": "http://p:1"}, None),
        ("https://[::1]:6443", {"HTTPS_PROXY": "http://p:1"}, None),
        ("https://localhost", {"HTTPS_PROXY": "http://p:1"}, None),
        ("https://api.example", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, None),
        ("https://api.example", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "x, example"}, None),
        ("https://api.example", {"HTTPS_PROXY": "http://p:1", "no_proxy": ".example"}, None),
        ("https://api.example", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*.example"}, None),
        ("https://api.example", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": ".api.example"}, "http://p:1"),
        ("https://myexample", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "example"}, "http://p:1"),
        ("https://api.example:6443", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "api.example:6443"}, None),
        ("https://api.example:6443", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "api.example:443"}, "http://p:1"),
        ("https://10.1.2.3", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "bad/net,10.0.0.0/8"}, None),
        ("https://11.1.2.3", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8"}, "http://p:1"),
        ("https://[fd00::1]", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "fd00::1"}, None),
    ],
)
def test_the_environment_names_proxies_and_exemptions(server: str, env: dict[str, str], proxy: str | None) -> None:
    assert proxy_from_env(server, env) == proxy
