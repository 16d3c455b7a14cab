"""The start of a cluster file: complete, commented, and valid as soon as project and location are in it. Pure."""

from __future__ import annotations

import re
from datetime import date
from typing import Final

from interlace.fabric.family import Family
from interlace.fabric.version import minor_version
from interlace.gke.cluster import API_VERSION, KIND, LOCATION, NAME, PROJECT
from interlace.gke.errors import Refused

NO_PROJECT: Final = "PROJECT_ID"
NO_LOCATION: Final = "ZONE"
"""Placeholders, which validation refuses."""

_TEXT: Final = """\
# {title}.
# Every key and what it means: docs/cluster-file.md. Check it with: interlace gke validate -f cluster.yaml
apiVersion: {api}
kind: {kind}
metadata:
  name: {name}  # of the cluster; networks, subnets and firewall rules get names that begin with it
  # labels: {{team: ml}}  # of the cluster and its VMs, for bills
spec:
  project: {project}{project_note}
  location: {location}{location_note}
  family: {family}
  # version: "{version}"  # else that of the channel; {floor}
  upgrades:
    # Nodes of a running job must not be replaced. A cluster in a channel cannot turn node upgrades off, but hold them.
    # Patches of the control plane come; nodes stay until you take this away, or support of their version ends.
    channel: regular  # rapid, regular, stable, extended; none: a static version
    hold:
      start: {today}T00:00:00Z
  network:
    mode: multinet  # {mode}
    # All ranges are planned from private space when they are left out. In use elsewhere (peering, VPN, offices):
    # avoid: [10.128.0.0/9]
    # range: 192.168.0.0/16  # where node subnets are taken from
    # prefixLength: 24  # of each node subnet: 252 nodes. Changing it later replaces them
    # hostProject: my-host-project  # shared VPC
  # primary:  # the network of the cluster itself; without this one is made, with room for Pods and Services
  #   existing: true
  #   network: my-vpc
  #   subnet: my-subnet
  #   podsName: pods  # names of the subnet's secondary ranges
  #   servicesName: services
  controlPlane:
    privateNodes: false  # true: no public addresses; the network then needs Cloud NAT for images from outside
    # authorizedNetworks: [203.0.113.0/24]  # who may reach the API server
  workloadIdentity: true  # Pods get rights of their own, not those of the node
  system:  # nodes without GPUs, for what Kubernetes itself runs
    nodes: 1  # in each zone
    machineType: e2-standard-8
  pools:
  - name: gpu
    nodes: 2  # in each zone
{capacity}\
    # Nodes may pull images, log and report metrics, nothing else. A wider scope such as cloud-platform would hand every
    # Pod on the node all rights of its service account; with workloadIdentity no Pod needs that.
    # scopes: [cloud-platform]
    # serviceAccount: gke-nodes@{account}.iam.gserviceaccount.com
    # labels: {{pool: training}}
    # taints: [{{key: dedicated, value: training, effect: NoSchedule}}]
    # disk: {{type: pd-ssd, sizeGb: 200}}
"""

_ON_DEMAND: Final = """\
    # Where the VMs come from: on demand, or one of
    # reservation: {name: my-reservation}  # also project, block and subBlock
    # surge: {maxSurge: 0, maxUnavailable: 1}  # where the reservation is full, for upgrades
    # spot: true
    placement: {}  # nodes near each other; take it out where the reservation has a placement policy of its own
    # hostMaintenance: PERIODIC  # must be that of the reservation
"""

_RESERVED: Final = """\
    # VMs of this family come from reservations.
    # reservation: {name: my-reservation, block: my-block}
    # placement: {}  # only where the reservation has no placement policy of its own
"""


def start(family: Family, *, name: str, project: str, location: str, today: date) -> str:
    """The text. Empty ``project`` and ``location`` become placeholders. Raises Refused for a family not on GKE, and
    for values that validation would refuse.
    """
    for word, value, pattern in (
        ("name", name, NAME),
        ("project", project or "project", PROJECT),
        ("location", location or "zone-a1", LOCATION),
    ):
        if re.fullmatch(pattern, value) is None:
            raise Refused(f"{value!r} is no {word} of a cluster", remedy=f"give another --{word}")
    if not family.node.gke:
        raise Refused(
            f"GKE has no machines of family {family.id}",
            cause=f"{family.title} stands in clusters of one's own",
            remedy="take a4x for GB200 on GKE",
        )
    h100 = family.node.transport in {"tcpx", "tcpxo"}
    newest = [each for each in family.versions if each.version][-1]
    return _TEXT.format(
        title=f"{family.title}, on GKE",
        api=API_VERSION,
        kind=KIND,
        name=name,
        project=project or NO_PROJECT,
        project_note="" if project else "  # your project's id",
        location=location or NO_LOCATION,
        location_note="" if location else f"  # a zone with {family.machines[0]}",
        family=family.id,
        version=newest.version,
        floor=f"the least one of {minor_version(newest.minor)}",
        today=today.isoformat(),
        mode="one VPC a NIC; GKE's managed networks are not for this family"
        if h100
        else "one VPC for each sort of NIC; managed: GKE makes them",
        capacity=_ON_DEMAND if h100 else _RESERVED,
        account=project or "PROJECT_ID",
    )
