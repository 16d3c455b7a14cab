"""The webhook as objects ready for server-side apply: rights, certificate, Service, Deployment, configurations.

Installed beside the rest, or alone. Invariants: it may read one Secret, that of its certificate, and change nothing but
this Secret and the ``caBundle`` of its own configurations; a Pod that asked for nothing is created also while it is
down. Entries of a configuration are never taken away: what is left out is a configuration of its own, since an
entry whose ``caBundle`` the webhook owns would stay behind as a half one.

``python -m interlace.manifests.webhook > deploy/webhook.yaml`` renders the committed file.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final

from interlace.api import webhook as names
from interlace.api.computedomain import DRIVER, GROUP
from interlace.kube.config import SERVICE_ACCOUNT_DIR
from interlace.manifests.components import HTTP_PORT, IMAGE, NAMESPACE, render

COMPONENT: Final = "webhook"
TIMEOUT: Final = 5
"""Seconds that an API server waits; a decision takes milliseconds, and a stuck one must not hold a Job for long."""

_Object = dict[str, Any]
_LABELS: Final = {"app.kubernetes.io/name": "interlace", "app.kubernetes.io/component": COMPONENT}
_RBAC: Final = "rbac.authorization.k8s.io/v1"


def webhook_manifests(
    *,
    namespace: str = NAMESPACE,
    image: str = IMAGE,
    replicas: int = 2,
    guard: str = "enforce",
    arguments: Sequence[str] = (),
    exempt: Sequence[str] = (),
) -> list[_Object]:
    """All objects in the order in which they are applied.

    ``guard``: ``enforce``, ``warn`` or ``off``; ``arguments``: further flags of ``interlace serve webhook``;
    ``exempt``: namespaces without a device guard, beside ``kube-system`` and our own.
    """
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _meta(namespace=namespace)},
        *_rights(namespace),
        # Empty, so that nobody needs the right to create Secrets; the webhook fills it.
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {**_meta(namespace=namespace), "name": names.SECRET},
            "type": "Opaque",
        },
        _service(namespace),
        _disruption_budget(namespace),
        _deployment(namespace=namespace, image=image, replicas=replicas, guard=guard, arguments=arguments),
        *configurations(namespace=namespace, guard=guard, exempt=exempt),
    ]


def configurations(
    *, namespace: str = NAMESPACE, guard: str = "enforce", exempt: Sequence[str] = (), url: str = ""
) -> list[_Object]:
    """What API servers ask the webhook about. ``url``: call this instead of the Service (``https://host:port``)."""

    def hook(name: str, path: str, **more: Any) -> _Object:
        service = {"namespace": namespace, "name": names.SERVICE, "path": path, "port": 443}
        return {
            "name": f"{name}.interlace.dev",
            "clientConfig": {"url": url + path} if url else {"service": service},
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "matchPolicy": "Equivalent",
            "timeoutSeconds": TIMEOUT,
            "failurePolicy": "Fail",
            **more,
        }

    again = {"reinvocationPolicy": "IfNeeded"}
    pods = [("pods", _OF_PODS), ("namespaces", _of_namespaces(namespace))]
    claims = [("resourceclaims", "object.spec"), ("resourceclaimtemplates", "object.spec.spec")]
    mutating = [
        *(hook(name, names.INJECT_PATH, **which, rules=[_rule("", "pods")], **again) for name, which in pods),
        *(hook(kind, names.COMPLETE_CLAIM_PATH, **_claims(kind, spec, namespace), **again) for kind, spec in claims),
    ]
    validating = [
        *(hook(name, names.CHECK_PATH, **which, rules=[_rule("", "pods")]) for name, which in pods),
        *(hook(kind, names.CHECK_CLAIM_PATH, **_claims(kind, spec, namespace)) for kind, spec in claims),
        hook(
            "computedomains",
            names.CHECK_DOMAIN_PATH,
            rules=[_rule(GROUP, "computedomains", versions="*")],
            # The controller and the agents refuse the same later: no reason to stop work while we are down.
            failurePolicy="Ignore",
        ),
    ]
    devices = hook(
        "devices",
        names.DEVICES_PATH,
        rules=[_rule("", "pods", operations="CREATE UPDATE")],
        namespaceSelector=_guarded(("kube-system", namespace, *exempt)),
        matchConditions=[{"name": "asks-for-devices", "expression": _ASKS_FOR_DEVICES}],
        failurePolicy="Fail" if guard == "enforce" else "Ignore",
    )
    found = [
        _configuration("Mutating", names.CONFIGURATION, mutating),
        _configuration("Validating", names.CONFIGURATION, validating),
    ]
    return found if guard == "off" else [*found, _configuration("Validating", names.GUARD_CONFIGURATION, [devices])]


_ASKS_FOR_DEVICES: Final = (
    "has(object.metadata.annotations) && "
    'object.metadata.annotations.exists(key, key.startsWith("devices.gke.io/container."))'
)
_OF_PODS: Final[_Object] = {
    "objectSelector": {
        "matchExpressions": [
            {"key": names.FABRIC_LABEL, "operator": "Exists"},
            {"key": names.FABRIC_LABEL, "operator": "NotIn", "values": [names.OFF]},
        ]
    }
}
"""Pods that ask themselves."""


def _of_namespaces(namespace: str) -> _Object:
    """Pods that say nothing, in namespaces that ask. Ours is left out, or a label on it could keep us from starting."""
    return {
        "namespaceSelector": {
            "matchExpressions": [
                {"key": names.FABRIC_LABEL, "operator": "Exists"},
                {"key": names.FABRIC_LABEL, "operator": "NotIn", "values": [names.OFF]},
                _not_named(("kube-system", namespace)),
            ]
        },
        "objectSelector": {"matchExpressions": [{"key": names.FABRIC_LABEL, "operator": "DoesNotExist"}]},
    }


def _guarded(exempt: Sequence[str]) -> _Object:
    off = {"key": names.GUARD_LABEL, "operator": "NotIn", "values": [names.OFF]}
    return {"matchExpressions": [off, _not_named(exempt)]}


def _not_named(namespaces: Sequence[str]) -> _Object:
    values = list(dict.fromkeys(namespaces))
    return {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": values}


def _claims(kind: str, spec: str, namespace: str) -> _Object:
    """Claims for our driver that people write. Those that controllers make from a template were seen as template."""
    makers = [
        "system:serviceaccount:kube-system:resource-claim-controller",
        "system:kube-controller-manager",
        f"system:serviceaccount:{namespace}:interlace-controller",
    ]
    devices = f"has({spec}.devices) && has({spec}.devices.config)"
    ours = f'{spec}.devices.config.exists(entry, has(entry.opaque) && entry.opaque.driver == "{DRIVER}")'
    listed = ", ".join(f'"{name}"' for name in makers)
    return {
        "rules": [_rule("resource.k8s.io", kind, versions="v1 v1beta2 v1beta1")],
        # Equivalent would have one version called for another, and a patch must fit the shape that was sent.
        "matchPolicy": "Exact",
        "matchConditions": [
            {"name": "written-by-hand", "expression": f"!(request.userInfo.username in [{listed}])"},
            {"name": "for-our-driver", "expression": f"{devices} && {ours}"},
        ],
    }


def _rule(group: str, resources: str, *, versions: str = "v1", operations: str = "CREATE") -> _Object:
    return {
        "apiGroups": [group],
        "apiVersions": versions.split(),
        "resources": resources.split(),
        "operations": operations.split(),
        "scope": "Namespaced",
    }


def _configuration(kind: str, name: str, hooks: list[_Object]) -> _Object:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": name, "labels": _LABELS},
        "webhooks": hooks,
    }


def _meta(*, namespace: str = "") -> _Object:
    return {"name": names.SERVICE, **({"namespace": namespace} if namespace else {}), "labels": _LABELS}


def _rights(namespace: str) -> list[_Object]:
    def may(group: str, resources: str, verbs: str, *named: str) -> _Object:
        rule = {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}
        return {**rule, "resourceNames": list(named)} if named else rule

    registration = "admissionregistration.k8s.io"
    cluster = [
        # Labels of namespaces, and which DeviceClasses are behind the claims of a Pod that asked.
        may("", "namespaces", "get list watch"),
        may("resource.k8s.io", "resourceclaims resourceclaimtemplates", "get"),
        # How the domain that a claim by hand names shares its nodes.
        may(GROUP, "computedomains", "list"),
        may(registration, "mutatingwebhookconfigurations", "get list watch patch", names.CONFIGURATION),
        may(
            registration,
            "validatingwebhookconfigurations",
            "get list watch patch",
            names.CONFIGURATION,
            names.GUARD_CONFIGURATION,
        ),
    ]
    own = [may("", "secrets", "get list watch patch", names.SECRET)]
    subjects = [{"kind": "ServiceAccount", "name": names.SERVICE, "namespace": namespace}]
    objects: list[_Object] = []
    for kind, meta, rules in (("ClusterRole", _meta(), cluster), ("Role", _meta(namespace=namespace), own)):
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": names.SERVICE}
        objects += [
            {"apiVersion": _RBAC, "kind": kind, "metadata": meta, "rules": rules},
            {
                "apiVersion": _RBAC,
                "kind": f"{kind}Binding",
                "metadata": meta,
                "roleRef": reference,
                "subjects": subjects,
            },
        ]
    return objects


def _service(namespace: str) -> _Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _meta(namespace=namespace),
        "spec": {"selector": _LABELS, "ports": [{"name": "admission", "port": 443, "targetPort": "admission"}]},
    }


def _disruption_budget(namespace: str) -> _Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _meta(namespace=namespace),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": _LABELS}},
    }


def _deployment(*, namespace: str, image: str, replicas: int, guard: str, arguments: Sequence[str]) -> _Object:
    def port(name: str, number: int) -> _Object:
        return {"name": name, "containerPort": number, "protocol": "TCP"}

    def probe(path: str, **more: int) -> _Object:
        return {"httpGet": {"path": path, "port": "http"}, **more}

    env: list[_Object] = [
        {"name": "NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
        {"name": "HTTP_ENDPOINT", "value": f":{HTTP_PORT}"},
        {"name": "WEBHOOK_ENDPOINT", "value": f":{names.PORT}"},
        {"name": "DEVICE_GUARD", "value": guard},
        {"name": "SSL_CERT_FILE", "value": f"{SERVICE_ACCOUNT_DIR}/ca.crt"},
    ]
    container = {
        "name": COMPONENT,
        "image": image,
        "command": ["interlace", "serve", COMPONENT],
        **({"args": list(arguments)} if arguments else {}),
        "env": env,
        "ports": [port("admission", names.PORT), port("http", HTTP_PORT)],
        "livenessProbe": probe("/healthz", periodSeconds=10, timeoutSeconds=5, failureThreshold=6),
        "readinessProbe": probe("/readyz", periodSeconds=5, timeoutSeconds=5),
        # API servers learn a moment later that this replica ends.
        "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},
        "resources": {"requests": {"cpu": "50m", "memory": "96Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        # OpenSSL reads keys from files only: in memory, for a moment.
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108
    }
    spec = {
        "serviceAccountName": names.SERVICE,
        "priorityClassName": "system-cluster-critical",
        "terminationGracePeriodSeconds": 20,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": _LABELS},
            }
        ],
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _meta(namespace=namespace),
        "spec": {
            "replicas": replicas,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "selector": {"matchLabels": _LABELS},
            "template": {"metadata": {"labels": _LABELS}, "spec": spec},
        },
    }


if __name__ == "__main__":
    sys.stdout.write(render(webhook_manifests()))
