"""A CronJob that measures a fabric at set times and keeps a baseline, with the few rights that it needs.

Invariant: rights are of one namespace, except reading nodes and Pods, without which busy nodes could not be refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from interlace.api.computedomain import GROUP
from interlace.manifests.components import IMAGE

NAME: Final = "interlace-verify"
_FIELD: Final = re.compile(r"[0-9A-Za-z*/,-]+\Z")
_MACRO: Final = re.compile(r"@(hourly|daily|midnight|weekly|monthly|yearly|annually)\Z")

_Object = dict[str, Any]


def watching(flags: Sequence[str], *, namespace: str, schedule: str, baseline: str) -> list[_Object]:
    """The objects, in order. ``flags``: of ``interlace verify run``. Raises ValueError for a bad schedule."""
    fields = schedule.split()
    if not (_MACRO.match(schedule) or (len(fields) == 5 and all(map(_FIELD.match, fields)))):
        raise ValueError(f"{schedule!r} is no schedule of cron; give five fields such as '17 3 * * *', or @daily")
    labels = {"app.kubernetes.io/name": NAME}
    meta = {"name": NAME, "namespace": namespace, "labels": labels}
    subject = [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}]
    cluster = {"name": f"{NAME}-{namespace}", "labels": labels}
    container = {
        "name": "verify",
        "image": IMAGE,
        "command": ["interlace", "verify", "run"],
        "args": [*flags, f"--namespace={namespace}", f"--baseline-map={baseline}", "--json"],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": 65532,
        },
    }
    rbac = "rbac.authorization.k8s.io"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": meta, "rules": _rules()},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": NAME},
            "subjects": subject,
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRole",
            "metadata": cluster,
            "rules": [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"]}],
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": cluster,
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": cluster["name"]},
            "subjects": subject,
        },
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": meta,
            "spec": {
                "schedule": schedule,
                "concurrencyPolicy": "Forbid",
                "startingDeadlineSeconds": 3600,
                "successfulJobsHistoryLimit": 3,
                "failedJobsHistoryLimit": 3,
                "jobTemplate": {
                    "spec": {
                        "backoffLimit": 0,
                        "template": {
                            "metadata": {"labels": labels},
                            "spec": {
                                "serviceAccountName": NAME,
                                "restartPolicy": "Never",
                                "terminationGracePeriodSeconds": 90,
                                "containers": [container],
                            },
                        },
                    }
                },
            },
        },
    ]


def _rules() -> list[_Object]:
    return [
        {
            "apiGroups": [""],
            "resources": ["configmaps", "services"],
            "verbs": ["get", "create", "patch", "delete"],
        },
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list", "watch", "create", "patch", "delete"]},
        {"apiGroups": [GROUP], "resources": ["computedomains"], "verbs": ["get", "create", "delete"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["list"]},
    ]
