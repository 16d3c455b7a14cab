"""What a command says about nodes: a pool of its own, or the pool that a cluster is born with.

Invariant: gcloud's own defaults are written out here and nowhere else: three nodes, its six scopes, repair and upgrade
by GKE, one spare node while upgrading; zones, taints and scopes go out sorted.
"""

from __future__ import annotations

from typing import Any, Final

from interlace.gke.bodies import scopes as known
from interlace.gke.bodies.fields import Body, given, nested
from interlace.gke.bodies.node_pool import (
    Accelerator,
    Nic,
    Taint,
    autoscaling,
    node_config,
    node_pool,
    reservation_affinity,
)
from interlace.gke.gcloud import settings as of
from interlace.gke.gcloud import values
from interlace.gke.gcloud.call import Call
from interlace.gke.gcloud.faults import CLUSTER_NAME, Faults
from interlace.gke.gcloud.meanings import fields, merged
from interlace.gke.gcloud.settings import CONTAINER, Settings
from interlace.gke.resource import Key, Resource

NODES: Final = 3
"""How many gcloud asks for where nothing is said, in each zone."""

_DRIVERS: Final = {"default": "DEFAULT", "latest": "LATEST", "disabled": "INSTALLATION_DISABLED"}
_SHARING: Final = {"time-sharing": "TIME_SHARING", "mps": "MPS"}
_LOCAL_SSDS: Final = (
    "--local-ssd-count", "--ephemeral-storage-local-ssd", "--ephemeral-storage", "--local-nvme-ssd-block",
)  # fmt: skip
_REPAIRED: Final = frozenset({"", "cos", "cos_containerd", "gci", "ubuntu", "ubuntu_containerd"})
_EFFECTS: Final = {"NoSchedule": "NO_SCHEDULE", "PreferNoSchedule": "PREFER_NO_SCHEDULE", "NoExecute": "NO_EXECUTE"}
_AFFINITIES: Final = {"any": "ANY_RESERVATION", "none": "NO_RESERVATION", "specific": "SPECIFIC_RESERVATION"}


def pool(call: Call, settings: Settings, faults: Faults) -> Resource:
    """``container node-pools create``."""
    name, project = of.only_name(call, what="node pool"), of.project(call, settings)
    location = of.location(call, settings)
    cluster = call.text("--cluster") or settings.cluster
    if not cluster:
        call.refuse("no cluster is named", remedy="Give --cluster.")
    of.plain(call, "--cluster", cluster)
    config = merged(nodes(call), fields(call, "pool-node"), _disks_of_boot(call))
    sandbox = values.pairs(call, "--sandbox")
    if sandbox is not None:
        if sandbox.get("type") != "gvisor":
            call.refuse(f"--sandbox: the type {sandbox.get('type')} is not taken", remedy="Write type=gvisor.")
        config["sandboxConfig"] = {"type": "GVISOR"}
    said = fields(call, "pool", "pool-alone")
    network = merged(fields(call, "pool-network"), _pod_ranges(call))
    nics = [values.members(call, "--additional-node-network", each) for each in call.all("--additional-node-network")]
    faults.name(name, what="node pool", pattern=CLUSTER_NAME)
    least = values.number(call, "--min-provision-nodes")
    if call.switch("--enable-best-effort-provision"):
        said["bestEffortProvisioning"] = given(enabled=True, minProvisionNodes=least)
    body = node_pool(
        name=name,
        config=config,
        nodes=count(call),
        nics=[Nic(each["network"], each["subnetwork"]) for each in nics],
        network=network,
        locations=sorted(values.listed(call, "--node-locations") or ()),
        auto_repair=repair(call),
        auto_upgrade=call.switch("--enable-autoupgrade") is not False,
        placement=placement(call),
        upgrade=_upgrade(call),
        scaling=scaling(call),
        **said,
    )
    return Resource(
        key=Key("nodePool", f"{location}/{cluster}", name),
        project=project,
        body=body,
        version=CONTAINER[call.track],
        after=(Key("cluster", location, cluster),),
    )


def nodes(call: Call) -> Body:
    """What each node is, as far as both kinds of commands say it the same way."""
    said = fields(call, "node")
    shielded = (call.switch("--shielded-secure-boot"), call.switch("--shielded-integrity-monitoring"))
    if (shielded[0] is None) != (shielded[1] is None):
        call.refuse("--shielded-secure-boot and --shielded-integrity-monitoring belong together")
    local = [flag for flag in _LOCAL_SSDS if call.has(flag)]
    if len(local) > 1:
        call.refuse(f"{local[0]} and {local[1]} exclude each other")
    ssds: dict[str, Any] = {
        "ephemeralStorageLocalSsdConfig": _count(call, "--ephemeral-storage-local-ssd", "count"),
        "localNvmeSsdBlockConfig": _count(call, "--local-nvme-ssd-block", "count"),
        "ephemeralStorageConfig": _count(call, "--ephemeral-storage", "local-ssd-count"),
    }
    typed = node_config(
        accelerators=_accelerators(call),
        scopes=_scopes(call),
        disk_gb=values.size_gb(call, "--disk-size"),
        taints=taints(call),
        reservation=_reservation(call),
        shieldedInstanceConfig=nested(enableSecureBoot=shielded[0], enableIntegrityMonitoring=shielded[1]),
        **ssds,
    )
    return merged(typed, said)


def count(call: Call) -> int:
    """Nodes in each zone."""
    number = values.number(call, "--num-nodes")
    return NODES if number is None else number


def repair(call: Call) -> bool:
    """Whether GKE repairs nodes: where nothing is said, in a release channel, and with images of COS and Ubuntu."""
    said = call.switch("--enable-autorepair")
    if said is not None:
        return said
    return call.has("--release-channel") or (call.text("--image-type") or "").lower() in _REPAIRED


def placement(call: Call) -> Body | None:
    """How near to each other nodes are placed."""
    if call.has("--tpu-topology"):
        call.refuse("--tpu-topology is not taken", cause="It is for TPUs.")
    kind = call.text("--placement-type")
    return nested(
        type=None if kind == "UNSPECIFIED" else kind,
        policyName=call.text("--placement-policy"),
    )


def scaling(call: Call) -> Body | None:
    """Bounds between which GKE changes the number of nodes."""
    names = ("--min-nodes", "--max-nodes", "--total-min-nodes", "--total-max-nodes")
    low, high, total_low, total_high = (values.number(call, name) for name in names)
    policy = call.text("--location-policy")
    if not call.switch("--enable-autoscaling"):
        return None
    return autoscaling(
        minimum=low, maximum=high, total_minimum=total_low, total_maximum=total_high, location_policy=policy
    )


def _accelerators(call: Call) -> list[Accelerator]:
    text = call.text("--accelerator")
    if text is None:
        return []
    said = values.members(call, "--accelerator", text)
    driver = said.get("gpu-driver-version")
    if driver is not None and driver.lower() not in _DRIVERS:
        call.refuse(
            f"--accelerator: the driver version {driver} is not known", remedy="Write default, latest or disabled."
        )
    if "max-time-shared-clients-per-gpu" in said:
        call.refuse(
            "--accelerator: max-time-shared-clients-per-gpu is not taken", remedy="Write max-shared-clients-per-gpu."
        )
    sharing, clients = said.get("gpu-sharing-strategy"), said.get("max-shared-clients-per-gpu")
    if sharing is not None and sharing not in _SHARING:
        call.refuse(f"--accelerator: the sharing strategy {sharing} is not known", remedy="Write time-sharing or mps.")
    shared = sharing is not None or clients is not None
    return [
        Accelerator(
            type=said["type"],
            count=values.integer(call, "--accelerator", said.get("count", "1")),
            driver=None if driver is None else _DRIVERS[driver.lower()],
            partition=said.get("gpu-partition-size"),
            sharing=_SHARING[sharing or "time-sharing"] if shared else None,
            clients=values.integer(call, "--accelerator", clients or "2") if shared else None,
        )
    ]


def _scopes(call: Call) -> list[str] | None:
    said = values.listed(call, "--scopes")
    if said is None:
        return list(known.OWN_ACCOUNT if call.has("--service-account") else known.DEFAULT)
    written = known.written_out(said)
    return written or None


def taints(call: Call) -> list[Taint]:
    """Taints of nodes, sorted by key."""
    found = []
    for key, text in sorted((values.pairs(call, "--node-taints") or {}).items()):
        value, colon, effect = text.rpartition(":")
        if not colon or effect not in _EFFECTS:
            call.refuse(f"--node-taints: {key}={text} is no taint", remedy=f"Write KEY=VALUE:{'|'.join(_EFFECTS)}.")
        found.append(Taint(key, value, _EFFECTS[effect]))
    return found


def _reservation(call: Call) -> Body | None:
    kind, name = call.text("--reservation-affinity"), call.text("--reservation")
    if (kind == "specific") != bool(name):
        call.refuse(
            "--reservation and --reservation-affinity=specific belong together",
            remedy="Write both, or neither of them.",
        )  # fmt: skip
    return None if kind is None else reservation_affinity(_AFFINITIES[kind], [name] if name else ())


def _count(call: Call, flag: str, key: str) -> Body | None:
    said = values.pairs(call, flag)
    if said is None:
        return None
    return given(localSsdCount=values.integer(call, flag, said[key]) if key in said else None)


def _disks_of_boot(call: Call) -> Body:
    disks = []
    for each in call.all("--secondary-boot-disk"):
        said = values.members(call, "--secondary-boot-disk", each)
        if said.get("mode", "CONTAINER_IMAGE_CACHE") != "CONTAINER_IMAGE_CACHE":
            call.refuse(f"--secondary-boot-disk: the mode {said['mode']} is not taken")
        disks.append(given(diskImage=said["disk-image"], mode=said.get("mode")))
    return given(secondaryBootDisks=disks or None)


def _pod_ranges(call: Call) -> Body:
    """Addresses of Pods of this pool."""
    body: Body = {}
    created = values.pairs(call, "--create-pod-ipv4-range")
    if created is not None:
        if set(created) - {"name", "range"}:
            call.refuse("--create-pod-ipv4-range: keys are name and range")
        if call.has("--pod-ipv4-range"):
            call.refuse("--create-pod-ipv4-range and --pod-ipv4-range exclude each other")
        body = given(createPodRange=True, podRange=created.get("name"), podIpv4CidrBlock=created.get("range"))
    more: list[Any] = []
    for each in call.all("--additional-pod-network"):
        said = values.members(call, "--additional-pod-network", each)
        most = said.get("max-pods-per-node")
        limit = {} if most is None else {"maxPodsPerNode": str(values.integer(call, "--additional-pod-network", most))}
        more.append(
            given(subnetwork=said.get("subnetwork"), secondaryPodRange=said["pod-ipv4-range"], maxPodsPerNode=limit)
        )
    return merged(body, given(additionalPodNetworkConfigs=more or None))


def _upgrade(call: Call) -> Body:
    """Spare nodes, or a second set of nodes, while the pool is upgraded."""
    surge, missing = values.number(call, "--max-surge-upgrade"), values.number(call, "--max-unavailable-upgrade")
    if (surge is None) != (missing is None):
        call.refuse("--max-surge-upgrade and --max-unavailable-upgrade belong together")
    by_surge, blue_green = call.switch("--enable-surge-upgrade"), call.switch("--enable-blue-green-upgrade")
    if by_surge and blue_green:
        call.refuse("--enable-surge-upgrade and --enable-blue-green-upgrade exclude each other")
    policy = values.pairs(call, "--standard-rollout-policy")
    if policy and {"batch-node-count", "batch-percent"} <= policy.keys():
        call.refuse("--standard-rollout-policy: batch-node-count and batch-percent exclude each other")
    rollout = None
    if policy is not None:
        flag = "--standard-rollout-policy"
        nodes_, share = policy.get("batch-node-count"), policy.get("batch-percent")
        rollout = given(
            batchNodeCount=None if nodes_ is None else values.integer(call, flag, nodes_),
            batchPercentage=None if share is None else values.decimal(call, flag, share),
            batchSoakDuration=policy.get("batch-soak-duration"),
        )
    details = nested(
        nodePoolSoakDuration=call.text("--node-pool-soak-duration"),
        standardRolloutPolicy=rollout,
        autoscaledRolloutPolicy={} if call.switch("--autoscaled-rollout-policy") else None,
    )
    return given(
        maxSurge=1 if surge is None else surge,
        maxUnavailable=missing,
        strategy="BLUE_GREEN" if blue_green else "SURGE" if by_surge else None,
        blueGreenSettings=details,
    )
