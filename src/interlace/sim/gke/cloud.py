"""The whole simulated cloud as a function: a request in, an answer out, at a moment of the clock.

What every request passes, in this order: the route, the project, faults, whether the API is on, rights, the
schema, the service.

Invariant: no I/O and no waiting. The shell in ``server`` adds HTTP, delays and dropped connections.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any, Final

from interlace.sim.gke import compute, container, platform, routes, schemas
from interlace.sim.gke.answers import Answer, forbidden, injected, permission, refused, with_version
from interlace.sim.gke.errors import NUMBER, Refusal, disabled, invalid, not_found
from interlace.sim.gke.faults import ANSWERS
from interlace.sim.gke.operations import Operation
from interlace.sim.gke.routes import Call, Route
from interlace.sim.gke.world import World

Json = dict[str, Any]
_SERVICES: Final = {"compute": compute.answer, "container": container.answer}


class Cloud:
    """Answers for a ``World``. Idempotency tokens of compute are remembered for as long as it lives."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._seen: dict[tuple[str, str, str], str] = {}

    def answer(self, method: str, path: str, query: Mapping[str, str], raw: bytes) -> Answer:
        """What the cloud says to a request. Faults that drop the connection are the shell's."""
        world = self.world
        world.operations.settle(world.clock())
        found = routes.find(method, path)
        if found is None:
            service = routes.service_of(path)
            return refused(service, "", Refusal(404, f"The simulation has no method for {method} {path}.", "notFound"))
        route, parameters, name = found
        line = f"{method} {path}"
        try:
            self._check_project(route, parameters)
            fault = world.faults.striking(line, ANSWERS)
            if fault is not None:
                return injected(route, fault, _meant(route, name, raw))
            if route.service in world.disabled:
                raise disabled(route.service)
            if permission(route) in world.denied:
                raise forbidden(route, _meant(route, name, raw))
            body = self._decoded(route, raw, numbers="enum-encoding=int" in query.get("$alt", ""))
            name = self._by_id(name)
            call = Call(route=route, line=line, path=name, parameters=parameters, query=dict(query), body=body)
            return self._answered(call)
        except Refusal as refusal:
            return refused(route.service, route.name, refusal)

    def _answered(self, call: Call) -> Answer:
        route = call.route
        repeated = self._repeated(call)
        if repeated is not None:
            body = self.world.operations.document(repeated, self.world.clock())
        else:
            body = _SERVICES.get(route.service, platform.answer)(self.world, call)
            self._remember(call, body)
        if route.method is not None and route.method.response in _document(route).definitions:
            body = _document(route).known(body, route.method.response or "")
        elif route.service == "container":
            body = _known_members(route, body)
        if route.service == "compute":
            body = with_version(body, route.version)
        return Answer(status=200, body=body, service=route.service, method=route.name)

    def _check_project(self, route: Route, parameters: dict[str, str]) -> None:
        project = parameters.get("project")
        if project is None:
            return
        if project in {NUMBER, "-"}:
            parameters["project"] = project = self.world.projects[0]
        if project not in self.world.projects:
            if route.service == "compute":
                raise not_found("compute", f"projects/{project}")
            raise Refusal(403, f"Permission denied on resource project {project}.", "forbidden")

    def _by_id(self, name: str) -> str:
        head, _, tail = name.partition("/")
        number, slash, rest = tail.partition("/")
        return f"{head}/{self.world.projects[0]}{slash}{rest}" if number in {NUMBER, "-"} else name

    def _decoded(self, route: Route, raw: bytes, *, numbers: bool) -> Json | None:
        """The body, checked against the schema of the method, without what the server alone writes.

        ``numbers``: the client writes numbers for enum values, as google-cloud-container does.
        """
        method = route.method
        try:
            body: Any = json.loads(raw) if raw else {}
        except (ValueError, RecursionError):
            raise Refusal(400, "Invalid JSON payload received. Parser error.", "parseError") from None
        if not isinstance(body, dict):
            raise Refusal(400, "Invalid JSON payload received. Root element must be a message.", "parseError")
        if method is None or method.request is None:
            return body if raw else None
        known = _document(route)
        sent: Json = known.without_output(body, method.request)
        if numbers:
            sent = known.with_names(sent, method.request)
        for problem in known.problems(sent, method.request):
            raise _problem(route, problem)
        for field in schemas.required(known, method) or _needed(route):
            if not sent.get(field):
                raise invalid(f"resource.{field}", "", "The field is required.")
        return dict(known.in_utc(sent, method.request))

    def _token(self, call: Call) -> tuple[str, str, str] | None:
        token = call.query.get("requestId", "")
        if call.route.service != "compute" or not token or call.route.verb in {"get", "list", "wait"}:
            return None
        try:
            good = uuid.UUID(token).int != 0
        except ValueError:
            good = False
        if not good:
            raise invalid("requestId", token, "The request ID must be a valid, non-zero UUID.")
        return call.project, call.line, token

    def _repeated(self, call: Call) -> Operation | None:
        token = self._token(call)
        name = None if token is None else self._seen.get(token)
        return None if name is None else self.world.operations.find(name)

    def _remember(self, call: Call, body: Json) -> None:
        token = self._token(call)
        if token is not None and body.get("kind") == "compute#operation":
            self._seen[token] = body["name"]


def _document(route: Route) -> schemas.Document:
    if route.service == "compute":
        return schemas.document("compute", "v1" if route.version == "v1" else "beta")
    return schemas.document(route.service, "v1" if route.version == "v1" else "v1beta1")


def _meant(route: Route, name: str, raw: bytes) -> str:
    """Relative name of the resource that a request means; that of the collection where the body has no name."""
    if route.verb not in {"insert", "create"}:
        return name
    try:
        body = json.loads(raw)
        inner = body.get("cluster") or body.get("nodePool") or body
        return f"{name}/{inner['name']}"
    except (ValueError, AttributeError, KeyError, TypeError):
        return name


def _needed(route: Route) -> tuple[str, ...]:
    """What the documents do not say: every insert of compute needs a name."""
    return ("name",) if route.service == "compute" and route.verb == "insert" else ()


def _known_members(route: Route, body: Json) -> Json:
    known = _document(route)
    members = {"clusters": "Cluster", "nodePools": "NodePool", "operations": "Operation"}
    return {
        key: [known.known(each, members[key]) for each in value] if key in members else value
        for key, value in body.items()
    }


def _problem(route: Route, problem: schemas.Problem) -> Refusal:
    where = problem.where
    if problem.reason == "unknown":
        at = f" at '{where}'" if where else ""
        text = f'Invalid JSON payload received. Unknown name "{problem.value}"{at}: Cannot find field.'
        return Refusal(400, text, "invalid")
    if route.service == "compute":
        return invalid(f"resource.{where}", problem.value, problem.text)
    return Refusal(400, f"Invalid value at '{where}': {problem.value!r} {problem.text}.", "badRequest")
