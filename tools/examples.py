"""The examples of each family: ``python -m tools.examples [--check]``.

A bare Job, JobSet and MPIJob with one label, and beside them what ``interlace inject`` makes of each; ``--check`` fails
if a file is not what the code makes now. Names of hosts resolve to addresses on the Pod network, and Gloo, MPI and
NCCL are told to meet there: a rail carries traffic of GPUs and nothing else.
"""

from __future__ import annotations

import sys
from pathlib import Path

from interlace.fabric.family import Family, families
from interlace.pods.bundle import inject_text, text_of
from interlace.pods.workloads import Options

ROOT = Path(__file__).parents[1] / "examples"
TORCH = "nvcr.io/nvidia/pytorch:25.06-py3"
OWN = "registry.example.com/mpi/nccl-tests:1"

TRAIN = """\
                cat > /tmp/reduce.py <<'END'
                import os, torch, torch.distributed as dist
                torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
                dist.init_process_group("nccl")
                ones = torch.ones(1 << 28, device="cuda")
                dist.all_reduce(ones)
                assert ones[0].item() == dist.get_world_size()
                if dist.get_rank() == 0:
                    print("the sum is right on", dist.get_world_size(), "GPUs")
                dist.destroy_process_group()
                END
                exec torchrun --nnodes=2 --nproc-per-node={gpus} --node-rank="$JOB_COMPLETION_INDEX" \\
                  --master-addr="$MASTER_ADDR" --master-port=29500 /tmp/reduce.py
"""

JOB = """\
# Two Pods, one a node of {family}. Their names come from the Service without an address of its own.
apiVersion: v1
kind: Service
metadata:
  name: reduce
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    job-name: reduce
---
apiVersion: batch/v1
kind: Job
metadata:
  name: reduce
spec:
  completionMode: Indexed
  completions: 2
  parallelism: 2
  backoffLimit: 0
  template:
    metadata:
      labels:
        interlace.dev/fabric: {family}
    spec:
      subdomain: reduce
      restartPolicy: Never
      containers:
        - name: main
          image: {torch}
          command: ["/bin/bash", "-c"]
          args:
            - |
{train}\
          env:
            # Pod 0 by its name, that is by its address on eth0.
            - name: MASTER_ADDR
              value: reduce-0.reduce
            - name: GLOO_SOCKET_IFNAME
              value: eth0
          resources:
            limits:
              nvidia.com/gpu: {gpus}
"""

JOBSET = """\
# torchrun on two nodes of {family}. The JobSet gives its Pods their names.
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: reduce
spec:
  network:
    enableDNSHostnames: true
    publishNotReadyAddresses: true
  replicatedJobs:
    - name: node
      replicas: 1
      template:
        spec:
          completionMode: Indexed
          completions: 2
          parallelism: 2
          backoffLimit: 0
          template:
            metadata:
              labels:
                interlace.dev/fabric: {family}
            spec:
              restartPolicy: Never
              containers:
                - name: main
                  image: {torch}
                  command: ["/bin/bash", "-c"]
                  args:
                    - |
{train}\
                  env:
                    # JobSet, job, number of the job, number of the Pod; then the name of the JobSet's Service.
                    - name: MASTER_ADDR
                      value: reduce-node-0-0.reduce
                    - name: GLOO_SOCKET_IFNAME
                      value: eth0
                  resources:
                    limits:
                      nvidia.com/gpu: {gpus}
"""

MPIJOB = """\
# nccl-tests on two nodes of {family}, started by mpirun from a launcher without GPUs.
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  name: reduce
spec:
  slotsPerWorker: {gpus}
  runPolicy:
    cleanPodPolicy: Running
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          restartPolicy: Never
          containers:
            - name: launcher
              image: {image}
              command:
                - mpirun
                - --allow-run-as-root
                - -np
                - "{ranks}"
                - --bind-to
                - none
                # MPI meets on eth0; the rails are for NCCL alone.
                - --mca
                - oob_tcp_if_include
                - eth0
                - --mca
                - btl
                - tcp,self
                - --mca
                - btl_tcp_if_include
                - eth0
                - {binaries}/all_reduce_perf
                - -b
                - 8M
                - -e
                - 8G
                - -f
                - "2"
                - -g
                - "1"
    Worker:
      replicas: 2
      template:
        metadata:
          labels:
            interlace.dev/fabric: {family}
        spec:
          containers:
            - name: worker
              image: {image}
              command: ["/bin/bash", "-c"]
              args:
                # sshd hands the container's own settings on to the ranks, which it would not do by itself.
                - |
                  mkdir -p /run/sshd
                  settings=$(printenv | grep -E '^(NCCL_|LD_LIBRARY_PATH=)' | tr '\\n' ' ')
                  exec /usr/sbin/sshd -De -o Port=22 -o "SetEnv=$settings"
              resources:
                limits:
                  nvidia.com/gpu: {gpus}
"""

BARE = {"job.yaml": JOB, "jobset.yaml": JOBSET, "mpijob.yaml": MPIJOB}


def files(family: Family) -> dict[str, str]:
    """Path below the family's folder to text. Raises ValueError if injection refuses an example."""
    found: dict[str, str] = {}
    software = family.software_for()
    gpus = family.node.gpus
    for name, template in BARE.items():
        depth = 14 if name == "job.yaml" else 22
        train = TRAIN.replace("\n                ", "\n" + " " * depth).replace(" " * 16, " " * depth, 1)
        bare = template.format(
            family=family.id,
            gpus=gpus,
            ranks=2 * gpus,
            torch=TORCH,
            image=software.test or software.plugin or OWN,
            binaries=family.test.binaries if family.test else "/opt/nccl-tests/build",
            train=train.format(gpus=gpus),
        )
        outcomes = inject_text(bare, options=Options(compute_domain=family.node.mnnvl))
        for outcome in outcomes:
            if outcome.refusal is not None:
                raise ValueError(f"{family.id}/{name}: {outcome.refusal}")
        found[f"bare/{name}"] = bare
        found[f"injected/{name}"] = text_of(outcomes)
    return found


def main() -> int:
    """Entry point: exit 0, or 1 with the files that are not up to date."""
    stale: list[str] = []
    for family in families():
        for name, text in files(family).items():
            path = ROOT / family.id / name
            if path.is_file() and path.read_text(encoding="utf-8") == text:
                continue
            if sys.argv[1:] == ["--check"]:
                stale.append(str(path.relative_to(ROOT.parent)))
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
    for name in stale:
        print(f"{name} is not what `python -m tools.examples` writes; run it", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
