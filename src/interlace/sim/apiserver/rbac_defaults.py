"""The roles and bindings that every cluster starts with.

A table of facts, kept to the identities that a cluster of ours sees: scheduler, controller manager
and its controllers, authenticated users, administrators. Rules are those of Kubernetes 1.36 with
its default feature gates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_READ: Final = "get list watch"
_READ_UPDATE: Final = "get list watch update patch"
_WRITE: Final = "create update patch delete deletecollection"
_RESOURCE: Final = "resource.k8s.io"
_LEASES: Final = "coordination.k8s.io"
_AUTHN: Final = "authentication.k8s.io"
_AUTHZ: Final = "authorization.k8s.io"
_STORAGE: Final = "storage.k8s.io"
_HEALTH: Final = "/livez /readyz /healthz /version /version/"


def _rule(verbs: str, groups: str, resources: str, *, names: str = "") -> dict[str, Any]:
    """A rule from words; ``core`` stands for the core group."""
    rule: dict[str, Any] = {
        "verbs": verbs.split(),
        "apiGroups": ["" if g == "core" else g for g in groups.split()],
        "resources": resources.split(),
    }
    return rule | ({"resourceNames": names.split()} if names else {})


def _paths(verbs: str, paths: str) -> dict[str, Any]:
    return {"verbs": verbs.split(), "nonResourceURLs": paths.split()}


_EVENTS: Final = _rule("create update patch", "core events.k8s.io", "events")
_REVIEWS: Final = [
    _rule("create", _AUTHN, "tokenreviews"),
    _rule("create", _AUTHZ, "subjectaccessreviews"),
]

_VIEW: Final = [
    _rule(
        _READ,
        "core",
        "pods pods/status pods/log replicationcontrollers serviceaccounts services services/status endpoints "
        "persistentvolumeclaims persistentvolumeclaims/status configmaps limitranges resourcequotas "
        "resourcequotas/status bindings namespaces namespaces/status",
    ),
    _rule(_READ, "core events.k8s.io", "events"),
    _rule(_READ, "discovery.k8s.io", "endpointslices"),
    _rule(
        _READ,
        "apps",
        "controllerrevisions statefulsets statefulsets/status statefulsets/scale daemonsets daemonsets/status "
        "deployments deployments/status deployments/scale replicasets replicasets/status replicasets/scale",
    ),
    _rule(_READ, "batch", "jobs jobs/status cronjobs cronjobs/status"),
    _rule(_READ, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
    _rule(_READ, _RESOURCE, "resourceclaims resourceclaims/status resourceclaimtemplates"),
]
_EDIT: Final = [
    _rule(_READ, "core", "pods/attach pods/proxy pods/exec pods/portforward secrets services/proxy"),
    _rule(
        _WRITE,
        "core",
        "pods pods/attach pods/proxy pods/exec pods/portforward replicationcontrollers serviceaccounts services "
        "services/proxy persistentvolumeclaims configmaps secrets",
    ),
    _rule("create", "core", "pods/eviction serviceaccounts/token"),
    _rule(_WRITE, "core events.k8s.io", "events"),
    _rule(
        _WRITE,
        "apps",
        "statefulsets statefulsets/scale daemonsets deployments deployments/scale replicasets replicasets/scale",
    ),
    _rule(_WRITE, "batch", "jobs cronjobs"),
    _rule(_WRITE, "policy", "poddisruptionbudgets"),
    _rule(f"{_READ} {_WRITE}", _LEASES, "leases"),
    _rule(_WRITE, _RESOURCE, "resourceclaims resourceclaimtemplates"),
]
_ADMIN: Final = [
    _rule("create", _AUTHZ, "localsubjectaccessreviews"),
    _rule(f"{_READ} {_WRITE}", "rbac.authorization.k8s.io", "roles rolebindings"),
]

_SCHEDULER: Final = [
    _EVENTS,
    _rule("create", _LEASES, "leases"),
    _rule("get update list watch", _LEASES, "leases", names="kube-scheduler"),
    _rule(_READ, "core", "nodes services replicationcontrollers persistentvolumeclaims persistentvolumes namespaces"),
    _rule(f"{_READ} delete", "core", "pods"),
    _rule("create", "core", "pods/binding bindings"),
    _rule("patch update", "core", "pods/status"),
    _rule("update", "core", "pods/finalizers"),
    _rule(_READ, "apps", "replicasets statefulsets"),
    _rule(_READ, "policy", "poddisruptionbudgets"),
    *_REVIEWS,
    _rule(_READ, _STORAGE, "csinodes volumeattachments csidrivers csistoragecapacities storageclasses"),
    _rule(_READ_UPDATE, "core", "persistentvolumes persistentvolumeclaims"),
    _rule(_READ, _RESOURCE, "deviceclasses resourceslices devicetaintrules"),
    _rule(_READ_UPDATE, _RESOURCE, "resourceclaims resourceclaims/status"),
    _rule("create delete", _RESOURCE, "resourceclaims"),
    _rule("update patch", _RESOURCE, "resourceclaims/binding"),
]
_CONTROLLER_MANAGER: Final = [
    _EVENTS,
    _rule("create", _LEASES, "leases"),
    _rule("get update", _LEASES, "leases", names="kube-controller-manager"),
    _rule("create", "core", "secrets serviceaccounts serviceaccounts/token"),
    _rule("delete", "core", "secrets"),
    _rule("get", "core", "namespaces secrets serviceaccounts configmaps"),
    _rule("update", "core", "secrets serviceaccounts"),
    *_REVIEWS,
    _rule("list watch", "*", "*"),
]

CLUSTER_ROLES: Final[Mapping[str, list[dict[str, Any]]]] = {
    "cluster-admin": [_rule("*", "*", "*"), _paths("*", "*")],
    "admin": [*_VIEW, *_EDIT, *_ADMIN],
    "edit": [*_VIEW, *_EDIT],
    "view": _VIEW,
    "system:discovery": [_paths("get", f"{_HEALTH} /openapi /openapi/* /api /api/* /apis /apis/*")],
    "system:basic-user": [
        _rule("create", _AUTHZ, "selfsubjectaccessreviews selfsubjectrulesreviews"),
        _rule("create", _AUTHN, "selfsubjectreviews"),
    ],
    "system:public-info-viewer": [_paths("get", _HEALTH)],
    "system:monitoring": [
        _paths("get", "/metrics /metrics/slis /livez /readyz /healthz /livez/* /readyz/* /healthz/*")
    ],
    "system:auth-delegator": _REVIEWS,
    "system:service-account-issuer-discovery": [
        _paths(
            "get",
            "/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/",
        )
    ],
    "system:kube-scheduler": _SCHEDULER,
    "system:kube-controller-manager": _CONTROLLER_MANAGER,
}
"""Rules by name of the ClusterRole."""

GROUP_ROLES: Final[Mapping[str, tuple[str, ...]]] = {
    "system:masters": ("cluster-admin",),
    "system:authenticated": ("system:discovery", "system:basic-user", "system:public-info-viewer"),
    "system:unauthenticated": ("system:public-info-viewer",),
    "system:monitoring": ("system:monitoring",),
    "system:serviceaccounts": ("system:service-account-issuer-discovery",),
}
"""ClusterRoles bound to a group."""

USER_ROLES: Final[Mapping[str, tuple[str, ...]]] = {
    "system:kube-scheduler": ("system:kube-scheduler",),
    "system:kube-controller-manager": ("system:kube-controller-manager",),
}
"""ClusterRoles bound to a user."""

CONTROLLERS: Final[Mapping[str, list[dict[str, Any]]]] = {
    "cronjob-controller": [
        _rule("get list watch update", "batch", "cronjobs"),
        _rule("get list watch create update delete patch", "batch", "jobs"),
        _rule("update", "batch", "cronjobs/status cronjobs/finalizers"),
        _rule("list watch delete", "core", "pods"),
        _EVENTS,
    ],
    "daemon-set-controller": [
        _rule(_READ, "apps", "daemonsets"),
        _rule("update", "apps", "daemonsets/status daemonsets/finalizers"),
        _rule("list watch", "core", "nodes"),
        _rule("list watch create delete patch", "core", "pods"),
        _rule("create", "core", "pods/binding"),
        _rule("get list watch create delete update patch", "apps", "controllerrevisions"),
        _EVENTS,
    ],
    "deployment-controller": [
        _rule("get list watch update", "apps", "deployments"),
        _rule("update", "apps", "deployments/status deployments/finalizers"),
        _rule("get list watch create update patch delete", "apps", "replicasets"),
        _rule("get list watch update", "core", "pods"),
        _EVENTS,
    ],
    "device-taint-eviction-controller": [
        _rule(f"{_READ} delete", "core", "pods"),
        _rule("update patch", "core", "pods/status"),
        _rule(_READ, _RESOURCE, "resourceclaims resourceslices deviceclasses devicetaintrules"),
        _rule("update patch", _RESOURCE, "devicetaintrules/status"),
        _EVENTS,
    ],
    "disruption-controller": [
        _rule(_READ, "apps", "deployments replicasets statefulsets"),
        _rule(_READ, "core", "replicationcontrollers"),
        _rule(_READ, "policy", "poddisruptionbudgets"),
        _rule("update", "policy", "poddisruptionbudgets/status"),
        _rule("patch update", "core", "pods/status"),
        _rule("get", "*", "*/scale"),
        _EVENTS,
    ],
    "endpoint-controller": [
        _rule(_READ, "core", "services pods"),
        _rule("get list watch create update delete", "core", "endpoints"),
        _rule("create", "core", "endpoints/restricted"),
        _EVENTS,
    ],
    "endpointslice-controller": [
        _rule(_READ, "core", "services pods nodes"),
        _rule("update", "core", "services/finalizers"),
        _rule("get list watch create update delete", "discovery.k8s.io", "endpointslices"),
        _EVENTS,
    ],
    "generic-garbage-collector": [_rule("get list watch patch update delete", "*", "*"), _EVENTS],
    "job-controller": [
        _rule(_READ_UPDATE, "batch", "jobs"),
        _rule("update", "batch", "jobs/status jobs/finalizers"),
        _rule("list watch create delete patch", "core", "pods"),
        _EVENTS,
    ],
    "namespace-controller": [
        _rule(f"{_READ} delete", "core", "namespaces"),
        _rule("update", "core", "namespaces/finalize namespaces/status"),
        _rule(f"{_READ} delete deletecollection", "*", "*"),
    ],
    "node-controller": [
        _rule("get list watch update delete patch", "core", "nodes"),
        _rule("patch update", "core", "nodes/status pods/status"),
        _rule("list watch get delete", "core", "pods"),
        _EVENTS,
    ],
    "pod-garbage-collector": [
        _rule("list watch delete", "core", "pods"),
        _rule(_READ, "core", "nodes"),
        _rule("patch", "core", "pods/status"),
    ],
    "replicaset-controller": [
        _rule("get list watch update", "apps", "replicasets"),
        _rule("update", "apps", "replicasets/status replicasets/finalizers"),
        _rule("list watch patch create delete", "core", "pods"),
        _EVENTS,
    ],
    "resource-claim-controller": [
        _rule(_READ, "core", "pods"),
        _rule("update", "core", "pods/finalizers"),
        _rule("get list watch create delete", _RESOURCE, "resourceclaims"),
        _rule("update patch", _RESOURCE, "resourceclaims resourceclaims/status resourceclaims/binding"),
        _rule("update patch", "core", "pods/status"),
        _EVENTS,
    ],
    "root-ca-cert-publisher": [_rule("create update", "core", "configmaps"), _EVENTS],
    "service-account-controller": [_rule("create", "core", "serviceaccounts"), _EVENTS],
    "statefulset-controller": [
        _rule(_READ, "apps", "statefulsets"),
        _rule("update", "apps", "statefulsets/status statefulsets/finalizers"),
        _rule("list watch get create delete update patch", "core", "pods"),
        _rule("get create delete update patch list watch", "apps", "controllerrevisions"),
        _rule("get create list watch update delete", "core", "persistentvolumeclaims"),
        _rule("update", "core", "pods/finalizers"),
        _EVENTS,
    ],
    "ttl-after-finished-controller": [_rule(f"{_READ} delete", "batch", "jobs"), _EVENTS],
}
"""Rules of the ServiceAccounts of ``kube-system`` that the controller manager acts as."""
