"""The embedded API server: HTTP in front of the store.

A request is authenticated, authorized, answered by one verb and audited, in this order, as on the real server. All
state is in memory; ``state_dir`` holds the certificate, the key that signs tokens and the kubeconfig.

Invariant: after the context manager has ended there is no open socket, no task and no timer left.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

import aiohttp
import yaml
from aiohttp import web
from multidict import CIMultiDict

from interlace.kube.config import Config
from interlace.kube.log import get_logger
from interlace.kube.versions import NEWEST
from interlace.sim.apiserver import certificates, errors, older
from interlace.sim.apiserver.audit import AuditLog
from interlace.sim.apiserver.auth import Tokens, UserInfo
from interlace.sim.apiserver.calls import Call, Target, parse_path, verb_of
from interlace.sim.apiserver.definitions import Definitions
from interlace.sim.apiserver.documents import Documents
from interlace.sim.apiserver.errors import ApiFault
from interlace.sim.apiserver.faults import Faults
from interlace.sim.apiserver.gate import ANONYMOUS, Gate
from interlace.sim.apiserver.kinds import Kinds
from interlace.sim.apiserver.objects import encode
from interlace.sim.apiserver.podlogs import send_log
from interlace.sim.apiserver.reading import Watch
from interlace.sim.apiserver.store import Store
from interlace.sim.apiserver.subresources import Subresources
from interlace.sim.apiserver.verbs import Answer, Verbs
from interlace.sim.apiserver.webhooks import Webhooks
from interlace.sim.apiserver.writing import Writer
from interlace.sim.plane import AuditRecord

_log = get_logger(__name__)
_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_BODY_LIMIT = 3 * 1024 * 1024
_ADMIN = ("kubernetes-admin", ("system:masters",))


class ApiServer:
    """A control plane's API server in this process: a ``Plane`` of kind ``embedded``."""

    kind: Literal["embedded", "real"] = "embedded"

    def __init__(
        self,
        *,
        state_dir: Path,
        version: str = "v1.36.3",
        resource_version: str = NEWEST,
        device_status: bool = True,
        history: int = 4096,
        bookmark_every: float = 60.0,
        watch_timeout: float = 3000.0,
        port: int = 0,
    ) -> None:
        """``history`` is the number of changes that each resource remembers, times are in seconds.

        ``resource_version`` is the one version in which ``resource.k8s.io`` is served (1.34 and later: v1), and
        ``device_status`` the feature gate DRAResourceClaimDeviceStatus (off by default in 1.32).
        """
        self._dir = state_dir
        self._version = version
        self._bookmark_every = bookmark_every
        self._watch_timeout = watch_timeout
        self._port = port
        self.store = Store(history=history)
        """All objects; tests may read it."""
        self.kinds = Kinds(resource_version=resource_version)
        self.faults = Faults(self.store)
        """Switches for tests."""
        self._audit = AuditLog()
        self._tokens = Tokens()
        self._definitions = Definitions(self.store, self.kinds)
        self.store.after = self._definitions.follow
        self._gate = Gate(store=self.store, kinds=self.kinds, tokens=self._tokens)
        self._webhooks = Webhooks(self.store)
        minor = int(version.lstrip("v").split(".")[1])
        self._writer = Writer(
            store=self.store,
            admission=self._webhooks.ask,
            allowed=self._gate.authorizer.allowed,
            granular_claims=minor >= 36,
            device_status=device_status,
        )
        subresources = Subresources(
            store=self.store,
            writer=self._writer,
            tokens=self._tokens,
            authorizer=self._gate.authorizer,
            authenticate=self._gate.who,
        )
        self._verbs = Verbs(store=self.store, kinds=self.kinds, writer=self._writer, subresources=subresources)
        self._documents = Documents(self.kinds, version=version, jwks=self._tokens.jwks())
        self._runner: web.ServerRunner | None = None
        self._site: web.TCPSite | None = None
        self._ca = b""
        self._ssl: Any = None

    # -- Plane

    @property
    def url(self) -> str:
        """``https://127.0.0.1:<port>``."""
        return f"https://127.0.0.1:{self._port}"

    @property
    def version(self) -> str:
        """The version that is reported."""
        return self._version

    @property
    def kubeconfig(self) -> Path:
        """A file for kubectl, as a member of ``system:masters``."""
        return self._dir / "kubeconfig"

    def credentials(self, user: str, *, groups: Sequence[str] = ()) -> Config:
        """A token that authenticates as ``user``."""
        return Config(server=self.url, ca=self._ca, token=self._tokens.issue(user, groups))

    def audit(self) -> list[AuditRecord]:
        """All requests, in the order in which they were recorded."""
        return self._audit.records()

    # -- life cycle

    async def __aenter__(self) -> Self:
        """Start to listen. Raises OSError if the port is taken."""
        self._dir.mkdir(parents=True, exist_ok=True)
        self._ssl, self._ca = certificates.make(self._dir)
        await self._webhooks.__aenter__()
        server = web.Server(self._serve, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(server, keepalive_timeout=300.0, shutdown_timeout=0.5)
        await self._runner.setup()
        try:
            await self.accept()
        except BaseException:
            await self.__aexit__()
            raise
        for name in _NAMESPACES:
            self._make_namespace(name)
        self._write_kubeconfig()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Break all connections and stop."""
        for watch in tuple(self.faults.watches):
            watch.end()
        if self._runner is not None:
            await self._runner.cleanup()
        await self._webhooks.__aexit__()

    async def refuse(self) -> None:
        """Go away: no connection is accepted and open ones are broken, until :meth:`accept`."""
        if self._site is not None:
            await self._site.stop()
            self._site = None
        for watch in tuple(self.faults.watches):
            watch.cut()
        if self._runner is not None and self._runner.server is not None:
            await self._runner.server.shutdown(0.1)

    async def accept(self) -> None:
        """Listen, on the same port as before."""
        if self._runner is None or self._site is not None:
            return
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, ssl_context=self._ssl, backlog=512)
        await site.start()
        self._site = site
        self._port = int(self._runner.addresses[0][1])

    def _make_namespace(self, name: str) -> None:
        kind = self.kinds.core("namespaces")
        if self.store.get(kind.storage, ("", name)) is None:
            self.store.put(kind.storage, ("", name), self._verbs.newborn(kind, name))

    def _write_kubeconfig(self) -> None:
        user, groups = _ADMIN
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "interlace-embedded",
            "clusters": [
                {
                    "name": "interlace-embedded",
                    "cluster": {
                        "server": self.url,
                        "certificate-authority-data": base64.b64encode(self._ca).decode(),
                    },
                }
            ],
            "users": [{"name": user, "user": {"token": self._tokens.issue(user, groups)}}],
            "contexts": [{"name": "interlace-embedded", "context": {"cluster": "interlace-embedded", "user": user}}],
        }
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")

    # -- one request

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        started = time.time()
        target = parse_path(request.path)
        user = ANONYMOUS
        verb = request.method.lower()
        try:
            if target is not None:
                verb = verb_of(request.method, target, request.query)
            user = self._gate.authenticate(request.headers, target, verb)
            self.faults.check(target.resource if target else request.path)
            if target is None:
                answer = self._plain(request, user)
            else:
                self._gate.authorize(user, target, verb, fields=request.query.get("fieldSelector", ""))
                found = await self._answer(request, target, verb, user, started)
                if isinstance(found, web.StreamResponse):
                    return found
                answer = found
        except ApiFault as fault:
            answer = _failed(fault)
        except Exception as error:  # noqa: BLE001
            # A request that nobody foresaw must not look like a lost connection, nor be missing in the audit log.
            _log.exception("request failed", method=request.method, path=request.path)
            answer = _failed(errors.internal(f"{type(error).__name__}: {error}"))
        self._record(request, target, verb, user, started, answer)
        headers = CIMultiDict({"Cache-Control": "no-cache, private", "Content-Type": answer.content_type})
        headers.update(answer.headers)
        for text in answer.warnings:
            headers.add("Warning", f"299 - {encode(text).decode()}")
        return web.Response(body=answer.body, status=answer.status, headers=headers)

    async def _answer(
        self, request: web.BaseRequest, target: Target, verb: str, user: UserInfo, started: float
    ) -> Answer | web.StreamResponse:
        kind = self.kinds.find(target.group, target.version, target.resource)
        if target.version not in self.kinds.versions().get(target.group, ()):
            return Answer(b"404 page not found\n", status=404, content_type="text/plain; charset=utf-8")
        if kind is None or (target.subresource and target.subresource not in kind.subresources):
            raise errors.no_such_path()
        if bool(target.namespace) and not kind.namespaced and target.resource != "namespaces":
            raise errors.no_such_path()
        body = await self._body(request)
        call = Call(
            verb=verb,  # type: ignore[arg-type]
            target=target,
            kind=kind.stored_as or kind,
            asked=kind,
            query=request.query,
            content_type=request.headers.get("Content-Type", ""),
            accept=request.headers.get("Accept", ""),
            user_agent=request.headers.get("User-Agent", ""),
            user=user,
            body=older.stored(body, kind),
        )
        if (target.resource, target.subresource) == ("pods", "log"):
            if verb != "get":
                raise errors.method_not_allowed()
            response = await send_log(request, call, self.store)
            self._record(request, target, verb, user, started, Answer(b"", status=response.status))
            return response
        if verb != "watch":
            answer = await self._verbs.answer(call)
            answer.warnings = call.warnings
            return answer
        watch = Watch(call, self.store, bookmark_every=self._bookmark_every, timeout=self._watch_timeout)
        self._record(request, target, verb, user, started, Answer(b"", status=200))
        return await self._stream(request, watch)

    async def _body(self, request: web.BaseRequest) -> bytes:
        if not request.can_read_body:
            return b""
        body = bytearray()
        async for chunk in request.content.iter_any():
            body += chunk
            if len(body) > _BODY_LIMIT:
                message = f"Request entity too large: limit is {_BODY_LIMIT}"
                raise ApiFault(413, "RequestEntityTooLarge", message, details={})
        return bytes(body)

    async def _stream(self, request: web.BaseRequest, watch: Watch) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
        )
        response.enable_chunked_encoding()
        self.faults.watches.add(watch)
        lines = watch.lines()
        try:
            await response.prepare(request)
            async for chunk in lines:
                await response.write(chunk)
            if watch.is_cut and request.transport is not None:
                request.transport.abort()
            else:
                await response.write_eof()
        except (ConnectionError, aiohttp.ClientConnectionError):
            pass  # the client went away, which is how most watches end
        finally:
            await lines.aclose()
            self.faults.watches.discard(watch)
        return response

    def _record(
        self,
        request: web.BaseRequest,
        target: Target | None,
        verb: str,
        user: UserInfo,
        started: float,
        answer: Answer,
    ) -> None:
        self._audit.add(
            AuditRecord(
                time=started,
                user=user.username,
                verb=verb,
                resource=target.resource if target else request.path,
                code=answer.status,
                subresource=target.subresource if target else "",
                namespace=target.namespace if target else "",
                name=answer.name or (target.name if target else ""),
                reason=answer.reason,
                user_agent=request.headers.get("User-Agent", ""),
            )
        )

    def _plain(self, request: web.BaseRequest, user: UserInfo) -> Answer:
        self._gate.authorize_path(user, request.method, request.path)
        if request.method != "GET":
            raise errors.method_not_allowed()
        return self._documents.answer(request.path, request.headers.get("Accept", ""), request.host)


def _failed(fault: ApiFault) -> Answer:
    return Answer(encode(fault.status), status=fault.code, headers=fault.headers, reason=fault.reason)
