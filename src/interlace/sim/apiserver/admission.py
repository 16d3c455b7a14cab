"""Calls of admission webhooks: who is asked, what they are told, what their answers do.

Mutating webhooks run one after another in the order of their names, each on the result of the one
before; then validating webhooks run all at once. Invariant: the given object is never changed; a
refusal or a failure that counts raises ``ApiFault`` in the words of the real server.

Rules, namespace and object selectors decide who is asked. ``matchConditions``, conversion between
versions (``matchPolicy``) and re-invocation are not simulated.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import ssl
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Literal

import aiohttp
import msgspec

from interlace.sim.apiserver import errors
from interlace.sim.apiserver.auth import UserInfo
from interlace.sim.apiserver.cause import quote
from interlace.sim.apiserver.kinds import Kind
from interlace.sim.apiserver.objects import Json, encode
from interlace.sim.apiserver.patching import json_patch
from interlace.sim.apiserver.selectors import by_label_selector

Operation = Literal["CREATE", "UPDATE", "DELETE"]
Resolve = Callable[[str, str, int], tuple[str, int] | None]
"""Address of a Service's port, from namespace, name and port; None if nothing answers there."""

_GROUP: Final = "admissionregistration.k8s.io"
_OPTIONS: Final = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}
_DEFAULT_TIMEOUT: Final = 10
_MAX_ANSWER: Final = 16 * 1024 * 1024


class Admitted(msgspec.Struct, frozen=True):
    """What came out."""

    obj: Json | None
    """The object as mutated; the given one if nobody changed it."""
    warnings: list[str]


class _Attributes(msgspec.Struct, frozen=True, kw_only=True):
    operation: Operation
    kind: Kind
    subresource: str
    namespace: str
    name: str
    old: Json | None
    user: UserInfo
    dry_run: bool
    namespace_labels: Mapping[str, str]


class _Answer(msgspec.Struct, frozen=True):
    allowed: bool
    warnings: list[str]
    patch: list[Any]
    status: Json


class _CallError(Exception):
    """The webhook could not be asked, or its answer makes no sense."""


async def admit(
    configs: Iterable[Json],
    *,
    operation: Operation,
    kind: Kind,
    subresource: str = "",
    namespace: str = "",
    name: str = "",
    obj: Json | None,
    old: Json | None,
    user: UserInfo,
    dry_run: bool = False,
    session: aiohttp.ClientSession,
    resolve: Resolve,
    namespace_labels: Mapping[str, str] | None = None,
) -> Admitted:
    """Ask every webhook of ``configs`` (both kinds of configuration) that the request concerns.

    ``obj`` is None on DELETE, ``old`` on CREATE. Raises ``ApiFault`` if the request is refused.
    """
    if kind.group == _GROUP:
        return Admitted(obj, [])
    attributes = _Attributes(
        operation=operation,
        kind=kind,
        subresource=subresource,
        namespace=namespace,
        name=name,
        old=old,
        user=user,
        dry_run=dry_run,
        namespace_labels=namespace_labels or {},
    )
    listed = list(configs)
    warnings: list[str] = []
    for hook in _hooks(listed, "MutatingWebhookConfiguration"):
        if not _concerns(hook, attributes, obj):
            continue
        answer = await _ask(hook, attributes, obj, session, resolve, mutating=True)
        if answer is None:
            continue
        warnings += answer.warnings
        _require(hook, answer)
        if answer.patch:
            if obj is None:
                what = f"admission webhook {quote(hook['name'])} attempted to modify the object"
                raise errors.internal(f"{what}, which is not supported for this operation")
            obj = _patched(obj, answer.patch)
    validating = [h for h in _hooks(listed, "ValidatingWebhookConfiguration") if _concerns(h, attributes, obj)]
    for hook, outcome in await _ask_all(validating, attributes, obj, session, resolve):
        if isinstance(outcome, errors.ApiFault):
            raise outcome
        if outcome is not None:
            warnings += outcome.warnings
            _require(hook, outcome)
    return Admitted(obj, warnings)


def _hooks(configs: Iterable[Json], kind: str) -> Iterator[Json]:
    chosen = [c for c in configs if c.get("kind") == kind]
    for config in sorted(chosen, key=lambda c: str(c["metadata"]["name"])):
        yield from config.get("webhooks") or ()


def _concerns(hook: Json, attributes: _Attributes, obj: Json | None) -> bool:
    if not any(_rule_matches(rule, attributes) for rule in hook.get("rules") or ()):
        return False
    in_namespace = attributes.namespace or attributes.kind.plural == "namespaces"
    if in_namespace and (selector := hook.get("namespaceSelector")):
        own = attributes.kind.plural == "namespaces" and not attributes.subresource and obj is not None
        labels = obj["metadata"].get("labels") if own and obj is not None else attributes.namespace_labels
        if not by_label_selector(selector)({"metadata": {"labels": labels}}):
            return False
    if selector := hook.get("objectSelector"):
        test = by_label_selector(selector)
        return any(o is not None and test(o) for o in (obj, attributes.old))
    return True


def _rule_matches(rule: Json, attributes: _Attributes) -> bool:
    kind = attributes.kind
    scope = rule.get("scope") or "*"
    if scope != "*" and (scope == "Namespaced") != kind.namespaced:
        return False
    wanted = (
        ("operations", attributes.operation),
        ("apiGroups", kind.group),
        ("apiVersions", kind.version),
    )
    if any(not {"*", value} & set(rule.get(key) or ()) for key, value in wanted):
        return False
    for entry in rule.get("resources") or ():
        resource, _, subresource = entry.partition("/")
        if resource in {"*", kind.plural} and subresource in {"*", attributes.subresource}:
            return True
    return False


async def _ask_all(
    hooks: list[Json], attributes: _Attributes, obj: Json | None, session: aiohttp.ClientSession, resolve: Resolve
) -> list[tuple[Json, _Answer | errors.ApiFault | None]]:
    """All answers, in the order of the hooks; a fault stands where it happened."""

    async def one(hook: Json) -> _Answer | errors.ApiFault | None:
        try:
            return await _ask(hook, attributes, obj, session, resolve, mutating=False)
        except errors.ApiFault as fault:
            return fault

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(hook)) for hook in hooks]
    return [(hook, task.result()) for hook, task in zip(hooks, tasks, strict=True)]


async def _ask(
    hook: Json,
    attributes: _Attributes,
    obj: Json | None,
    session: aiohttp.ClientSession,
    resolve: Resolve,
    *,
    mutating: bool,
) -> _Answer | None:
    """The answer; None if the call failed and the webhook's policy is to ignore that."""
    name = quote(hook["name"])
    if attributes.dry_run and hook.get("sideEffects") not in {"None", "NoneOnDryRun"}:
        raise errors.bad_request(f"admission webhook {name} does not support dry run")
    try:
        return await _call(hook, attributes, obj, session, resolve, mutating=mutating)
    except _CallError as error:
        if hook.get("failurePolicy") == "Ignore":
            return None
        raise errors.internal(f"failed calling webhook {name}: {error}") from None


async def _call(
    hook: Json,
    attributes: _Attributes,
    obj: Json | None,
    session: aiohttp.ClientSession,
    resolve: Resolve,
    *,
    mutating: bool,
) -> _Answer:
    seconds = hook.get("timeoutSeconds") or _DEFAULT_TIMEOUT
    client = hook["clientConfig"]
    shown, url, server = _address(client, resolve)
    post = f'failed to call webhook: Post "{shown}?timeout={seconds}s"'
    if url is None:
        raise _CallError(f"{post}: no endpoints available for service {quote(client['service']['name'])}")
    review = _review(attributes, obj)
    try:
        async with session.post(
            url,
            params={"timeout": f"{seconds}s"},
            data=encode(review),
            headers={"Content-Type": "application/json", "Accept": "application/json"},
            ssl=_trust(client.get("caBundle") or ""),
            server_hostname=server,
            timeout=aiohttp.ClientTimeout(total=seconds),
            allow_redirects=False,
        ) as response:
            body = await response.content.read(_MAX_ANSWER)
            status = response.status
    except TimeoutError:
        raise _CallError(f"{post}: context deadline exceeded") from None
    except aiohttp.ClientConnectorCertificateError as error:
        raise _CallError(f"{post}: tls: failed to verify certificate: {error.certificate_error}") from None
    except (aiohttp.ClientError, OSError, ssl.SSLError) as error:
        raise _CallError(f"{post}: {error}") from None
    if status != 200:
        text = body[:1024].decode(errors="replace").strip()
        raise _CallError(f"failed to call webhook: the webhook answered with status {status}: {text}")
    return _read(body, review["request"]["uid"], mutating=mutating)


def _address(client: Json, resolve: Resolve) -> tuple[str, str | None, str | None]:
    """URL as the configuration names it, URL to connect to, and the name that the certificate must bear.

    There is no URL to connect to if nothing answers for the service.
    """
    if url := client.get("url"):
        return url, url, None
    service = client["service"]
    namespace, name, port = service["namespace"], service["name"], service.get("port") or 443
    path = "/" + (service.get("path") or "").lstrip("/")
    host = f"{name}.{namespace}.svc"
    shown = f"https://{host}:{port}{path}"
    found = resolve(namespace, name, port)
    if found is None:
        return shown, None, host
    address, real_port = found
    literal = f"[{address}]" if ":" in address else address
    return shown, f"https://{literal}:{real_port}{path}", host


@functools.lru_cache(maxsize=64)
def _trust(bundle: str) -> ssl.SSLContext:
    """A context that trusts the bundle (base64 of PEM) alone, or the system if there is none."""
    if not bundle:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cadata=base64.b64decode(bundle).decode())
    except (ValueError, ssl.SSLError) as error:
        raise _CallError(f"could not get REST client: unable to load root certificates: {error}") from None


def _review(attributes: _Attributes, obj: Json | None) -> Json:
    kind, subject = attributes.kind, obj or attributes.old or {}
    group, _, version = str(subject.get("apiVersion") or kind.api_version).rpartition("/")
    about = {"group": group, "version": version, "kind": subject.get("kind") or kind.kind}
    resource = {"group": kind.group, "version": kind.version, "resource": kind.plural}
    user = attributes.user
    request: Json = {
        "uid": str(uuid.uuid4()),
        "kind": about,
        "resource": resource,
        "requestKind": about,
        "requestResource": resource,
        "name": attributes.name,
        "namespace": attributes.namespace,
        "operation": attributes.operation,
        "userInfo": {"username": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra},
        "object": obj,
        "oldObject": attributes.old,
        "dryRun": attributes.dry_run,
        "options": {"kind": _OPTIONS[attributes.operation], "apiVersion": "meta.k8s.io/v1"},
    }
    if attributes.subresource:
        request |= {"subResource": attributes.subresource, "requestSubResource": attributes.subresource}
    kept = {k: v for k, v in request.items() if v != "" or k == "uid"}
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": kept}


def _read(body: bytes, uid: str, *, mutating: bool) -> _Answer:
    wrong = "received invalid webhook response"
    try:
        review = msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise _CallError(f"failed to call webhook: couldn't get a valid answer: {error}") from None
    response = review.get("response")
    if not isinstance(response, dict):
        raise _CallError(f"{wrong}: webhook response was absent")
    if response.get("uid") != uid:
        raise _CallError(f"{wrong}: expected response.uid={quote(uid)}, got {quote(str(response.get('uid') or ''))}")
    got = f"{review.get('apiVersion', '')}, Kind={review.get('kind', '')}"
    if got != "admission.k8s.io/v1, Kind=AdmissionReview":
        raise _CallError(f"{wrong}: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {got}")
    patch: list[Any] = []
    if mutating and bool(response.get("patch")) != bool(response.get("patchType")):
        first, second = ("patch", "patchType") if response.get("patch") else ("patchType", "patch")
        raise _CallError(f"{wrong}: webhook returned response.{first} but not response.{second}")
    if not mutating and (response.get("patch") or response.get("patchType")):
        raise _CallError(f"{wrong}: validating webhook may not return response.patch")
    if response.get("patch"):
        if response["patchType"] != "JSONPatch":
            raise _CallError(f"unsupported patch type {quote(str(response['patchType']))}")
        try:
            patch = msgspec.json.decode(base64.b64decode(response["patch"]), type=list[Any])
        except (ValueError, msgspec.DecodeError) as error:
            raise _CallError(f"received undecodable patch in webhook response: {error}") from None
    return _Answer(
        allowed=bool(response.get("allowed")),
        warnings=list(response.get("warnings") or ()),
        patch=patch,
        status=response.get("status") or {},
    )


def _patched(obj: Json, patch: list[Any]) -> Json:
    try:
        return dict(json_patch(obj, patch))
    except errors.ApiFault as fault:
        raise errors.internal(str(fault)) from None


def _require(hook: Json, answer: _Answer) -> None:
    """Raise the refusal of a webhook that did not allow the request."""
    if answer.allowed:
        return
    status = answer.status
    explanation = status.get("message") or status.get("reason")
    denied = f"admission webhook {quote(hook['name'])} denied the request"
    raise errors.ApiFault(
        code if (code := int(status.get("code") or 0)) >= 400 else 400,
        str(status.get("reason") or ""),
        f"{denied}: {explanation}" if explanation else f"{denied} without explanation",
        details=status.get("details"),
    )
