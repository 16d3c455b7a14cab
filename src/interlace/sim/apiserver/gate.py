"""Who is asking, and whether they may: tokens, impersonation and roles in front of every request.

Invariant: nothing of a request is looked at before its sender is known, and nothing done before it is allowed.
"""

from __future__ import annotations

from collections.abc import Iterable

from multidict import MultiMapping

from interlace.sim.apiserver import errors
from interlace.sim.apiserver.auth import AUDIENCE, Tokens, UserInfo
from interlace.sim.apiserver.calls import Target
from interlace.sim.apiserver.errors import ApiFault
from interlace.sim.apiserver.kinds import Kinds
from interlace.sim.apiserver.objects import Json
from interlace.sim.apiserver.rbac import Authorizer, Request
from interlace.sim.apiserver.store import Store

ANONYMOUS = UserInfo("system:anonymous", groups=["system:unauthenticated"])
_PUBLIC = ("/healthz", "/livez", "/readyz", "/version", "/openid/v1/jwks")


class Gate:
    """Answers both questions from the objects in the store."""

    def __init__(self, *, store: Store, kinds: Kinds, tokens: Tokens) -> None:
        self._store = store
        self._kinds = kinds
        self._tokens = tokens
        self.authorizer = Authorizer(self._lookup)

    def authenticate(self, headers: MultiMapping[str], target: Target | None, verb: str) -> UserInfo:
        """The sender of a request, or whom it impersonates. Raises ApiFault 401 or 403."""
        header = headers.get("Authorization", "")
        if not header:
            return ANONYMOUS
        scheme, _, token = header.partition(" ")
        user = self.who(token.strip(), [AUDIENCE]) if scheme.lower() == "bearer" else None
        if user is None:
            raise errors.unauthorized()
        wanted = headers.get("Impersonate-User", "")
        if not wanted:
            return user
        groups = headers.getall("Impersonate-Group", [])
        for resource, name in (("users", wanted), *(("groups", group) for group in groups)):
            question = Request(verb="impersonate", resource=resource, name=name)
            if self.authorizer.refusal(user, question) is not None:
                raise self._no_impersonation(user, wanted, verb, target)
        return UserInfo(wanted, groups=[*groups, "system:authenticated"])

    def who(self, token: str, audiences: list[str]) -> UserInfo | None:
        """Who a token stands for, for these audiences."""
        return self._tokens.authenticate(token, still_there=self._still_there, audiences=audiences)

    def authorize(self, user: UserInfo, target: Target, verb: str, *, fields: str) -> None:
        """Raises ApiFault 403."""
        self._require(user, _question(target, verb, fields=fields))

    def authorize_path(self, user: UserInfo, method: str, path: str) -> None:
        """Raises ApiFault 403 for a path that is not open to all."""
        if not path.startswith(_PUBLIC):
            self._require(user, Request(verb=method.lower(), path=path))

    def _require(self, user: UserInfo, question: Request) -> None:
        why = self.authorizer.refusal(user, question)
        if why is not None:
            raise errors.forbidden(question.group, question.resource, question.name, why)

    def _no_impersonation(self, user: UserInfo, wanted: str, verb: str, target: Target | None) -> ApiFault:
        """The refusal, which names the right that would do for this request."""
        mode = "serviceaccount" if wanted.startswith("system:serviceaccount:") else "user-info"
        verb = f"impersonate-on:{mode}:{verb}"
        question = _question(target, verb) if target else Request(verb=verb, path="/")
        why = self.authorizer.refusal(user, question) or f"cannot impersonate {wanted}"
        return errors.forbidden(question.group, question.resource, question.name, why)

    def _still_there(self, resource: str, *, namespace: str, name: str, uid: str) -> bool:
        found = self._store.get(f"{resource}.", (namespace, name))
        return found is not None and found["metadata"]["uid"] == uid

    def _lookup(self, plural: str, namespace: str | None) -> Iterable[Json]:
        storage = next((kind.storage for kind in self._kinds if kind.plural == plural and not kind.custom), "")
        objects = self._store.collection(storage).objects
        return [obj for key, obj in objects.items() if namespace is None or key[0] == namespace]


def _question(target: Target, verb: str, *, fields: str = "") -> Request:
    return Request(
        verb=verb,
        group=target.group,
        resource=target.resource,
        subresource=target.subresource,
        namespace=target.namespace,
        name=target.name or _selected_name(verb, fields),
        fields=fields,
    )


def _selected_name(verb: str, fields: str) -> str:
    """The one object that a list or watch selects: a right to that name is enough for it."""
    key, _, name = fields.replace("==", "=").partition("=")
    return name if verb in {"list", "watch", "deletecollection"} and key == "metadata.name" and "," not in name else ""
