"""Rules about reservations: whether they are the right ones, and give the machines that are wanted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from interlace.gke.observed.compute import Reservation
from interlace.gke.places import short
from interlace.gke.rules.cluster import held, when
from interlace.gke.rules.nodepool import Pool
from interlace.gke.rules.references import project_in, reservation_name
from interlace.gke.rules.subject import At, Subject, located
from interlace.rules.rule import Breach, Rules
from interlace.rules.words import counted

RULES: Final[Rules[Subject]] = Rules()

KEY: Final = "compute.googleapis.com/reservation-name"

_VALUE: Final = re.compile(
    r"(?:projects/[^/]+/reservations/)?[^/]+(?:/reservationBlocks/[^/]+(?:/reservationSubBlocks/[^/]+)?)?\Z"
)
_SOON: Final = timedelta(days=7)


@RULES.rule(
    "reservation.affinity",
    cause="the API takes such an affinity, and nodes then come from elsewhere or not at all",
    remedy="name one reservation: NAME, projects/P/reservations/NAME, and below it /reservationBlocks/BLOCK and "
    "/reservationSubBlocks/SUB, with consumeReservationType SPECIFIC_RESERVATION",
    needs=("cluster",),
)
def _affinity(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        affinity = pool.pool.config.reservation_affinity
        where = pool.at("config", "reservationAffinity")
        specific = affinity.consume_reservation_type == "SPECIFIC_RESERVATION"
        if specific and not affinity.values:
            yield Breach(pointer=f"{where}/values", text=f"{pool.says} wants a specific reservation and names none")
        if specific and affinity.key and affinity.key != KEY:
            yield Breach(
                pointer=f"{where}/key", text=f"{pool.says} has reservation key {affinity.key}, and it must be {KEY}"
            )
        if affinity.values and not specific:
            yield Breach(
                pointer=f"{where}/consumeReservationType",
                text=f"{pool.says} names reservation {affinity.values[0]} with "
                f"{affinity.consume_reservation_type or 'no consumeReservationType'}",
            )
        if len(affinity.values) > 1:
            yield Breach(
                pointer=f"{where}/values",
                text=f"{pool.says} names {len(affinity.values)} reservations, and can have one",
            )
        for index, value in enumerate(affinity.values):
            if not _VALUE.match(value):
                yield Breach(
                    pointer=f"{where}/values/{index}", text=f"{pool.says} names reservation {value!r}, which is no path"
                )


@RULES.rule(
    "reservation.missing",
    cause="nodes of the pool cannot be made without the reservation",
    remedy="write its name as it is, with projects/P/reservations/ before it where it is shared from project P",
    needs=("cluster", "reservations"),
)
def _missing(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        for index, value in enumerate(pool.pool.config.reservation_affinity.values):
            if _found(subject, pool, value) is not None:
                continue
            foreign = subject.foreign(value)
            yield Breach(
                pointer=pool.at("config", "reservationAffinity", "values", index),
                text=f"{pool.says} takes reservation {value}, "
                + ("which is of another project and was not observed" if foreign else "which does not exist"),
                severity="info" if foreign else "error",
                remedy="look at it in its own project" if foreign else "",
            )


@RULES.rule(
    "reservation.status",
    cause="a reservation gives machines only while it is READY",
    remedy="wait until its status is READY, or take another one",
    needs=("reservations",),
)
def _status(subject: Subject) -> Iterator[Breach]:
    for pool, reservation in _used(subject):
        status = reservation.value.status
        if status not in ("", "READY"):
            yield Breach(
                pointer=f"{reservation.pointer}/status",
                text=f"reservation {reservation.value.name} of {_whose(pool)} is {status}",
                severity="warning" if status == "UPDATING" else "error",
            )


@RULES.rule(
    "reservation.not-active",
    cause="a reservation for a later time has a count, and no machines before it begins",
    remedy="make the nodes when it has begun",
    needs=("reservations",),
)
def _not_active(subject: Subject) -> Iterator[Breach]:
    for pool, reservation in _used(subject):
        value = reservation.value
        specific = value.specific_reservation
        start = when(value.time_window.start_time)
        if start is not None and subject.now is not None and start > subject.now:
            yield Breach(
                pointer=f"{reservation.pointer}/timeWindow/startTime",
                text=f"reservation {value.name} of {_whose(pool)} begins at {value.time_window.start_time}",
            )
        elif specific.count > 0 and specific.assured_count is not None and specific.assured_count < specific.count:
            none = specific.assured_count <= 0
            yield Breach(
                pointer=f"{reservation.pointer}/specificReservation/assuredCount",
                text=f"reservation {value.name} of {_whose(pool)} has {specific.assured_count} of its {specific.count} "
                f"machines now{': it is not active yet' if none else ''}",
                severity="error" if none or specific.assured_count < subject.wanted(pool) else "warning",
            )


@RULES.rule(
    "reservation.ends",
    cause="when a reservation ends its nodes are taken away, and the pool cannot get others",
    remedy="extend the reservation, or plan without it",
    needs=("reservations",),
)
def _ends(subject: Subject) -> Iterator[Breach]:
    for pool, reservation in _used(subject):
        value = reservation.value
        text = value.delete_at_time or value.time_window.end_time
        end = when(text)
        if end is None or subject.now is None or end - subject.now > _SOON:
            continue
        over = end <= subject.now
        member = "deleteAtTime" if value.delete_at_time else "timeWindow/endTime"
        yield Breach(
            pointer=f"{reservation.pointer}/{member}",
            text=f"reservation {value.name} of {_whose(pool)} {'ended' if over else 'ends'} at {text}",
            severity="error" if over else "warning",
        )


@RULES.rule(
    "reservation.machine-type",
    cause="a reservation gives the machine type that it was made for and no other",
    remedy="name a reservation of the pool's machine type",
    needs=("reservations",),
)
def _machine_type(subject: Subject) -> Iterator[Breach]:
    for pool, reservation in _used(subject, any_machine=True):
        properties = reservation.value.specific_reservation.instance_properties
        reserved = short(properties.machine_type)
        machines = (
            (short(pool.pool.config.machine_type),) if pool else subject.family.machines if subject.family else ()
        )
        if reserved and reserved not in machines:
            yield Breach(
                pointer=f"{reservation.pointer}/specificReservation/instanceProperties/machineType",
                text=f"reservation {reservation.value.name} is for {reserved}, and {_whose(pool)} is "
                f"{' or '.join(machines)}",
                severity="error" if pool else "warning",
            )


@RULES.rule(
    "reservation.zone",
    cause="a reservation gives machines in its own zone alone",
    remedy="make the pool in the zone of the reservation",
    needs=("reservations",),
)
def _zone(subject: Subject) -> Iterator[Breach]:
    for pool, reservation in _used(subject):
        zone = short(reservation.value.zone)
        location = subject.state.location
        zones = pool.zones if pool else (location,) if location != subject.region else ()
        if zone and zones and zone not in zones:
            yield Breach(
                pointer=f"{reservation.pointer}/zone",
                text=f"reservation {reservation.value.name} is in zone {zone}, and {_whose(pool)} in "
                f"{', '.join(zones)}",
            )
        elif zone and len(zones) > 1:
            yield Breach(
                pointer=f"{reservation.pointer}/zone",
                text=f"reservation {reservation.value.name} is in zone {zone}, and {_whose(pool)} is in "
                f"{len(zones)} zones",
                remedy=f"make the pool in zone {zone} alone",
            )


@RULES.rule(
    "reservation.specific",
    severity="warning",
    cause="machines of a reservation that need not be named go to any VM of the project that fits",
    remedy="make the reservation with --require-specific-reservation",
    needs=("reservations",),
)
def _specific(subject: Subject) -> Iterator[Breach]:
    for pool, reservation in _used(subject):
        if pool and not reservation.value.specific_reservation_required:
            yield Breach(
                pointer=f"{reservation.pointer}/specificReservationRequired",
                text=f"reservation {reservation.value.name} of {_whose(pool)} may be used by VMs that do not name it",
            )


@RULES.rule(
    "reservation.shared",
    cause="another project's VMs get machines of a reservation only if it is shared with their project",
    remedy="share the reservation with the project",
    needs=("reservations",),
)
def _shared(subject: Subject) -> Iterator[Breach]:
    ours = subject.state.project
    for pool, reservation in _used(subject):
        owner = project_in(reservation.value.self_link)
        share = reservation.value.share_settings
        if not owner or not ours or owner == ours or owner.isdigit() or share.share_type == "ORGANIZATION":
            continue
        named = {*share.project_map, *share.projects, *(each.project_id for each in share.project_map.values())}
        if share.share_type == "LOCAL" or (named and ours not in named and not any(each.isdigit() for each in named)):
            yield Breach(
                pointer=f"{reservation.pointer}/shareSettings",
                text=f"reservation {reservation.value.name} of {_whose(pool)} belongs to project {owner} and is not "
                f"shared with {ours}",
            )


@RULES.rule(
    "reservation.size",
    cause="nodes beyond the reservation cannot be made",
    remedy="take a larger reservation, or fewer nodes",
    needs=("reservations",),
)
def _size(subject: Subject) -> Iterator[Breach]:
    for pool, reservation in _used(subject):
        wanted = subject.wanted(pool)
        count = reservation.value.specific_reservation.count
        if count < wanted:
            yield Breach(
                pointer=f"{reservation.pointer}/specificReservation/count",
                text=f"reservation {reservation.value.name} has {counted(count, 'machine')}, and {_whose(pool)} needs "
                f"{wanted}",
            )


@RULES.rule(
    "reservation.full",
    cause="nodes for which the reservation has no machine left cannot be made",
    remedy="free machines of the reservation, or enlarge it",
    needs=("reservations",),
)
def _full(subject: Subject) -> Iterator[Breach]:
    for pool, reservation in _used(subject):
        specific = reservation.value.specific_reservation
        missing = subject.missing(pool)
        usable = specific.count if specific.assured_count is None else specific.assured_count
        free = usable - specific.in_use_count
        if missing and specific.count >= subject.wanted(pool) and usable > 0 and free < missing:
            yield Breach(
                pointer=f"{reservation.pointer}/specificReservation/inUseCount",
                text=f"reservation {reservation.value.name} has {max(0, free)} of {usable} machines free, and "
                f"{_whose(pool)} needs {missing} more",
            )


@RULES.rule(
    "reservation.block",
    cause="nodes of the pool come from the block alone, whatever the others of the reservation have left",
    remedy="name a block with enough machines (`gcloud compute reservations blocks list`), or the reservation alone",
    needs=("cluster", "reservationBlocks"),
)
def _block(subject: Subject) -> Iterator[Breach]:
    blocks = located("reservationBlocks", subject.state.reservation_blocks)
    for pool in subject.pools:
        for index, value in enumerate(pool.pool.config.reservation_affinity.values):
            above, named, below = value.partition("/reservationBlocks/")
            name = below.partition("/")[0]
            where = f"/reservations/{reservation_name(above)}/reservationBlocks/{name}"
            found = next((each for each in blocks if each.value.self_link.endswith(where)), None)
            if not named:
                continue
            if found is None:
                yield Breach(
                    pointer=pool.at("config", "reservationAffinity", "values", index),
                    text=f"{pool.says} takes block {name} of reservation {reservation_name(above)}, which is not there",
                )
                continue
            if found.value.status not in ("", "READY"):
                yield Breach(
                    pointer=f"{found.pointer}/status", text=f"block {name} of {pool.says} is {found.value.status}"
                )
            free, missing = found.value.count - found.value.in_use_count, subject.missing(pool)
            if found.value.count < subject.wanted(pool) or free < missing:
                yield Breach(
                    pointer=f"{found.pointer}/count",
                    text=f"block {name} has {counted(found.value.count, 'machine')}, {max(0, free)} of them free, and "
                    f"{pool.says} needs {subject.wanted(pool)}{f', {missing} still to come' if missing else ''}",
                )


@RULES.rule(
    "reservation.surge",
    cause="an upgrade makes new nodes before it takes old ones away, and from a full reservation there are none, so it "
    "waits for ever",
    remedy="upgrade with maxSurge 0 and maxUnavailable 1, or keep as many machines of the reservation free as maxSurge",
    needs=("cluster", "reservations"),
)
def _surge(subject: Subject) -> Iterator[Breach]:
    cluster = subject.state.cluster
    for pool, reservation in _used(subject):
        specific = reservation.value.specific_reservation
        if pool is None or cluster is None:
            continue
        missing = subject.missing(pool)
        usable = specific.count if specific.assured_count is None else specific.assured_count
        spare = usable - specific.in_use_count - missing
        blue_green = pool.pool.upgrade_settings.strategy == "BLUE_GREEN"
        surge = subject.wanted(pool) if blue_green else pool.surge
        if surge and 0 <= spare < surge and usable > 0:
            soon = pool.pool.management.auto_upgrade and not held(cluster, now=subject.now)
            yield Breach(
                pointer=pool.at("upgradeSettings", "maxSurge"),
                text=f"{pool.says} needs {counted(surge, 'node')} more during an upgrade, and reservation "
                f"{reservation.value.name} has {spare} to spare",
                severity="error" if soon else "warning",
            )


@RULES.rule(
    "reservation.maintenance",
    cause="a VM takes machines of a reservation only if both have the same host maintenance interval",
    remedy="make the pool with the interval of the reservation (--host-maintenance-interval)",
    needs=("cluster", "reservations"),
)
def _maintenance(subject: Subject) -> Iterator[Breach]:
    for pool, reservation in _used(subject):
        if pool is None:
            continue
        has = pool.pool.config.host_maintenance_policy.maintenance_interval
        reserved = reservation.value.specific_reservation.instance_properties.maintenance_interval
        if reserved and reserved != (has or "AS_NEEDED"):
            yield Breach(
                pointer=pool.at("config", "hostMaintenancePolicy", "maintenanceInterval"),
                text=f"{pool.says} has host maintenance {has or 'AS_NEEDED (not set)'}, and reservation "
                f"{reservation.value.name} {reserved}",
            )
        elif not reserved and has == "PERIODIC":
            yield Breach(
                pointer=pool.at("config", "hostMaintenancePolicy", "maintenanceInterval"),
                text=f"{pool.says} has host maintenance PERIODIC, and reservation {reservation.value.name} does not "
                "say what it has",
                remedy="look at the reservation with the beta API, which has the field",
                severity="info",
            )


def _used(subject: Subject, *, any_machine: bool = False) -> Iterator[tuple[Pool | None, At[Reservation]]]:
    """Reservations with the pool that takes machines from it.

    Where there is no cluster yet, the only reservation is the one that is meant.
    """
    for pool in subject.pools:
        for value in pool.pool.config.reservation_affinity.values:
            found = _found(subject, pool, value)
            if found is not None:
                yield pool, found
    if subject.state.cluster is None and subject.family and len(subject.reservations) == 1:
        only = subject.reservations[0]
        machine = short(only.value.specific_reservation.instance_properties.machine_type)
        if any_machine or machine in ("", *subject.family.machines):
            yield None, only


def _found(subject: Subject, pool: Pool, value: str) -> At[Reservation] | None:
    """The reservation that a value of reservation affinity names: of the pool's zone if several have the name."""
    project = project_in(value)
    alike = [
        each
        for each in subject.reservations
        if each.value.name == reservation_name(value)
        and (not project or project_in(each.value.self_link) in ("", project))
    ]
    near = [each for each in alike if short(each.value.zone) in pool.zones]
    return next(iter(near or alike), None)


def _whose(pool: Pool | None) -> str:
    return pool.says if pool else "the cluster to be made"
