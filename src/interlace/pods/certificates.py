"""The webhook's own serving certificate: made, kept in a Secret, and renewed in steps that fail no call.

Pure but for the making of keys. Invariant: a certificate is served only after its authority stands in every
``caBundle`` for ``grace`` seconds, and an authority is dropped only after nobody serves under it any more. So a
renewal is two writes: the next certificate is laid beside the present one, and takes its place later. Each
certificate has an authority of its own whose key is thrown away: nobody can sign another one.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFE: Final = timedelta(days=90)
GRACE: Final = timedelta(minutes=5)
"""Between the next authority in the bundles and the first handshake that needs it: all API servers must have heard."""
SKEW: Final = timedelta(minutes=10)
"""Clocks of API servers may be behind ours by this."""
RENEW_AFTER: Final = 2 / 3
"""Part of the life after which the next certificate is made."""

_BUNDLE: Final = "ca.crt"
_PRESENT: Final = ("tls.crt", "tls.key")
_NEXT: Final = ("next.crt", "next.key")
_BEGIN: Final = b"-----BEGIN CERTIFICATE-----"


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """A certificate with its key. ``chain``: PEM of the certificate, then of its authority."""

    chain: bytes
    key: bytes
    names: frozenset[str]
    made: datetime
    expires: datetime

    @property
    def authority(self) -> bytes:
        """PEM of the certificate that an API server has to trust."""
        return _split(self.chain)[-1]

    @property
    def renewal(self) -> datetime:
        """When the next one is due."""
        return self.made + (self.expires - self.made) * RENEW_AFTER


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """What the Secret holds. ``bundle``: authorities to trust, PEM, each once."""

    present: Pair | None = None
    next: Pair | None = None
    bundle: tuple[bytes, ...] = ()


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What is due. ``stored``: what the Secret should hold from now on, None: what it holds."""

    action: Literal["keep", "make", "stage", "promote"]
    stored: Stored | None = None
    again: float = 0.0
    """Seconds after which there is something to decide again."""


def make(names: Iterable[str], *, now: datetime, life: timedelta = LIFE) -> Pair:
    """A new certificate for DNS names and addresses, under an authority of its own."""
    wanted = sorted(set(names))
    made = now.replace(microsecond=0)
    issuer_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    # Different for each authority, so that a client with two in its bundle finds the right one by name.
    issuer = _name(f"interlace-webhook-ca {x509.random_serial_number():x}"[:64])
    authority = (
        _builder(issuer, issuer, issuer_key.public_key(), made=made, life=life)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(sign=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(issuer_key.public_key()), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    certificate = (
        _builder(_name("interlace-webhook"), issuer, key.public_key(), made=made, life=life)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general(name) for name in wanted]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    chain = b"".join(c.public_bytes(serialization.Encoding.PEM) for c in (certificate, authority))
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Pair(chain=chain, key=secret, names=frozenset(wanted), made=made, expires=made + life)


def plan(
    stored: Stored,
    *,
    names: Sequence[str],
    trusted: Collection[bytes] | None,
    now: datetime,
    life: timedelta = LIFE,
    grace: timedelta = GRACE,
) -> Step:
    """What to do about the certificate now.

    ``trusted``: authorities that stand in the ``caBundle`` of every webhook of ours; None: there is no webhook.
    """
    present, following = (_usable(pair, names=names, now=now) for pair in (stored.present, stored.next))
    if present is None:
        # Nothing that can be served: calls fail until the new authority has reached the API servers.
        chosen = following or make(names, now=now, life=life)
        return Step(
            action="make",
            stored=Stored(present=chosen, bundle=tuple(dict.fromkeys((*stored.bundle[-1:], chosen.authority)))),
        )
    if following is None:
        if now < present.renewal:
            return Step(action="keep", again=(present.renewal - now).total_seconds())
        made = make(names, now=now, life=life)
        staged = Stored(present=present, next=made, bundle=(present.authority, made.authority))
        return Step(action="stage", stored=staged)
    wait = (following.made + grace - now).total_seconds()
    if wait > 0:
        return Step(action="keep", again=wait)
    if trusted is not None and following.authority not in trusted:
        return Step(action="keep", again=max(grace.total_seconds(), 1.0))
    # The old authority stays until the next renewal: another replica may serve under it a moment longer.
    return Step(action="promote", stored=Stored(present=following, bundle=(present.authority, following.authority)))


def _usable(pair: Pair | None, *, names: Sequence[str], now: datetime) -> Pair | None:
    return pair if pair is not None and pair.expires > now and pair.names.issuperset(names) else None


def from_secret(data: Mapping[str, str]) -> Stored:
    """What ``data`` of the Secret holds; parts that cannot be read count as missing."""
    found = {name: _unwrap(text) for name, text in data.items()}
    present, following = (_pair(found.get(chain, b""), found.get(key, b"")) for chain, key in (_PRESENT, _NEXT))
    return Stored(present=present, next=following, bundle=tuple(_split(found.get(_BUNDLE, b""))))


def to_secret(stored: Stored) -> dict[str, str | None]:
    """``data`` of the Secret as a merge patch: None removes."""
    data: dict[str, str | None] = {_BUNDLE: _wrap(b"".join(stored.bundle))}
    for (chain, key), pair in ((_PRESENT, stored.present), (_NEXT, stored.next)):
        data[chain], data[key] = (_wrap(pair.chain), _wrap(pair.key)) if pair is not None else (None, None)
    return data


def bundle_text(stored: Stored) -> str:
    """The value of ``caBundle``."""
    return _wrap(b"".join(stored.bundle))


def authorities(ca_bundle: str) -> list[bytes]:
    """The certificates in a ``caBundle``; none where it cannot be read."""
    return _split(_unwrap(ca_bundle))


def _pair(chain: bytes, key: bytes) -> Pair | None:
    try:
        certificate = x509.load_pem_x509_certificate(chain)
        secret = serialization.load_pem_private_key(key, None)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, TypeError, x509.ExtensionNotFound):
        return None
    if secret.public_key() != certificate.public_key() or len(_split(chain)) != 2:
        return None
    found = {str(name) for kind in (x509.DNSName, x509.IPAddress) for name in names.get_values_for_type(kind)}
    return Pair(
        chain=chain,
        key=key,
        names=frozenset(found),
        made=certificate.not_valid_before_utc + SKEW,
        expires=certificate.not_valid_after_utc,
    )


def _split(pem: bytes) -> list[bytes]:
    return [_BEGIN + part for part in pem.split(_BEGIN)[1:]]


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usage(*, sign: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, key_cert_sign=sign, crl_sign=sign, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, *, made: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(made.astimezone(UTC) - SKEW)
        .not_valid_after(made.astimezone(UTC) + life)
    )


def _wrap(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _unwrap(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
