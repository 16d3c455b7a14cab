"""An all-gather of nccl-tests over several nodes, as a user would run it: a bare Job, its scripts and names.

The Job is suspended, so that it can lie in a cluster until somebody wants to know; what the fabric needs is not
written here: ``wire`` adds it, as it does for any Pod. Invariant: bootstrap goes over the Pod network, the script
waits with a deadline, and the Job ends whatever happens to one of its Pods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from interlace.api.computedomain import API_VERSION as DOMAIN_API
from interlace.fabric.family import Family, SoftwareTuple

NAME: Final = "nccl-test"
CHANNEL: Final = "nccl-test-channel"
"""ResourceClaimTemplate of the test's ComputeDomain, on families with NVLink between nodes."""
SCRIPTS: Final = "/interlace"

_Object = dict[str, Any]
Wire = Callable[[_Object], _Object]
"""A Pod template to the same with all that the family's fabric needs."""

_RUN: Final = """\
#!/bin/bash
# All Pods of the Job run this; the first one starts the measurement over SSH, the others wait until it is over.
set -u
deadline=$((SECONDS + {deadline}))
done_file=/tmp/interlace-done
hosts=()
for index in $(seq 0 $((NODES - 1))); do hosts+=("{name}-$index.{name}"); done
trust="-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
remote() {{ ssh -p {port} $trust -o ConnectTimeout=5 "$@"; }}

{start} > /dev/null || {{ echo "the SSH server did not start" >&2; exit 1; }}

if [ "$JOB_COMPLETION_INDEX" != 0 ]; then
  until [ -e "$done_file" ]; do
    [ "$SECONDS" -lt "$deadline" ] || {{ echo "the first Pod did not say that it is done" >&2; exit 1; }}
    sleep 1
  done
  exit 0
fi

tell() {{ for host in "${{hosts[@]:1}}"; do remote "$host" touch "$done_file" || true; done; }}
trap tell EXIT

: > /tmp/hosts
for host in "${{hosts[@]}}"; do
  until remote "$host" true; do
    [ "$SECONDS" -lt "$deadline" ] || {{ echo "$host does not answer on port {port}" >&2; exit 1; }}
    sleep 1
  done
  echo "$host slots={gpus}" >> /tmp/hosts
done

{rail}forward=()
for name in $(compgen -e); do
  case "$name" in NCCL_* | CUDA_* | LD_LIBRARY_PATH | PATH) forward+=(-x "$name") ;; esac
done
mpirun --allow-run-as-root --mca orte_keep_fqdn_hostnames t --mca btl tcp,self --mca btl_tcp_if_include eth0 \\
  --mca oob_tcp_if_include eth0 --mca plm_rsh_args "-p {port} $trust" \\
  --hostfile /tmp/hosts -np $((NODES * {gpus})) --map-by ppr:{gpus}:node "${{forward[@]}}" \\
  {bind}bash -c 'ulimit -n 1048576 2> /dev/null; exec "$@"' bash \\
  {binaries}/"$COLLECTIVE"_perf -b "$DATA_MIN" -e "$DATA_MAX" -f 2 -g 1 -w 5 -n 20 -c 1
"""


class TestPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured, over how many nodes, and in which namespace."""

    nodes: int = 2
    namespace: str = "default"
    name: str = NAME
    """Of every object."""
    hosts: tuple[str, ...] = ()
    """Host names of the nodes; empty: wherever the scheduler finds room."""
    collective: str = "all_gather"
    least: str = "1M"
    most: str = "8G"
    """Sizes as nccl-tests takes them."""
    rail: int | None = None
    """Index of the one GPU of each node that takes part; None: all."""
    keep: int | None = None
    """Seconds after which Kubernetes deletes the ended Job and what belongs to it; None: never."""

    @property
    def channel(self) -> str:
        """Name of the ResourceClaimTemplate."""
        return f"{self.name}-channel"


STANDARD: Final = TestPlan()


class NoTestError(ValueError):
    """A family without a public image of tests."""


def workload(family: Family, *, software: SoftwareTuple, plan: TestPlan, wire: Wire) -> list[_Object]:
    """The objects of the test, in the order in which they are applied. Raises NoTestError."""
    run = script(family, plan=plan)
    image = software.test or software.plugin
    meta = {"namespace": plan.namespace, "labels": {"app.kubernetes.io/name": NAME}}
    kept = {"ttlSecondsAfterFinished": plan.keep} if plan.keep is not None else {}
    template = wire(_template(family, image=image, plan=plan))
    return [
        *([_domain(plan, meta)] if family.node.mnnvl else []),
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": plan.name, **meta},
            "data": {"run.sh": run},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": plan.name, **meta},
            # Names are needed before the Pods are ready.
            "spec": {
                "clusterIP": "None",
                "publishNotReadyAddresses": True,
                "selector": {"batch.kubernetes.io/job-name": plan.name},
            },
        },
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": plan.name, **meta},
            "spec": {
                "suspend": True,
                "completionMode": "Indexed",
                "completions": plan.nodes,
                "parallelism": plan.nodes,
                "backoffLimit": 0,
                "activeDeadlineSeconds": 2 * _DEADLINE,
                **kept,
                "template": template,
            },
        },
    ]


def script(family: Family, *, plan: TestPlan = STANDARD) -> str:
    """``run.sh``. Raises NoTestError."""
    test = family.test
    if test is None:
        raise NoTestError(f"no public image with nccl-tests is known for {family.id}")
    return _RUN.format(
        name=plan.name,
        deadline=_DEADLINE,
        port=test.port,
        start=" ".join(test.start),
        gpus=family.node.gpus if plan.rail is None else 1,
        rail="" if plan.rail is None else 'export CUDA_VISIBLE_DEVICES="$RAIL"\n',
        bind=f"taskset -c {test.cpus} " if test.cpus else "",
        binaries=test.binaries,
    )


_DEADLINE: Final = 900
"""Seconds until a Pod gives up waiting for the others."""


def _template(family: Family, *, image: str, plan: TestPlan) -> _Object:
    values = {
        "NODES": str(plan.nodes),
        # Whoever wants another measurement changes these in the Job.
        "COLLECTIVE": plan.collective,
        "DATA_MIN": plan.least,
        "DATA_MAX": plan.most,
        **({"RAIL": str(plan.rail)} if plan.rail is not None else {}),
    }
    named = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(plan.hosts)}
    chosen = {"nodeSelectorTerms": [{"matchExpressions": [named]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": chosen}
    return {
        "metadata": {"labels": {"app.kubernetes.io/name": NAME}},
        "spec": {
            "restartPolicy": "Never",
            "subdomain": plan.name,
            **({"affinity": {"nodeAffinity": required}} if plan.hosts else {}),
            "nodeSelector": {"node.kubernetes.io/instance-type": family.machines[0]} if family.node.gke else {},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "containers": [
                {
                    "name": NAME,
                    "image": image,
                    "command": ["/bin/bash", f"{SCRIPTS}/run.sh"],
                    "env": [{"name": name, "value": value} for name, value in values.items()],
                    "resources": {"limits": {"nvidia.com/gpu": family.node.gpus}},
                    "volumeMounts": [{"name": "scripts", "mountPath": SCRIPTS}],
                }
            ],
            "volumes": [{"name": "scripts", "configMap": {"name": plan.name, "defaultMode": 0o555}}],
        },
    }


def _domain(plan: TestPlan, meta: _Object) -> _Object:
    return {
        "apiVersion": DOMAIN_API,
        "kind": "ComputeDomain",
        "metadata": {"name": plan.name, **meta},
        "spec": {"numNodes": plan.nodes, "channel": {"resourceClaimTemplate": {"name": plan.channel}}},
    }
