"""What of our own is installed in a cluster, as objects ready for server-side apply.

The one source of ``deploy/interlace.yaml``, of the demo and of the tests. Invariant: each component
holds the rights that its code uses and no other; the agents can write claims and slices of their own
node (from Kubernetes 1.36 enforced by the API server), nobody can read Secrets or Nodes.

``python -m interlace.manifests > deploy/interlace.yaml`` renders the committed file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import yaml

from interlace import __version__
from interlace.api.computedomain import CHANNEL_CLASS, DAEMON_CLASS, DRIVER, GROUP
from interlace.api.crd import crds
from interlace.kube.config import SERVICE_ACCOUNT_DIR

IMAGE: Final = f"ghcr.io/interlace/interlace:{__version__}"
NAMESPACE: Final = "interlace-system"
CONTROLLER: Final = "controller"
AGENT: Final = "agent"
IMEX_HOST: Final = "imex-host"

IMEX_PORT: Final = 50000
HTTP_PORT: Final = 8080
MAX_NODES: Final = 18

PLUGINS: Final = "/var/lib/kubelet/plugins"
REGISTRY: Final = "/var/lib/kubelet/plugins_registry"
CDI: Final = "/var/run/cdi"
IMEX_RUN: Final = "/run/interlace/imex"
"""On the host: the socket between agent and imex-host, and the files of ``nvidia-imex``."""
GPU_NODES: Final = {"nvidia.com/gpu.present": "true"}
"""Labels of nodes with GPUs, as GPU feature discovery sets them."""
NRI_RUN: Final = "/var/run/nri"
"""On the host: the folder of containerd's socket for plugins."""
HOST_DEV: Final = "/host-dev"
"""In the agent that injects devices: the host's /dev."""
DRIVER_ROOT: Final = "/driver-root"
"""In containers: where the root of the NVIDIA driver is mounted."""

_Object = dict[str, Any]


def manifests(
    *,
    namespace: str = NAMESPACE,
    image: str = IMAGE,
    replicas: int = 2,
    driver_root: str = "/",
    max_nodes: int = MAX_NODES,
    gpu_nodes: Mapping[str, str] = GPU_NODES,
    nri: bool = False,
) -> list[_Object]:
    """All objects in the order in which they are applied.

    ``replicas`` of the controller; ``driver_root`` is where the NVIDIA driver is on the host
    (``/run/nvidia/driver`` if the GPU Operator installs it); ``max_nodes`` is the most nodes of one
    domain in one NVLink clique; ``gpu_nodes`` are the labels of nodes with GPUs; with
    ``nri`` the agents inject the devices that annotations ask for.
    """
    shared = {
        "MAX_NODES_PER_IMEX_DOMAIN": str(max_nodes),
        # They trust the cluster's CA alone; the image's list of roots would take 2 MB of each process.
        "SSL_CERT_FILE": f"{SERVICE_ACCOUNT_DIR}/ca.crt",
    }
    return [
        _namespace(namespace),
        *crds(),
        *_device_classes(),
        *[_service_account(name, namespace=namespace) for name in (CONTROLLER, AGENT, IMEX_HOST)],
        *_user_roles(),
        *_rights(CONTROLLER, namespace=namespace, cluster=_CONTROLLER_CLUSTER, own=_CONTROLLER_OWN),
        *_rights(AGENT, namespace=namespace, cluster=_AGENT_CLUSTER, own=_AGENT_OWN),
        _imex_network_policy(namespace),
        _imex_host(namespace=namespace, image=image, driver_root=driver_root, nodes=gpu_nodes),
        _agent(namespace=namespace, image=image, driver_root=driver_root, nodes=gpu_nodes, env=shared, nri=nri),
        _controller(namespace=namespace, image=image, replicas=replicas, env=shared),
    ]


def render(objects: list[_Object], *, by: str = "python -m interlace.manifests") -> str:
    """The objects as one YAML file for kubectl; ``by`` is the command that makes it."""
    head = f"# Rendered by `{by}`; change that, not this.\n"
    return head + yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, width=120, explicit_start=True)


class _Dumper(yaml.SafeDumper):
    """Writes each object out where it is used, without anchors."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - as the base class has it
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    """Scripts as they are, line by line."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def _rule(group: str, resources: str, verbs: str, *, names: tuple[str, ...] = ()) -> _Object:
    rule: _Object = {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}
    if names:
        rule["resourceNames"] = list(names)
    return rule


_CONTROLLER_CLUSTER: Final = (
    # Finalizers are metadata: they are patched on the object itself.
    _rule(GROUP, "computedomains", "list watch patch"),
    _rule(GROUP, "computedomains/status", "patch"),
    _rule("resource.k8s.io", "resourceclaimtemplates", "list watch create patch delete"),
    _rule("resource.k8s.io", "resourceclaims resourceslices", "list watch"),
    # A Pod whose Prepare failed is annotated so that kubelet calls again.
    _rule("", "pods", "get patch"),
    # A Pod that met another domain on its node and cannot start there.
    _rule("", "pods/eviction", "create"),
    _rule("", "events", "create patch"),
)
_CONTROLLER_OWN: Final = (
    _rule(GROUP, "computedomaincliques", "list watch create update delete"),
    # An imex-host of an older template is deleted where no domain is.
    _rule("", "pods", "list watch delete"),
    _rule("apps", "controllerrevisions", "list watch"),
    _rule("coordination.k8s.io", "leases", "get create patch"),
)
_AGENT_CLUSTER: Final = (
    _rule("resource.k8s.io", "resourceclaims", "get"),
    _rule("resource.k8s.io", "resourceclaims/status", "patch"),
    # From 1.36 the status of allocated devices needs this verb too, and is limited to the own node by it.
    _rule("resource.k8s.io", "resourceclaims/driver", "associated-node:patch", names=(DRIVER,)),
    _rule("resource.k8s.io", "resourceslices", "get list watch create patch"),
    _rule("", "events", "create patch"),
)
_AGENT_OWN: Final = (_rule(GROUP, "computedomaincliques", "list watch"),)


def _labels(component: str) -> dict[str, str]:
    return {"app.kubernetes.io/name": "interlace", "app.kubernetes.io/component": component}


def _name(component: str) -> str:
    return f"interlace-{component}"


def _meta(component: str, *, namespace: str = "") -> _Object:
    meta: _Object = {"name": _name(component)}
    if namespace:
        meta["namespace"] = namespace
    return {**meta, "labels": _labels(component)}


def _namespace(namespace: str) -> _Object:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": namespace,
            # Agent and imex-host are privileged.
            "labels": {"pod-security.kubernetes.io/enforce": "privileged"},
        },
    }


def _device_classes() -> list[_Object]:
    channel = f'device.attributes["{DRIVER}"]'
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": name},
            "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}" && {test}'}}]},
        }
        for name, test in (
            (CHANNEL_CLASS, f'{channel}.type == "channel" && {channel}.id == 0'),
            (DAEMON_CLASS, f'{channel}.type == "daemon"'),
        )
    ]


def _service_account(component: str, *, namespace: str) -> _Object:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _meta(component, namespace=namespace)}
    return {**account, "automountServiceAccountToken": False} if component == IMEX_HOST else account


def _user_roles() -> list[_Object]:
    """Whoever may edit (view) Deployments in a namespace may edit (view) ComputeDomains there."""
    return [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {
                "name": f"interlace-computedomain-{role}",
                "labels": {f"rbac.authorization.k8s.io/aggregate-to-{target}": "true" for target in targets},
            },
            "rules": [_rule(GROUP, "computedomains", verbs)],
        }
        for role, targets, verbs in (
            ("edit", ("admin", "edit"), "create update patch delete deletecollection"),
            ("view", ("admin", "edit", "view"), "get list watch"),
        )
    ]


def _rights(component: str, *, namespace: str, cluster: tuple[_Object, ...], own: tuple[_Object, ...]) -> list[_Object]:
    """Roles and bindings of a component, for the cluster and for our namespace."""
    subjects = [{"kind": "ServiceAccount", "name": _name(component), "namespace": namespace}]
    api = "rbac.authorization.k8s.io/v1"
    objects: list[_Object] = []
    for scope, rules in (("", cluster), (namespace, own)):
        kind = "Role" if scope else "ClusterRole"
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": _name(component)}
        meta = _meta(component, namespace=scope)
        objects += [
            {"apiVersion": api, "kind": kind, "metadata": meta, "rules": list(rules)},
            {"apiVersion": api, "kind": f"{kind}Binding", "metadata": meta, "roleRef": reference, "subjects": subjects},
        ]
    return objects


def _imex_network_policy(namespace: str) -> _Object:
    """One address serves one domain after another, so nobody else may speak to IMEX."""
    hosts = {"matchLabels": _labels(IMEX_HOST)}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _meta(IMEX_HOST, namespace=namespace),
        "spec": {
            "podSelector": hosts,
            "policyTypes": ["Ingress"],
            "ingress": [
                {"from": [{"podSelector": hosts}], "ports": [{"protocol": "TCP", "port": IMEX_PORT}]},
                {"ports": [{"protocol": "TCP", "port": HTTP_PORT}]},
            ],
        },
    }


def _field(path: str) -> _Object:
    return {"valueFrom": {"fieldRef": {"fieldPath": path}}}


def _container(component: str, *, image: str, env: dict[str, str], **more: Any) -> _Object:
    downward = {
        "NODE_NAME": "spec.nodeName",
        "POD_NAME": "metadata.name",
        "POD_UID": "metadata.uid",
        "POD_IP": "status.podIP",
        "NAMESPACE": "metadata.namespace",
    }
    return {
        "name": component,
        "image": image,
        "command": ["interlace", "serve", component],
        "env": [
            *({"name": name, **_field(path)} for name, path in downward.items()),
            *({"name": name, "value": value} for name, value in env.items()),
        ],
        **more,
    }


def _probe(path: str, **more: int) -> _Object:
    return {"httpGet": {"path": path, "port": "http"}, **more}


def _port(name: str, number: int) -> _Object:
    return {"name": name, "containerPort": number, "protocol": "TCP"}


def _mounts(paths: dict[str, str], *, driver_root: str) -> tuple[list[_Object], list[_Object]]:
    """Volumes and mounts: ``paths`` (name to path) at the same path in host and container, and the driver."""
    volumes: list[_Object] = [
        {"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}} for name, path in paths.items()
    ]
    mounts: list[_Object] = [{"name": name, "mountPath": path} for name, path in paths.items()]
    volumes.append({"name": "driver-root", "hostPath": {"path": driver_root, "type": "DirectoryOrCreate"}})
    # HostToContainer: a driver that is mounted there later is seen without a restart.
    mounts.append(
        {"name": "driver-root", "mountPath": DRIVER_ROOT, "readOnly": True, "mountPropagation": "HostToContainer"}
    )
    return volumes, mounts


def _pod(component: str, *, container: _Object, **more: Any) -> _Object:
    """Pod template of a component."""
    return {
        "metadata": {"labels": _labels(component)},
        "spec": {"serviceAccountName": _name(component), **more, "containers": [container]},
    }


def _workload(kind: str, component: str, *, namespace: str, template: _Object, **spec: Any) -> _Object:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": _meta(component, namespace=namespace),
        "spec": {**spec, "selector": {"matchLabels": _labels(component)}, "template": template},
    }


def _controller(*, namespace: str, image: str, replicas: int, env: dict[str, str]) -> _Object:
    container = _container(
        CONTROLLER,
        image=image,
        env={**env, "HTTP_ENDPOINT": f":{HTTP_PORT}"},
        ports=[_port("http", HTTP_PORT)],
        livenessProbe=_probe("/healthz", periodSeconds=10, timeoutSeconds=5, failureThreshold=6),
        readinessProbe=_probe("/readyz", periodSeconds=5, timeoutSeconds=5),
        resources={"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
        securityContext={
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    )
    template = _pod(
        CONTROLLER,
        container=container,
        priorityClassName="system-cluster-critical",
        terminationGracePeriodSeconds=10,
        securityContext={
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        tolerations=[{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}],
        affinity={
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 100,
                        "podAffinityTerm": {
                            "labelSelector": {"matchLabels": _labels(CONTROLLER)},
                            "topologyKey": "kubernetes.io/hostname",
                        },
                    }
                ]
            }
        },
    )
    return _workload("Deployment", CONTROLLER, namespace=namespace, template=template, replicas=replicas)


def _on_gpu_nodes(nodes: Mapping[str, str]) -> _Object:
    return {
        "nodeSelector": dict(nodes),
        "tolerations": [{"operator": "Exists"}],
        "priorityClassName": "system-node-critical",
    }


def _agent(
    *, namespace: str, image: str, driver_root: str, nodes: Mapping[str, str], env: dict[str, str], nri: bool
) -> _Object:
    paths = {"plugins": PLUGINS, "plugins-registry": REGISTRY, "cdi": CDI, "imex": IMEX_RUN}
    volumes, mounts = _mounts(paths | {"nri": NRI_RUN} if nri else paths, driver_root=driver_root)
    if nri:
        env = {**env, "INTERLACE_NRI": "on", "INTERLACE_HOST_DEV": HOST_DEV}
        volumes.append({"name": "dev", "hostPath": {"path": "/dev", "type": "Directory"}})
        mounts.append({"name": "dev", "mountPath": HOST_DEV, "readOnly": True, "mountPropagation": "HostToContainer"})
    container = _container(
        AGENT,
        image=image,
        env={
            **env,
            "CDI_ROOT": CDI,
            "NVIDIA_DRIVER_ROOT": driver_root,
            "DRIVER_ROOT_CTR_PATH": DRIVER_ROOT,
            "KUBELET_REGISTRAR_DIRECTORY_PATH": REGISTRY,
            "KUBELET_PLUGINS_DIRECTORY_PATH": PLUGINS,
            "INTERLACE_IMEX_SOCKET": f"{IMEX_RUN}/host.sock",
            "HEALTHCHECK_PORT": str(HTTP_PORT),
        },
        ports=[_port("http", HTTP_PORT)],
        startupProbe=_probe("/healthz", periodSeconds=1, timeoutSeconds=5, failureThreshold=300),
        livenessProbe=_probe("/healthz", periodSeconds=10, timeoutSeconds=5, failureThreshold=6),
        readinessProbe=_probe("/readyz", periodSeconds=5, timeoutSeconds=5),
        resources={"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        # NVML opens device nodes, and kubelet's folders belong to root.
        securityContext={"privileged": True},
        volumeMounts=mounts,
    )
    template = _pod(
        AGENT, container=container, **_on_gpu_nodes(nodes), terminationGracePeriodSeconds=30, volumes=volumes
    )
    return _workload(
        "DaemonSet",
        AGENT,
        namespace=namespace,
        template=template,
        # The new agent of a node takes over from the old one, so that the node can always start jobs.
        updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "20%", "maxUnavailable": 0}},
    )


def _imex_host(*, namespace: str, image: str, driver_root: str, nodes: Mapping[str, str]) -> _Object:
    volumes, mounts = _mounts({"imex": IMEX_RUN}, driver_root=driver_root)
    # Requests equal to limits: Guaranteed, the last to be killed when memory runs short.
    resources = {"cpu": "500m", "memory": "512Mi"}
    container = _container(
        IMEX_HOST,
        image=image,
        env={
            "NVIDIA_DRIVER_ROOT": driver_root,
            "DRIVER_ROOT_CTR_PATH": DRIVER_ROOT,
            "INTERLACE_IMEX_SOCKET": f"{IMEX_RUN}/host.sock",
            "HEALTHCHECK_PORT": str(HTTP_PORT),
        },
        ports=[_port("http", HTTP_PORT), _port("imex", IMEX_PORT)],
        # No liveness probe: a probe that fails must never end the IMEX of a running job.
        readinessProbe=_probe("/readyz", periodSeconds=5, timeoutSeconds=5),
        resources={"requests": resources, "limits": resources},
        # nvidia-imex opens the driver's capability devices.
        securityContext={"privileged": True},
        volumeMounts=mounts,
    )
    template = _pod(
        IMEX_HOST,
        container=container,
        **_on_gpu_nodes(nodes),
        automountServiceAccountToken=False,
        enableServiceLinks=False,
        terminationGracePeriodSeconds=60,
        volumes=volumes,
    )
    return _workload(
        "DaemonSet", IMEX_HOST, namespace=namespace, template=template, updateStrategy={"type": "OnDelete"}
    )
