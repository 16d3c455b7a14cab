"""One certificate authority a cluster: it signs the serving certificate and every user's certificate.

Elliptic keys, since making an RSA key takes longer than starting etcd. The authority lives in the
cluster's folder, readable by its owner alone.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from testbed.flags import SERVICE_ADDRESS

LIFE = dt.timedelta(days=365)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A certificate and its key, PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Signs certificates for one cluster."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self._key = key
        self._certificate = certificate

    @classmethod
    def make(cls) -> Self:
        """A new one."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "interlace-testbed")])
        usage = x509.KeyUsage(
            digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False, key_encipherment=False,
            data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        builder = _builder(name, name, key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        builder = builder.add_extension(usage, critical=True).add_extension(
            x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
        )
        return cls(key, builder.sign(key, hashes.SHA256()))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The one that ``save`` wrote."""
        key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError(f"{folder / 'ca.key'} is no elliptic key")
        return cls(key, x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes()))

    def save(self, folder: Path) -> None:
        """Write ``ca.crt`` and ``ca.key``."""
        write_private(folder / "ca.key", private_pem(self._key))
        (folder / "ca.crt").write_bytes(self.certificate)

    @property
    def certificate(self) -> bytes:
        """PEM, for those who must trust it."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def user(self, name: str, *, groups: Sequence[str] = ()) -> Pair:
        """Client certificate: Kubernetes reads the user from CN and the groups from O."""
        with warnings.catch_warnings():
            # X.509 allows 64 characters, names of ServiceAccounts are longer, and Go reads both.
            warnings.simplefilter("ignore", UserWarning)
            memberships = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group, _validate=False) for group in groups]
            subject = x509.Name([*memberships, x509.NameAttribute(NameOID.COMMON_NAME, name, _validate=False)])
        return self._issue(subject, ExtendedKeyUsageOID.CLIENT_AUTH, names=())

    def server(self) -> Pair:
        """Serving certificate for loopback, and for what Pods call the API server."""
        names = [
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
            x509.IPAddress(ipaddress.ip_address(SERVICE_ADDRESS)),
            x509.DNSName("localhost"),
            x509.DNSName("kubernetes.default.svc"),
        ]
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
        return self._issue(subject, ExtendedKeyUsageOID.SERVER_AUTH, names=names)

    def _issue(self, subject: x509.Name, usage: x509.ObjectIdentifier, *, names: Sequence[x509.GeneralName]) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(subject, self._certificate.subject, key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return Pair(certificate=certificate.public_bytes(serialization.Encoding.PEM), key=private_pem(key))


def signing_pair() -> Pair:
    """Key pair for ServiceAccount tokens; ``certificate`` holds the public key."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return Pair(certificate=public, key=private_pem(key))


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """In the form that every component of Kubernetes reads."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read, from its first moment on."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600, exist_ok=False)
    path.write_bytes(content)


def _builder(subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + LIFE)
    )
