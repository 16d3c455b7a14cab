"""``authentication.k8s.io/v1.TokenRequest``, asked of a ServiceAccount's ``token`` subresource."""

from __future__ import annotations

from typing import ClassVar

from interlace.api.meta import ObjectMeta, Resource, Struct


class TokenRequestStatus(Struct, frozen=True):
    """What the server made."""

    token: str = ""


class TokenRequest(Struct, frozen=True):
    """Addressed as a ServiceAccount, since it has no collection of its own."""

    resource: ClassVar[Resource] = Resource("", "v1", "serviceaccounts", "ServiceAccount", True)
    metadata: ObjectMeta = ObjectMeta()
    status: TokenRequestStatus = TokenRequestStatus()
