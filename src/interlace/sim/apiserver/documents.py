"""Paths that name no resource: health, version, discovery, OpenAPI and the keys of tokens.

Invariant: documents are built once for each state of the served kinds.
"""

from __future__ import annotations

from collections.abc import Callable

from interlace.sim.apiserver import discovery, openapi
from interlace.sim.apiserver.auth import AUDIENCE
from interlace.sim.apiserver.kinds import Kinds
from interlace.sim.apiserver.objects import Json, encode
from interlace.sim.apiserver.verbs import Answer


class Documents:
    """Answers GET requests of such paths."""

    def __init__(self, kinds: Kinds, *, version: str, jwks: Json) -> None:
        self._kinds = kinds
        self._version = version
        self._jwks = jwks
        self._cache: dict[tuple[str, bool], bytes] = {}
        self._revision = kinds.revision

    def answer(self, path: str, accept: str, host: str) -> Answer:
        """What stands under the path; 404 if nothing does."""
        path = path.rstrip("/") or "/"
        if path in ("/healthz", "/livez", "/readyz") or path.startswith(("/livez/", "/readyz/", "/healthz/")):
            return Answer(b"ok", content_type="text/plain; charset=utf-8")
        if path == "/openapi/v2" and "application/json" not in accept and "protobuf" in accept:
            return Answer(openapi.swagger_protobuf(self._version), content_type=openapi.SWAGGER_PROTOBUF)
        aggregated = path in ("/api", "/apis") and _wants_aggregated(accept)
        body = self._cached(path, host, aggregated=aggregated)
        if body is None:
            return Answer(b"404 page not found\n", status=404, content_type="text/plain; charset=utf-8")
        return Answer(body, content_type=discovery.AGGREGATED if aggregated else "application/json")

    def _cached(self, path: str, host: str, *, aggregated: bool) -> bytes | None:
        if self._revision != self._kinds.revision:
            self._cache.clear()
            self._revision = self._kinds.revision
        found = self._cache.get((path, aggregated))
        if found is None:
            document = self._build(path, host, aggregated=aggregated)
            if document is None:
                return None
            found = self._cache[path, aggregated] = encode(document)
        return found

    def _build(self, path: str, host: str, *, aggregated: bool) -> Json | None:
        kinds = self._kinds
        fixed: dict[str, Callable[[], Json]] = {
            "/": lambda: {"paths": ["/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/version"]},
            "/version": lambda: discovery.version_info(self._version),
            "/api": lambda: discovery.aggregated(kinds, core=True) if aggregated else discovery.api_versions(host),
            "/apis": lambda: discovery.aggregated(kinds, core=False) if aggregated else discovery.group_list(kinds),
            "/openapi/v2": lambda: openapi.swagger(self._version),
            "/openapi/v3": lambda: openapi.index(kinds, self._version),
            "/openid/v1/jwks": lambda: self._jwks,
            "/.well-known/openid-configuration": lambda: {
                "issuer": AUDIENCE,
                "jwks_uri": f"https://{host}/openid/v1/jwks",
                "response_types_supported": ["id_token"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["ES256"],
            },
        }
        if path in fixed:
            return fixed[path]()
        parts = path.strip("/").split("/")
        match parts:
            case ["api", version]:
                return discovery.resource_list(kinds, "", version)
            case ["apis", group]:
                return discovery.group(kinds, group)
            case ["apis", group, version]:
                return discovery.resource_list(kinds, group, version)
            case ["openapi", "v3", "api", version]:
                return openapi.document(kinds, "", version, self._version)
            case ["openapi", "v3", "apis", group, version]:
                return openapi.document(kinds, group, version, self._version)
            case _:
                return None


def _wants_aggregated(accept: str) -> bool:
    """Whether the first clause that we can serve asks for the aggregated form."""
    for clause in accept.split(","):
        media, *rest = [part.strip() for part in clause.split(";")]
        if media == "application/json":
            params = dict(part.split("=", 1) for part in rest if "=" in part)
            if not params.get("as"):
                return False
            if params["as"] == "APIGroupDiscoveryList" and params.get("v") == "v2":
                return True
    return False
