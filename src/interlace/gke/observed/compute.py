"""Networks, firewall rules, placement policies and reservations of Compute Engine, as far as rules read them."""

from __future__ import annotations

import msgspec

from interlace.gke.observed.api import Api


class Network(Api, frozen=True, kw_only=True):
    """``mtu`` 0: not given, which is 1460 unless a profile says otherwise."""

    name: str = ""
    self_link: str = ""
    auto_create_subnetworks: bool = False
    mtu: int = 0
    network_profile: str = ""


class SecondaryRange(Api, frozen=True, kw_only=True):
    range_name: str = ""
    ip_cidr_range: str = ""


class Subnetwork(Api, frozen=True, kw_only=True):
    name: str = ""
    self_link: str = ""
    network: str = ""
    region: str = ""
    ip_cidr_range: str = ""
    secondary_ip_ranges: tuple[SecondaryRange, ...] = ()


class Protocol(Api, frozen=True, kw_only=True):
    protocol: str = msgspec.field(default="", name="IPProtocol")
    ports: tuple[str, ...] = ()


class Firewall(Api, frozen=True, kw_only=True):
    name: str = ""
    network: str = ""
    direction: str = "INGRESS"
    priority: int = 1000
    source_ranges: tuple[str, ...] = ()
    source_tags: tuple[str, ...] = ()
    source_service_accounts: tuple[str, ...] = ()
    target_tags: tuple[str, ...] = ()
    target_service_accounts: tuple[str, ...] = ()
    destination_ranges: tuple[str, ...] = ()
    allowed: tuple[Protocol, ...] = ()
    denied: tuple[Protocol, ...] = ()
    disabled: bool = False


class GroupPlacement(Api, frozen=True, kw_only=True):
    collocation: str = ""
    vm_count: int = 0


class ResourcePolicy(Api, frozen=True, kw_only=True):
    name: str = ""
    self_link: str = ""
    region: str = ""
    status: str = ""
    group_placement_policy: GroupPlacement | None = None


class ReservedInstance(Api, frozen=True, kw_only=True):
    machine_type: str = ""
    maintenance_interval: str = ""


class SpecificReservation(Api, frozen=True, kw_only=True):
    """``assured_count``: usable now."""

    count: int = 0
    assured_count: int | None = None
    in_use_count: int = 0
    instance_properties: ReservedInstance = ReservedInstance()


class ProjectShare(Api, frozen=True, kw_only=True):
    project_id: str = ""


class ShareSettings(Api, frozen=True, kw_only=True):
    share_type: str = ""
    project_map: dict[str, ProjectShare] = {}
    projects: tuple[str, ...] = ()


class ReservationBlock(Api, frozen=True, kw_only=True):
    """A part of a dense reservation; its link names the reservation."""

    name: str = ""
    self_link: str = ""
    status: str = ""
    count: int = 0
    in_use_count: int = 0


class TimeWindow(Api, frozen=True, kw_only=True):
    start_time: str = ""
    end_time: str = ""


class Reservation(Api, frozen=True, kw_only=True):
    name: str = ""
    self_link: str = ""
    zone: str = ""
    status: str = ""
    specific_reservation_required: bool = False
    specific_reservation: SpecificReservation = SpecificReservation()
    share_settings: ShareSettings = ShareSettings()
    resource_policies: dict[str, str] = {}
    delete_at_time: str = ""
    time_window: TimeWindow = TimeWindow()
