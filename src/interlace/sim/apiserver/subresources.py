"""What is not a plain object: bindings, evictions, scale, tokens, and the reviews that answer questions.

Invariant: whatever changes here changes through the same path as an update of the object itself.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from interlace.sim.apiserver import errors, intake, lifecycle
from interlace.sim.apiserver.auth import AUDIENCE, Tokens, UserInfo
from interlace.sim.apiserver.calls import Call
from interlace.sim.apiserver.cause import Cause
from interlace.sim.apiserver.lifecycle import DeleteOptions
from interlace.sim.apiserver.objects import Json, get
from interlace.sim.apiserver.rbac import Authorizer, Request
from interlace.sim.apiserver.selectors import by_label_selector
from interlace.sim.apiserver.store import Store
from interlace.sim.apiserver.writing import Writer

Authenticate = Callable[[str, list[str]], UserInfo | None]
"""Who a token stands for, for these audiences."""
_SUCCESS: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
_SHORTEST = 600


class Subresources:
    """Answers requests for subresources and reviews."""

    def __init__(
        self, *, store: Store, writer: Writer, tokens: Tokens, authorizer: Authorizer, authenticate: Authenticate
    ) -> None:
        self._store = store
        self._writer = writer
        self._tokens = tokens
        self._authorizer = authorizer
        self._authenticate = authenticate

    async def binding(self, call: Call, body: Json) -> Json:
        """Give a pod its node. Raises ApiFault 409 if it has one."""
        target = get(body, "target", "name")
        if not target or get(body, "target", "kind") not in (None, "", "Node"):
            raise errors.plain("target.name: Required value")
        annotations = get(body, "metadata", "annotations") or {}

        def bound(pod: Json) -> Json:
            name = pod["metadata"]["name"]
            refused: str | None = None
            if pod["metadata"].get("deletionTimestamp"):
                refused = f"pod {name} is being deleted, cannot be assigned to a host"
            elif get(pod, "spec", "nodeName"):
                refused = f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"'
            elif get(pod, "spec", "schedulingGates"):
                refused = f"pod {name} has non-empty .spec.schedulingGates"
            if refused:
                raise errors.conflict("", "pods/binding", name, refused)
            uid = get(body, "metadata", "uid")
            if uid and uid != pod["metadata"]["uid"]:
                why = f"UID in precondition: {uid}, UID in object meta: {pod['metadata']['uid']}"
                raise errors.conflict("", "pods/binding", name, f"Precondition failed: {why}")
            conditions = [c for c in get(pod, "status", "conditions") or () if c["type"] != "PodScheduled"]
            scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None,
                         "lastTransitionTime": lifecycle.now()}  # fmt: skip
            meta = pod["metadata"]
            if annotations:
                meta = {**meta, "annotations": {**(meta.get("annotations") or {}), **annotations}}
            return {
                **pod,
                "metadata": meta,
                "spec": {**pod["spec"], "nodeName": target},
                "status": {**(pod.get("status") or {}), "conditions": [*conditions, scheduled]},
            }

        await self._writer.change(call, bound, system=True)
        return _SUCCESS

    async def eviction(self, call: Call, body: Json) -> Json:
        """Delete a pod unless a disruption budget forbids it. Raises ApiFault 429."""
        if get(body, "metadata", "name") not in (None, "", call.target.name):
            raise errors.bad_request("name in URL does not match name in Eviction object")
        pod = self._store.get("pods.", call.key)
        if pod is None:
            raise errors.not_found("", "pods", call.target.name)
        given = body.get("deleteOptions") or {}
        preconditions = given.get("preconditions") or {}
        options = DeleteOptions(
            grace=given.get("gracePeriodSeconds"),
            uid=preconditions.get("uid"),
            resource_version=preconditions.get("resourceVersion"),
            dry_run=call.dry_run or given.get("dryRun") == ["All"],
        )
        budgets = [
            budget
            for (namespace, _), budget in self._store.collection("poddisruptionbudgets.policy").objects.items()
            if namespace == call.target.namespace and by_label_selector(get(budget, "spec", "selector"))(pod)
        ]
        finished = get(pod, "status", "phase") in ("Succeeded", "Failed", "Pending")
        for budget in budgets if not finished and not pod["metadata"].get("deletionTimestamp") else ():
            status = budget.get("status") or {}
            if status.get("disruptionsAllowed", 0) <= 0:
                name = budget["metadata"]["name"]
                need, have = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
                raise errors.too_many_requests(
                    "Cannot evict pod as it would violate the pod's disruption budget.",
                    0,
                    causes=[
                        Cause(
                            "",
                            f"The disruption budget {name} needs {need} healthy pods and has {have} currently",
                            "DisruptionBudget",
                        )
                    ],
                )
        if not options.dry_run and get(pod, "spec", "nodeName") and not pod["metadata"].get("deletionTimestamp"):
            await self._writer.change(call, _disrupted, system=True)
        await self._writer.delete(call, call.key, options)
        return _SUCCESS

    def scale(self, obj: Json) -> Json:
        """The Scale of a workload."""
        selector = get(obj, "spec", "selector", "matchLabels") or {}
        meta = {
            key: value
            for key, value in obj["metadata"].items()
            if key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        }
        return {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": meta,
            "spec": {"replicas": replicas} if (replicas := get(obj, "spec", "replicas")) else {},
            "status": {
                "replicas": get(obj, "status", "replicas") or 0,
                "selector": ",".join(f"{key}={value}" for key, value in sorted(selector.items())),
            },
        }

    async def set_scale(self, call: Call, change: Callable[[Json], Json]) -> Json:
        """Change the replicas of a workload by a function over its Scale. Raises ApiFault."""

        def scaled(old: Json) -> Json:
            before = self.scale(old)
            after = change(before)
            version = intake.meta_version(after)
            if version and version != old["metadata"]["resourceVersion"]:
                raise errors.conflict(call.kind.group, call.kind.plural, call.target.name)
            replicas = get(after, "spec", "replicas") or 0
            if not isinstance(replicas, int) or replicas < 0:
                raise errors.invalid(
                    "autoscaling",
                    "Scale",
                    call.target.name,
                    [
                        Cause(
                            "spec.replicas",
                            f"Invalid value: {replicas}: must be greater than or equal to 0",
                            "FieldValueInvalid",
                        )
                    ],
                )
            return {**old, "spec": {**old["spec"], "replicas": replicas}}

        return self.scale(await self._writer.change(call, scaled))

    def token(self, call: Call, body: Json) -> Json:
        """A token for a ServiceAccount, bound to a pod if asked. Raises ApiFault."""
        account = self._store.get("serviceaccounts.", call.key)
        if account is None:
            raise errors.not_found("", "serviceaccounts", call.target.name)
        spec = body.get("spec") or {}
        seconds = spec.get("expirationSeconds") or 3600
        if seconds < _SHORTEST:
            raise errors.invalid(
                "authentication.k8s.io",
                "TokenRequest",
                "",
                [
                    Cause(
                        "spec.expirationSeconds",
                        f"Invalid value: {seconds}: may not specify a duration less than 10 minutes",
                        "FieldValueInvalid",
                    )
                ],
            )
        pod = node = None
        bound = spec.get("boundObjectRef")
        if bound and bound.get("kind") == "Pod":
            found = self._bound("pods", (call.target.namespace, bound.get("name", "")), bound)
            if get(found, "spec", "serviceAccountName") != call.target.name:
                raise errors.bad_request(
                    f'cannot bind token for serviceaccount "{call.target.name}" to pod running with different '
                    "serviceaccount name."
                )
            pod = (found["metadata"]["name"], found["metadata"]["uid"])
            if name := get(found, "spec", "nodeName"):
                host = self._store.get("nodes.", ("", name))
                node = (name, host["metadata"]["uid"] if host else "")
        elif bound and bound.get("kind") == "Node":
            found = self._bound("nodes", ("", bound.get("name", "")), bound)
            node = (found["metadata"]["name"], found["metadata"]["uid"])
        elif bound:
            raise errors.bad_request(f"cannot bind token to object of type {bound.get('kind')}")
        token, expiry = self._tokens.issue_bound(
            call.target.namespace,
            call.target.name,
            account["metadata"]["uid"],
            pod=pod,
            node=node,
            audiences=spec.get("audiences") or (),
            seconds=seconds,
        )
        until = datetime.fromtimestamp(expiry, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {
                "name": call.target.name,
                "namespace": call.target.namespace,
                "creationTimestamp": lifecycle.now(),
            },
            "spec": {
                "audiences": spec.get("audiences") or [AUDIENCE],
                "expirationSeconds": seconds,
                "boundObjectRef": bound,
            },
            "status": {"token": token, "expirationTimestamp": until},
        }

    def _bound(self, plural: str, key: tuple[str, str], reference: Json) -> Json:
        found = self._store.get(f"{plural}.", key)
        if found is None:
            raise errors.not_found("", plural, key[1])
        uid = reference.get("uid")
        if uid and uid != found["metadata"]["uid"]:
            raise errors.conflict(
                "",
                plural,
                key[1],
                f"the UID in the bound object reference ({uid}) does not match the UID in record. "
                "The object might have been deleted and then recreated",
            )
        return found

    def review(self, call: Call, body: Json) -> Json:
        """Answer one of the reviews."""
        spec = body.get("spec") or {}
        head = {"kind": call.kind.kind, "apiVersion": call.kind.api_version, "metadata": {}}
        match call.kind.plural:
            case "selfsubjectreviews":
                return {
                    **head,
                    "metadata": {"creationTimestamp": lifecycle.now()},
                    "status": {"userInfo": _user(call.user)},
                }
            case "tokenreviews":
                audiences = spec.get("audiences") or [AUDIENCE]
                user = self._authenticate(spec.get("token", ""), audiences)
                if user is None:
                    return {**head, "spec": spec, "status": {"user": {}, "error": "invalid bearer token"}}
                status = {"authenticated": True, "user": _user(user), "audiences": audiences}
                return {**head, "spec": spec, "status": status}
            case "selfsubjectaccessreviews":
                user = call.user
            case _:
                extra = spec.get("extra") or {}
                user = UserInfo(spec.get("user", ""), spec.get("uid", ""), list(spec.get("groups") or ()), extra)
        refusal = self._authorizer.refusal(user, _question(spec))
        status = {"allowed": refusal is None}
        return {**head, "spec": spec, "status": status}


def _disrupted(pod: Json) -> Json:
    """The pod with the condition that says why it goes."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": lifecycle.now(),
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    kept = [c for c in get(pod, "status", "conditions") or () if c["type"] != condition["type"]]
    return {**pod, "status": {**(pod.get("status") or {}), "conditions": [*kept, condition]}}


def _question(spec: Json) -> Request:
    if about := spec.get("resourceAttributes"):
        return Request(
            verb=about.get("verb", ""),
            group=about.get("group", ""),
            resource=about.get("resource", ""),
            subresource=about.get("subresource", ""),
            namespace=about.get("namespace", ""),
            name=about.get("name", ""),
        )
    about = spec.get("nonResourceAttributes") or {}
    return Request(verb=about.get("verb", ""), path=about.get("path", ""))


def _user(user: UserInfo) -> Json:
    out: Json = {"username": user.username, "groups": list(user.groups)}
    if user.uid:
        out["uid"] = user.uid
    if user.extra:
        out["extra"] = dict(user.extra)
    return out
