"""What the creating commands of ``gcloud compute`` ask for: networks, subnets, rules, policies, reservations.

Invariant: gcloud's own defaults are written out here and nowhere else (a network without ``--subnet-mode`` has
automatic subnets; a firewall rule without ``--network`` is for ``default``; a subnet sends ``privateIpGoogleAccess``).
"""

from __future__ import annotations

import re
from typing import Final

from interlace.gke.bodies import compute as bodies
from interlace.gke.bodies.compute import SecondaryRange, Traffic
from interlace.gke.bodies.fields import Body
from interlace.gke.bodies.references import compute_url
from interlace.gke.gcloud import settings as of
from interlace.gke.gcloud import values
from interlace.gke.gcloud.call import Call
from interlace.gke.gcloud.faults import Faults
from interlace.gke.gcloud.meanings import fields, merged
from interlace.gke.gcloud.settings import COMPUTE, Settings
from interlace.gke.resource import Key, Resource

_RULE: Final = re.compile(r"(?P<protocol>[A-Za-z0-9]+)(?::(?P<ports>\d+(?:-\d+)?))?\Z")


def network(call: Call, settings: Settings, faults: Faults) -> Resource:
    """``compute networks create``."""
    name, project = of.only_name(call, what="network"), of.project(call, settings)
    version = COMPUTE[call.track]
    mode = (call.text("--subnet-mode") or "auto").lower()
    body: Body = {"name": name, "routingConfig": {"routingMode": "REGIONAL"}}
    if mode != "legacy":
        body["autoCreateSubnetworks"] = mode == "auto"
    if call.has("--range"):
        call.refuse("--range is not taken", cause="It is for networks of the old kind, without subnets.")
    profile = call.text("--network-profile")
    if profile:
        of.network(call, "--network-profile", profile)
        body["networkProfile"] = compute_url(
            profile, collection="global/networkProfiles", project=project, version=version
        )
    said = fields(call, "network")
    faults.name(name, what="network")
    return Resource(key=Key("network", "global", name), project=project, body=merged(body, said), version=version)


def subnetwork(call: Call, settings: Settings, faults: Faults) -> Resource:
    """``compute networks subnets create``."""
    name, project = of.only_name(call, what="subnet"), of.project(call, settings)
    region, version = of.region(call, settings), COMPUTE[call.track]
    space = call.text("--range")
    secondary = [
        SecondaryRange(key, value)
        for each in call.all("--secondary-range")
        for key, value in values.members(call, "--secondary-range", each).items()
    ]
    said = fields(call, "subnetwork")
    wide = said.get("purpose", "PRIVATE") in {"PRIVATE", "PRIVATE_NAT"}
    access = call.switch("--enable-private-ip-google-access")
    if not wide:  # gcloud drops both for subnets that are not for machines
        said.pop("logConfig", None)
    vpc = of.network(call, "--network", call.text("--network") or "")
    faults.name(name, what="subnet")
    body = bodies.subnetwork(
        name=name,
        network=vpc,
        range=space,
        project=project,
        version=version,
        secondary=secondary,
        private_google_access=bool(access) if wide else None,
        **said,
    )
    return Resource(
        key=Key("subnetwork", region, name),
        project=project,
        body=body,
        version=version,
        after=(Key("network", "global", vpc.rpartition("/")[2]),),
    )


def firewall(call: Call, settings: Settings, faults: Faults) -> Resource:
    """``compute firewall-rules create``."""
    name, project = of.only_name(call, what="firewall rule"), of.project(call, settings)
    version = COMPUTE[call.track]
    action, rules, allow = call.text("--action"), call.text("--rules"), call.text("--allow")
    if (action is None) == (allow is None):
        call.refuse("exactly one of --action and --allow must be given")
    if action is not None and rules is None:
        call.refuse("--action needs --rules", remedy="Write --rules=tcp,udp,icmp.")
    if allow is not None and rules is not None:
        call.refuse("--rules and --allow exclude each other")
    flag = "--rules" if allow is None else "--allow"
    traffic = [_traffic(call, flag, each) for each in values.listed(call, flag) or ()]
    denied = (action or "").upper() == "DENY"
    direction = (call.text("--direction") or "INGRESS").upper()
    direction = {"IN": "INGRESS", "OUT": "EGRESS"}.get(direction, direction)
    vpc = of.network(call, "--network", call.text("--network") or "default")
    said = fields(call, "firewall")
    log, detail = call.switch("--enable-logging"), call.text("--logging-metadata")
    if detail is not None and not log:
        call.refuse("--logging-metadata needs --enable-logging")
    if log is not None:
        said["logConfig"] = {"enable": log} | (
            {"metadata": f"{detail.upper().replace('-', '_')}_METADATA"} if detail else {}
        )
    faults.name(name, what="firewall rule")
    body = bodies.firewall(
        name=name,
        network=vpc,
        project=project,
        version=version,
        allowed=() if denied else traffic,
        denied=traffic if denied else (),
        direction=direction,
        sources=said.pop("sourceRanges", ()),
        **said,
    )
    return Resource(
        key=Key("firewall", "global", name),
        project=project,
        body=body,
        version=version,
        after=(Key("network", "global", vpc.rpartition("/")[2]),),
    )


def _traffic(call: Call, flag: str, text: str) -> Traffic:
    match = _RULE.match(text)
    if match is None:
        call.refuse(f"{flag}: {text!r} is no rule", remedy="Write PROTOCOL, PROTOCOL:PORT or PROTOCOL:PORT-PORT.")
    return Traffic(match["protocol"], (match["ports"],) if match["ports"] else ())


def group_placement(call: Call, settings: Settings, faults: Faults) -> Resource:
    """``compute resource-policies create group-placement``."""
    name, project = of.only_name(call, what="resource policy"), of.project(call, settings)
    region = of.region(call, settings)
    said = fields(call, "group-placement")
    distance = values.number(call, "--max-distance")
    if distance is not None:
        if not 1 <= distance <= 3:
            call.refuse(f"--max-distance={distance} is out of range", remedy="Write 1, 2 or 3.")
        said["maxDistance"] = distance
    faults.name(name, what="resource policy")
    said.setdefault("collocation", None)
    body = bodies.group_placement(name=name, region=region, description=call.text("--description"), **said)
    return Resource(key=Key("resourcePolicy", region, name), project=project, body=body, version=COMPUTE[call.track])


def workload_policy(call: Call, settings: Settings, faults: Faults) -> Resource:
    """``compute resource-policies create workload-policy``."""
    name, project = of.only_name(call, what="resource policy"), of.project(call, settings)
    region = of.region(call, settings)
    faults.name(name, what="resource policy")
    body = bodies.workload_policy(
        name=name,
        region=region,
        type=call.text("--type") or "",
        description=call.text("--description"),
        **fields(call, "workload-policy"),
    )
    return Resource(key=Key("resourcePolicy", region, name), project=project, body=body, version=COMPUTE[call.track])


def reservation(call: Call, settings: Settings, faults: Faults) -> Resource:
    """``compute reservations create``."""
    name, project = of.only_name(call, what="reservation"), of.project(call, settings)
    zone = of.zone(call, settings)
    sharing, shared = (call.text("--share-setting") or "").lower(), values.listed(call, "--share-with") or []
    if (sharing == "projects") != bool(shared):
        call.refuse("--share-setting=projects and --share-with belong together")
    if sharing not in {"", "local", "projects"}:
        call.refuse(f"--share-setting={sharing} is not taken", remedy="Share with projects.")
    instance = fields(call, "instance")
    gpus = [values.members(call, "--accelerator", each) for each in call.all("--accelerator")]
    if gpus:
        instance["guestAccelerators"] = [
            {"acceleratorType": each["type"], "acceleratorCount": values.integer(call, "--accelerator", each["count"])}
            for each in gpus
        ]
    disks = [disk for each in call.all("--local-ssd") for disk in _disks(call, each)]
    if disks:
        instance["localSsds"] = disks
    more = fields(call, "reservation")
    if sharing == "local":
        more["shareSettings"] = {"shareType": "LOCAL"}
    faults.name(name, what="reservation")
    body = bodies.reservation(
        name=name,
        zone=zone,
        count=values.number(call, "--vm-count") or 0,
        machine_type=call.text("--machine-type") or "",
        project=project,
        specific=bool(call.switch("--require-specific-reservation")),
        policies=values.pairs(call, "--resource-policies"),
        shared_with=shared,
        version=COMPUTE[call.track],
        instance=instance,
        **more,
    )
    return Resource(key=Key("reservation", zone, name), project=project, body=body, version=COMPUTE[call.track])


def _disks(call: Call, text: str) -> list[Body]:
    disk = values.members(call, "--local-ssd", text)
    size, interface = disk.get("size"), disk.get("interface")
    if size is None or interface is None:
        call.refuse("--local-ssd needs size and interface", remedy="Write --local-ssd=size=375,interface=nvme.")
    each = {"diskSizeGb": str(values.integer(call, "--local-ssd", size)), "interface": interface.upper()}
    return [dict(each) for _ in range(values.integer(call, "--local-ssd", disk.get("count", "1")))]
