"""The data files of hardware families: whole, sourced, and true to what each other and the published texts say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Any

import msgspec
import pytest

from interlace.fabric import family as module
from interlace.fabric.environment import default_interfaces, environment
from interlace.fabric.facts import facts
from interlace.fabric.family import IDS, Family, FamilyError, SoftwareTuple, document, families, find, inherit
from interlace.fabric.version import Minor, driver_version, gke_version, minor_version

ALL = families()
IMAGE = re.compile(r"[a-z0-9.-]+\.[a-z]+(/[a-z0-9._-]+)+(:v[0-9][\w.-]*|@sha256:[0-9a-f]{64})\Z")
TUPLES = [(family, software) for family in ALL for software in family.tuples]
ON_GKE = [family for family in ALL if family.node.gke]


def by_id(value: Any) -> str:
    return value.id if isinstance(value, (Family, SoftwareTuple)) else str(value)


def test_all_six_families_are_there() -> None:
    assert tuple(family.id for family in ALL) == IDS


def fits(software: SoftwareTuple, driver: str) -> bool:
    """Whether the driver is in the range of the tuple."""
    below = driver_version(software.driver_below) if software.driver_below else None
    version = driver_version(driver)
    return version >= driver_version(software.driver_from) and (below is None or version < below)


@pytest.mark.parametrize("family", ALL, ids=by_id)
def test_a_family_is_found_by_its_id_and_by_each_machine_type(family: Family) -> None:
    for name in (family.id, *family.machines, family.id.upper(), f" {family.id} "):
        assert find(name) is family


def test_no_name_leads_to_two_families() -> None:
    names = [name for family in ALL for name in (family.id, *family.machines, *(r.machine for r in family.refused))]
    assert len(names) == len(set(names))


def test_an_unknown_family_is_refused_with_the_names_of_the_known_ones() -> None:
    with pytest.raises(FamilyError, match="unknown hardware family 'a5'") as caught:
        find("a5")
    for family in ALL:
        assert family.id in str(caught.value)
        assert all(machine in str(caught.value) for machine in family.machines)


@pytest.mark.parametrize("machine", ["a3-highgpu-1g", "a3-highgpu-2g", "a3-highgpu-4g", "a3-edgegpu-8g"])
def test_a_machine_that_only_looks_like_the_family_is_refused_with_the_reason(machine: str) -> None:
    with pytest.raises(FamilyError, match=f"machine type {machine} is not of family a3-high: .+"):
        find(machine)


@pytest.mark.parametrize("id_", IDS)
def test_every_fact_has_a_source_and_a_date(id_: str) -> None:
    found = facts(id_)
    assert len(found) > 20
    for fact in found:
        assert fact.title
        assert date(2023, 1, 1) <= date.fromisoformat(fact.date) <= date(2027, 1, 1), fact


@pytest.mark.parametrize("id_", IDS)
def test_every_source_is_used(id_: str) -> None:
    assert {fact.source for fact in facts(id_)} == set(find(id_).sources)


def test_a_value_without_a_source_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from interlace.fabric import facts as sourced

    bare = {"sources": {}, "node": {"gpus": 8}}
    monkeypatch.setattr(sourced, "document", lambda _id: bare)
    with pytest.raises(FamilyError, match=r"family x: node\.gpus has no source"):
        facts("x")


def test_a_table_takes_the_source_of_the_one_around_it() -> None:
    raw = {
        "source": "a",
        "source_of": {"x": "b"},
        "x": 1,
        "y": {"z": [{"w": 1}, {"source": "c"}]},
        "copies": {"k": "v"},
    }
    assert inherit(raw) == {
        "source": "a",
        "x": 1,
        "y": {"source": "a", "z": [{"w": 1, "source": "a"}, {"source": "c"}]},
        "copies": {"k": "v"},
    }


def test_an_unknown_field_in_a_family_file_is_an_error() -> None:
    raw = inherit(document("a3-mega"))
    raw["node"]["gpu"] = 8
    with pytest.raises(msgspec.ValidationError, match=r"unknown field `gpu` - at `\$\.node`"):
        msgspec.convert(raw, Family)


@pytest.mark.parametrize("id_", IDS)
def test_a_source_of_a_single_value_names_a_value_that_is_there(id_: str) -> None:
    def tables(value: Any) -> Iterator[dict[str, Any]]:
        if isinstance(value, dict):
            yield value
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from tables(each)

    for table in tables(document(id_)):
        assert set(table.get("source_of", {})) <= set(table)


def test_single_values_keep_their_own_source() -> None:
    sources = {fact.path: fact.source for fact in facts("a3-mega")}
    assert sources["node.product"] == "discovery"
    assert sources["node.gpus"] == "guide"


@pytest.mark.parametrize("family", ALL, ids=by_id)
def test_nics_networks_and_interfaces_agree(family: Family) -> None:
    if family.networks:
        assert len(family.gpu_networks) == family.node.nics
    names = [network.name for network in family.networks]
    interfaces = [network.interface for network in family.networks]
    assert len(set(names)) == len(names)
    assert len(set(interfaces)) == len(interfaces)
    assert "eth0" not in interfaces
    modes = {network.mode for network in family.gpu_networks}
    assert (
        modes
        == {"tcpx": {"NetDevice"}, "tcpxo": {"NetDevice"}, "rdma": {"RDMA"}, "nvlink": set()}[family.node.transport]
    )


@pytest.mark.parametrize(
    ("id_", "gpus", "nics", "gbps", "mtu"),
    [
        ("a3-high", 8, 4, 200, 8244),
        ("a3-mega", 8, 8, 200, 8244),
        ("a3-ultra", 8, 8, 400, 8896),
        ("a4", 8, 8, 400, 8896),
        ("a4x", 4, 4, 400, 8896),
        ("gb200-nvl72", 4, 4, 400, 0),
    ],
)
def test_the_machines_are_what_their_vendors_say(id_: str, gpus: int, nics: int, gbps: int, mtu: int) -> None:
    node = find(id_).node
    assert (node.gpus, node.nics, node.nic_gbps, node.mtu) == (gpus, nics, gbps, mtu)
    assert node.rate_gb_s == nics * gbps / 8


@pytest.mark.parametrize(("family", "software"), TUPLES, ids=by_id)
def test_a_tuple_is_whole(family: Family, software: SoftwareTuple) -> None:
    for image in filter(None, (software.plugin, software.daemon, software.test)):
        assert IMAGE.match(image), image
    assert bool(software.daemon) == (family.pod.sidecar is not None)
    assert bool(software.plugin) == (family.installer is not None)
    driver_version(software.driver_from)
    if software.driver_qualified:
        assert fits(software, software.driver_qualified)
    assert "default" in software.profiles
    for name in software.profiles:
        found = environment(family, software=software, profile=name, interfaces=default_interfaces(family))
        assert not [setting for setting in found.settings if "{" in setting.value]
        assert (software.environment == "set") or found.script
    date.fromisoformat(software.released)


@pytest.mark.parametrize("family", ALL, ids=by_id)
def test_tuples_are_listed_from_the_oldest_and_their_ids_differ(family: Family) -> None:
    released = [software.released for software in family.tuples]
    assert released == sorted(released)
    ids = [software.id for software in family.tuples]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("family", ALL, ids=by_id)
def test_every_profile_is_used_by_a_tuple_and_names_no_variable_twice(family: Family) -> None:
    used = {id_ for software in family.tuples for id_ in software.profiles.values()}
    assert used == {profile.id for profile in family.profiles}
    for profile in family.profiles:
        names = [variable.name for variable in (*family.pod.env, *profile.variables)]
        assert len(set(names)) == len(names)
        assert not {each.name for each in profile.left_out} & set(names)
        assert all(variable.why for variable in profile.variables)


@pytest.mark.parametrize("family", ON_GKE, ids=by_id)
def test_each_minor_of_the_version_table_has_a_preferred_tuple(family: Family) -> None:
    for row in family.versions:
        minor = minor_version(row.minor)
        assert family.software_for(minor).fits_gke(minor)
        if row.version:
            assert gke_version(row.version).of == minor
    assert family.software_for(Minor(1, 99)).preferred


def test_a3_high_takes_other_software_from_gke_1_34() -> None:
    family = find("a3-high")
    assert family.software_for(Minor(1, 33)).id == "tcpx-3.1.9"
    assert family.software_for(Minor(1, 34)).id == "tcpx-3.1.12"
    with pytest.raises(FamilyError, match=r"family a3-high has no software tuple for GKE 1\.26"):
        family.software_for(Minor(1, 26))


def test_drivers_of_branch_595_fit_one_tuple_and_those_of_580_another() -> None:
    family = find("a3-mega")
    new, old = "595.71.05", "580.95.05"
    assert fits(family.software("tcpxo-1.0.17"), new)
    assert not fits(family.software("tcpxo-1.0.17"), old)
    assert fits(family.software("tcpxo-1.0.16"), old)
    assert not fits(family.software("tcpxo-1.0.16"), new)


def test_unknown_tuples_and_profiles_are_refused_with_the_known_ones() -> None:
    family = find("a3-high")
    with pytest.raises(FamilyError, match=r"family a3-high has no software tuple 'latest'; it has: tcpx-3\.1\.9, "):
        family.software("latest")
    with pytest.raises(FamilyError, match="has no profile 'simple'; it has: default"):
        family.profile("simple", of=family.software("tcpx-3.1.9"))


@pytest.mark.parametrize("family", ALL, ids=by_id)
def test_mounts_name_volumes_of_the_pod_and_every_volume_is_mounted(family: Family) -> None:
    volumes = {volume.name for volume in family.pod.volumes}
    sidecar = family.pod.sidecar.mounts if family.pod.sidecar else ()
    assert {mount.volume for mount in (*family.pod.mounts, *sidecar)} == volumes
    for volume in family.pod.volumes:
        assert not (volume.host_path and (volume.memory or volume.size))


@pytest.mark.parametrize("family", [f for f in ALL if f.pod.sidecar], ids=by_id)
def test_the_library_volume_ends_alike_on_both_sides(family: Family) -> None:
    paths = {volume.name: volume.host_path for volume in family.pod.volumes}
    sidecar = family.pod.sidecar
    assert sidecar is not None
    for mount in (*family.pod.mounts, *sidecar.mounts):
        if mount.volume == "libraries":
            assert mount.path == "/usr/local/nvidia" + paths["libraries"].removeprefix("/home/kubernetes/bin/nvidia")


@pytest.mark.parametrize(
    ("id_", "extra"), [("a3-mega", {"/dev/dmabuf_import_helper"}), ("a3-high", set())], ids=["a3-mega", "a3-high"]
)
def test_the_sidecar_gets_all_gpus_and_their_control_devices(id_: str, extra: set[str]) -> None:
    sidecar = find(id_).pod.sidecar
    assert sidecar is not None
    assert set(sidecar.devices) == {f"/dev/nvidia{i}" for i in range(8)} | {"/dev/nvidiactl", "/dev/nvidia-uvm"} | extra


def test_what_the_plugin_enforces_follows_its_release() -> None:
    family = find("a3-mega")

    def values(tuple_id: str, profile: str = "default") -> dict[str, str]:
        software = family.software(tuple_id)
        found = environment(family, software=software, profile=profile, interfaces=default_interfaces(family))
        return {setting.name: setting.value for setting in found.settings}

    assert values("tcpxo-1.0.8-1")["NCCL_PROTO"] == "Simple"
    assert values("tcpxo-1.0.11")["NCCL_PROTO"] == "Simple,LL128"
    assert "NCCL_NVLSTREE_MAX_CHUNKSIZE" not in values("tcpxo-1.0.11")
    assert values("tcpxo-1.0.12")["NCCL_NVLSTREE_MAX_CHUNKSIZE"] == "131072"
    assert values("tcpxo-1.0.15", "simple")["NCCL_PROTO"] == "Simple"
    assert values("tcpxo-1.0.17", "comma")["NCCL_PROFILER_PLUGIN"] == "comma"


def test_no_profile_forces_the_visible_gpus() -> None:
    for family in ALL:
        for profile in family.profiles:
            assert "CUDA_VISIBLE_DEVICES" not in {variable.name for variable in profile.variables}


def test_the_cpus_of_senders_and_receivers_do_not_overlap() -> None:
    family = find("a3-high")
    for software in family.tuples:
        found = environment(family, software=software, profile="default", interfaces=default_interfaces(family))
        values = {setting.name: setting.value for setting in found.settings}
        send = cpus(values["NCCL_GPUDIRECTTCPX_TX_BINDINGS"])
        receive = cpus(values["NCCL_GPUDIRECTTCPX_RX_BINDINGS"])
        assert list(send) == list(receive) == ["eth1", "eth2", "eth3", "eth4"]
        for interface, numbers in send.items():
            assert not numbers & receive[interface]
            assert max(numbers | receive[interface]) < family.node.vcpus


def cpus(bindings: str) -> dict[str, set[int]]:
    found = {}
    for part in bindings.split(";"):
        interface, _, ranges = part.partition(":")
        pairs = [each.split("-") for each in ranges.split(",")]
        found[interface] = {number for low, high in pairs for number in range(int(low), int(high) + 1)}
    return found


def test_structs_are_frozen() -> None:
    with pytest.raises(AttributeError):
        find("a4").node.gpus = 4  # type: ignore[misc]


def test_families_are_loaded_once() -> None:
    assert module.families() is module.families()
