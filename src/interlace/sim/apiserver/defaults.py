"""Defaults of built-in kinds, and what admission adds to Pods.

Only what components, schedulers and kubectl look at; values are those of the Kubernetes API reference.

Invariant: a value that the client set stays.
"""

from __future__ import annotations

import base64
from typing import Any

from interlace.sim.apiserver.kinds import Kind
from interlace.sim.apiserver.objects import Json, get

_TOLERATION_SECONDS = 300


def _fill(target: Json, **values: Any) -> None:
    for key, value in values.items():
        target.setdefault(key, value)


def _section(obj: Json, key: str) -> Json:
    found = obj.get(key)
    if not isinstance(found, dict):
        found = obj[key] = {}
    return found


def _pod_spec(spec: Json) -> None:
    _fill(
        spec,
        restartPolicy="Always",
        terminationGracePeriodSeconds=30,
        dnsPolicy="ClusterFirst",
        schedulerName="default-scheduler",
        securityContext={},
    )
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        _container(container)
    for volume in spec.get("volumes") or ():
        for source, mode in (("configMap", 420), ("secret", 420), ("projected", 420), ("downwardAPI", 420)):
            if isinstance(volume.get(source), dict):
                volume[source].setdefault("defaultMode", mode)
        if isinstance(volume.get("hostPath"), dict):
            volume["hostPath"].setdefault("type", "")


def _container(container: Json) -> None:
    image = container.get("image") or ""
    tag = image.rpartition("/")[2].partition("@")[0].partition(":")[2]
    latest = "@" not in image and tag in ("", "latest")
    _fill(
        container,
        imagePullPolicy="Always" if latest else "IfNotPresent",
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
        resources={},
    )
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(container.get(probe), dict):
            _fill(container[probe], timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
            if isinstance(container[probe].get("httpGet"), dict):
                _fill(container[probe]["httpGet"], path="/", scheme="HTTP")
    for env in container.get("env") or ():
        reference = get(env, "valueFrom", "fieldRef")
        if reference:
            reference.setdefault("apiVersion", "v1")


def _pod_requests(spec: Json) -> None:
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        limits = get(container, "resources", "limits")
        if limits:
            requests = _section(container["resources"], "requests")
            for key, value in limits.items():
                requests.setdefault(key, value)


def _pod_addresses(status: Json) -> None:
    for single, many in (("podIP", "podIPs"), ("hostIP", "hostIPs")):
        if status.get(single) and not status.get(many):
            status[many] = [{"ip": status[single]}]


def _template(spec: Json) -> None:
    template = _section(spec, "template")
    _pod_spec(_section(template, "spec"))


def _rolling(surge: Any, unavailable: Any) -> Json:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def apply_defaults(obj: Json, kind: Kind) -> None:
    """Fill in the defaults of a built-in kind, in place."""
    match kind.storage:
        case "pods.":
            _pod_spec(_section(obj, "spec"))
            _fill(obj["spec"], enableServiceLinks=True)
            _pod_requests(obj["spec"])
            _pod_addresses(obj.get("status") or {})
            if obj["spec"].get("hostNetwork"):
                for container in obj["spec"].get("containers") or ():
                    for port in container.get("ports") or ():
                        port.setdefault("hostPort", port.get("containerPort"))
        case "deployments.apps":
            spec = _section(obj, "spec")
            _fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600, strategy={})
            if spec["strategy"].get("type", "RollingUpdate") == "RollingUpdate":
                default = _rolling("25%", "25%")
                spec["strategy"].setdefault("type", "RollingUpdate")
                _fill(_section(spec["strategy"], "rollingUpdate"), **default["rollingUpdate"])
            _template(spec)
        case "replicasets.apps":
            spec = _section(obj, "spec")
            _fill(spec, replicas=1)
            _template(spec)
        case "daemonsets.apps":
            spec = _section(obj, "spec")
            _fill(spec, revisionHistoryLimit=10, updateStrategy={})
            spec["updateStrategy"].setdefault("type", "RollingUpdate")
            if spec["updateStrategy"]["type"] == "RollingUpdate":
                _fill(_section(spec["updateStrategy"], "rollingUpdate"), maxSurge=0, maxUnavailable=1)
            _template(spec)
        case "statefulsets.apps":
            spec = _section(obj, "spec")
            _fill(spec, replicas=1, revisionHistoryLimit=10, podManagementPolicy="OrderedReady", updateStrategy={})
            spec["updateStrategy"].setdefault("type", "RollingUpdate")
            if spec["updateStrategy"]["type"] == "RollingUpdate":
                _fill(_section(spec["updateStrategy"], "rollingUpdate"), partition=0)
            _fill(spec, persistentVolumeClaimRetentionPolicy={"whenDeleted": "Retain", "whenScaled": "Retain"})
            _template(spec)
        case "jobs.batch":
            spec = _section(obj, "spec")
            if "completions" not in spec and "parallelism" not in spec:
                _fill(spec, completions=1)
            _fill(
                spec,
                parallelism=1,
                backoffLimit=6,
                completionMode="NonIndexed",
                suspend=False,
                manualSelector=False,
                podReplacementPolicy="TerminatingOrFailed",
            )
            labels = get(spec, "template", "metadata", "labels")
            if labels and not get(obj, "metadata", "labels"):
                obj["metadata"]["labels"] = dict(labels)
            _template(spec)
        case "services.":
            spec = _section(obj, "spec")
            _fill(spec, type="ClusterIP", sessionAffinity="None", internalTrafficPolicy="Cluster")
            if spec["type"] == "ClusterIP":
                _fill(spec, ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack")
            for port in spec.get("ports") or ():
                _fill(port, protocol="TCP", targetPort=port.get("port"))
        case "secrets.":
            obj.setdefault("type", "Opaque")
            if strings := obj.pop("stringData", None):
                data = _section(obj, "data")
                data.update({key: base64.b64encode(value.encode()).decode() for key, value in strings.items()})
        case "namespaces.":
            labels = _section(_section(obj, "metadata"), "labels")
            labels["kubernetes.io/metadata.name"] = obj["metadata"].get("name", "")
        case "resourceclaims.resource.k8s.io":
            _device_requests(_section(obj, "spec"))
        case "resourceclaimtemplates.resource.k8s.io":
            _device_requests(_section(_section(obj, "spec"), "spec"))
        case "priorityclasses.scheduling.k8s.io":
            _fill(obj, preemptionPolicy="PreemptLowerPriority")
        case "clusterroles.rbac.authorization.k8s.io":
            obj.setdefault("rules", None)
        case "clusterrolebindings.rbac.authorization.k8s.io" | "rolebindings.rbac.authorization.k8s.io":
            for subject in obj.get("subjects") or ():
                if subject.get("kind") in ("User", "Group"):
                    subject.setdefault("apiGroup", "rbac.authorization.k8s.io")
        case "validatingwebhookconfigurations.admissionregistration.k8s.io":
            for hook in obj.get("webhooks") or ():
                _webhook(hook)
        case "mutatingwebhookconfigurations.admissionregistration.k8s.io":
            for hook in obj.get("webhooks") or ():
                _webhook(hook)
                hook.setdefault("reinvocationPolicy", "Never")
        case "customresourcedefinitions.apiextensions.k8s.io":
            spec = _section(obj, "spec")
            spec.setdefault("conversion", {"strategy": "None"})
            names = _section(spec, "names")
            kind_name = names.get("kind") or ""
            _fill(names, singular=kind_name.lower(), listKind=f"{kind_name}List")
        case _:
            pass


def _webhook(hook: Json) -> None:
    _fill(
        hook,
        failurePolicy="Fail",
        matchPolicy="Equivalent",
        namespaceSelector={},
        objectSelector={},
        timeoutSeconds=10,
    )
    service = get(hook, "clientConfig", "service")
    if service:
        service.setdefault("port", 443)
    for rule in hook.get("rules") or ():
        rule.setdefault("scope", "*")


def _device_requests(spec: Json) -> None:
    for request in get(spec, "devices", "requests") or ():
        for exact in [request.get("exactly"), *(request.get("firstAvailable") or ())]:
            if isinstance(exact, dict):
                exact.setdefault("allocationMode", "ExactCount")
                if exact["allocationMode"] == "ExactCount":
                    exact.setdefault("count", 1)
                for toleration in exact.get("tolerations") or ():
                    toleration.setdefault("operator", "Equal")


def admit_pod(pod: Json) -> None:
    """What the default admission plugins add to a new Pod: service account and tolerations for lost nodes."""
    spec = _section(pod, "spec")
    _fill(spec, serviceAccountName="default", serviceAccount="default", preemptionPolicy="PreemptLowerPriority")
    spec.setdefault("priority", 0)
    tolerations = spec.setdefault("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(_tolerates(item, key) for item in tolerations):
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _TOLERATION_SECONDS,
                }
            )


def _tolerates(toleration: Json, key: str) -> bool:
    if toleration.get("effect") not in (None, "", "NoExecute"):
        return False
    return toleration.get("key") == key or (not toleration.get("key") and toleration.get("operator") == "Exists")


def qos_class(spec: Json) -> str:
    """Guaranteed, Burstable or BestEffort."""
    requests: dict[str, set[str]] = {}
    guaranteed = True
    any_set = False
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        resources = container.get("resources") or {}
        limits = resources.get("limits") or {}
        wanted = resources.get("requests") or {}
        for key in ("cpu", "memory"):
            any_set = any_set or key in limits or key in wanted
            requests.setdefault(key, set()).add(str(wanted.get(key)))
            if key not in limits or str(wanted.get(key)) != str(limits[key]):
                guaranteed = False
    if not any_set:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"
