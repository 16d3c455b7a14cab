"""Who is asking: static tokens for tests and tools, signed tokens for ServiceAccounts.

Signed tokens are JWTs with the claims that a real API server writes, so a component sees its own
pod and node in them and the server knows the node of a caller. Invariant: a signed token is worth
nothing once its ServiceAccount or its pod is gone, whatever its expiry says.
"""

from __future__ import annotations

import base64
import secrets
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

AUDIENCE: Final = "https://kubernetes.default.svc"
"""Audience of a token that names none."""
NODE_NAME_KEY: Final = "authentication.kubernetes.io/node-name"
NODE_UID_KEY: Final = "authentication.kubernetes.io/node-uid"
POD_NAME_KEY: Final = "authentication.kubernetes.io/pod-name"
POD_UID_KEY: Final = "authentication.kubernetes.io/pod-uid"
CREDENTIAL_KEY: Final = "authentication.kubernetes.io/credential-id"

_LEEWAY: Final = 60.0
"""Seconds that the server allows for clocks that disagree."""
_SIZE: Final = 32


class UserInfo(msgspec.Struct, frozen=True):
    """Who a request comes from."""

    username: str
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}

    @property
    def service_account(self) -> tuple[str, str] | None:
        """Namespace and name if this is a ServiceAccount."""
        parts = self.username.split(":")
        if len(parts) == 4 and parts[:2] == ["system", "serviceaccount"] and all(parts):
            return parts[2], parts[3]
        return None

    @property
    def node(self) -> str:
        """Node of a pod-bound or node-bound token; empty if unknown."""
        names = self.extra.get(NODE_NAME_KEY, [])
        return names[0] if len(names) == 1 else ""


class StillThere(Protocol):
    """Says whether an object exists with just this uid."""

    def __call__(self, resource: str, *, namespace: str, name: str, uid: str) -> bool: ...


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Tokens:
    """Issues tokens and recognises them; keeps static tokens in memory and signs the others."""

    def __init__(
        self, *, issuer: str = AUDIENCE, key: bytes | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        """``key`` is a PEM private key on the curve P-256; without it a new one is made."""
        if key is None:
            self._key = ec.generate_private_key(ec.SECP256R1())
        else:
            loaded = serialization.load_pem_private_key(key, None)
            if not isinstance(loaded, ec.EllipticCurvePrivateKey) or loaded.curve.name != "secp256r1":
                raise ValueError("the key that signs tokens must be an EC key on the curve P-256")
            self._key = loaded
        self._issuer = issuer
        self._clock = clock
        self._static: dict[str, UserInfo] = {}
        public = self._key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        digest = hashes.Hash(hashes.SHA256())
        digest.update(public)
        self._key_id = _encode(digest.finalize())

    @property
    def key(self) -> bytes:
        """The private key as PEM, to give to another ``Tokens`` after a restart."""
        return self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def jwks(self) -> dict[str, Any]:
        """The public key as a JSON web key set."""
        numbers = self._key.public_key().public_numbers()
        x, y = (_encode(n.to_bytes(_SIZE, "big")) for n in (numbers.x, numbers.y))
        return {
            "keys": [{"use": "sig", "kty": "EC", "kid": self._key_id, "crv": "P-256", "alg": "ES256", "x": x, "y": y}]
        }

    def issue(self, user: str, groups: Sequence[str] = ()) -> str:
        """A static token; the user is also in ``system:authenticated``, a ServiceAccount in its groups."""
        info = UserInfo(user)
        implied = ["system:authenticated"]
        if (account := info.service_account) is not None:
            implied = ["system:serviceaccounts", f"system:serviceaccounts:{account[0]}", *implied]
        token = secrets.token_urlsafe(24)
        self._static[token] = UserInfo(user, groups=list(dict.fromkeys([*groups, *implied])))
        return token

    def issue_bound(
        self,
        namespace: str,
        service_account: str,
        sa_uid: str,
        *,
        pod: tuple[str, str] | None,
        node: tuple[str, str] | None,
        audiences: Sequence[str] = (),
        seconds: int = 3600,
    ) -> tuple[str, float]:
        """A signed token and its expiry in seconds since 1970; ``pod`` and ``node`` are name and uid."""
        now = int(self._clock())
        private: dict[str, Any] = {
            "namespace": namespace,
            "serviceaccount": {"name": service_account, "uid": sa_uid},
        }
        if pod is not None:
            private["pod"] = {"name": pod[0], "uid": pod[1]}
        if node is not None:
            private["node"] = {"name": node[0], "uid": node[1]}
        claims = {
            "aud": list(audiences) or [AUDIENCE],
            "exp": now + seconds,
            "iat": now,
            "iss": self._issuer,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": private,
            "nbf": now,
            "sub": f"system:serviceaccount:{namespace}:{service_account}",
        }
        head = {"alg": "ES256", "kid": self._key_id}
        signed = ".".join(_encode(msgspec.json.encode(part)) for part in (head, claims))
        r, s = decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        signature = r.to_bytes(_SIZE, "big") + s.to_bytes(_SIZE, "big")
        return f"{signed}.{_encode(signature)}", float(now + seconds)

    def authenticate(
        self, token: str, *, still_there: StillThere, audiences: Iterable[str] = (AUDIENCE,)
    ) -> UserInfo | None:
        """Who the token stands for; None if it is unknown, expired, forged, or its owner is gone."""
        if (known := self._static.get(token)) is not None:
            return known
        claims = self._verify(token)
        if claims is None:
            return None
        now = self._clock()
        in_time = claims["nbf"] - _LEEWAY <= now <= claims["exp"] + _LEEWAY
        if not in_time or claims["iss"] != self._issuer or not set(audiences) & set(claims["aud"]):
            return None
        return _identify(claims, still_there)

    def _verify(self, token: str) -> dict[str, Any] | None:
        parts = token.split(".")
        if len(parts) != 3:
            return None
        try:
            head, claims, signature = (_decode(p) for p in parts)
            if msgspec.json.decode(head, type=dict[str, Any]).get("alg") != "ES256" or len(signature) != 2 * _SIZE:
                return None
            r, s = (int.from_bytes(half, "big") for half in (signature[:_SIZE], signature[_SIZE:]))
            signed = f"{parts[0]}.{parts[1]}".encode()
            self._key.public_key().verify(encode_dss_signature(r, s), signed, ec.ECDSA(hashes.SHA256()))
            return msgspec.json.decode(claims, type=dict[str, Any])
        except (ValueError, InvalidSignature):
            return None


def _identify(claims: Mapping[str, Any], still_there: StillThere) -> UserInfo | None:
    private = claims["kubernetes.io"]
    namespace, account = private["namespace"], private["serviceaccount"]
    pod, node = private.get("pod"), private.get("node")
    if not still_there("serviceaccounts", namespace=namespace, name=account["name"], uid=account["uid"]):
        return None
    if pod and not still_there("pods", namespace=namespace, name=pod["name"], uid=pod["uid"]):
        return None
    # As on the real server, the node of a pod-bound token is not looked up.
    if node and not pod and not still_there("nodes", namespace="", name=node["name"], uid=node["uid"]):
        return None
    extra = {CREDENTIAL_KEY: [f"JTI={claims['jti']}"]}
    if node:
        extra |= {NODE_NAME_KEY: [node["name"]], NODE_UID_KEY: [node["uid"]]}
    if pod:
        extra |= {POD_NAME_KEY: [pod["name"]], POD_UID_KEY: [pod["uid"]]}
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    return UserInfo(claims["sub"], account["uid"], groups, extra)
