"""Which way the data took, from NCCL's own lines."""

from __future__ import annotations

import pytest

from interlace.verify.assertions import cores
from interlace.verify.transport import Transport, network_name, observe
from tests.unit.verify.scenes import judged, line, read, said, table, times, with_lines


def of(lines: list[str]) -> Transport:
    return observe(read(lines)[1])


@pytest.mark.parametrize(
    ("network", "name"),
    [
        ("FasTrak", "FasTrak"),
        ("GPUDirectTCPX_v7", "GPUDirectTCPX"),
        ("gIB", "gIB"),
        ("IB", "IB"),
        ("Socket", "Socket"),
        ("AWS Libfabric", "AWS"),
    ],
)
def test_the_network_of_the_channel_lines_is_what_carried_data(network: str, name: str) -> None:
    transport = of(said(network=network))
    assert transport.network == name
    assert transport.ran(2) == name
    assert transport.nodes == 2
    assert transport.ranks == 16


def test_the_network_that_was_chosen_is_told_where_no_channel_line_is() -> None:
    transport = of(said(network="FasTrak", channels=False))
    assert transport.carriers == ()
    assert transport.ran(2) == "FasTrak"


def test_channel_lines_outweigh_the_network_that_was_chosen() -> None:
    mixed = [*said(network="FasTrak", channels=False), *said(network="Socket")]
    assert of([each for each in mixed if "Using network Socket" not in each]).ran(2) == "Socket"


def test_on_one_node_the_network_that_nccl_names_is_not_what_ran() -> None:
    transport = of(said(network="Socket", ranks=8, nodes=1))
    assert transport.ran(1) == "NVLink or PCIe inside the node"
    assert of(said(network="Socket", ranks=8, nodes=1, channels=False)).ran(1) is None


def test_nvlink_between_nodes_is_on_only_if_every_rank_says_so() -> None:
    on = said(ranks=8, nodes=2, mnnvl=True)
    assert of(on).mnnvl is True
    assert of(on).ran(2) == "NVLink"
    assert of([*on, *said(ranks=8, nodes=2)[-4:]]).mnnvl is False
    assert of([]).mnnvl is None


def test_channels_over_nvlink_between_nodes_name_it_themselves() -> None:
    assert of([line(0, 4, "NCCL INFO Channel 00/0 : 0[0] -> 4[0] via P2P/MNNVL")]).ran(2) == "NVLink"


def test_direct_memory_access_is_told_from_the_channel_lines() -> None:
    assert of(said()).direct is True
    assert of(said(direct=False)).direct is False
    assert of(said(channels=False)).direct is None


def test_nics_ranks_version_and_settings_are_collected() -> None:
    transport = of(said(nics=4, settings={"NCCL_ALGO": "Ring", "NCCL_NVLS_ENABLE": "0"}))
    assert transport.net_devices == (0, 1, 2, 3)
    assert transport.started == transport.completed == tuple(range(16))
    assert transport.version == (2, 28, 9)
    assert transport.settings["NCCL_ALGO"] == "Ring"
    assert transport.settings["NCCL_NVLS_ENABLE"] == "0"
    nvls = line(0, 8, "NCCL INFO 24 coll channels, 24 collnet channels, 16 nvls channels, 32 p2p channels")
    assert of([nvls]).multicast == 16


def test_channel_lines_of_older_versions_are_read() -> None:
    ring = line(0, 8, "NCCL INFO Ring 00 : 15[41000] -> 0[1b000] [receive] via NET/IB/0/GDRDMA")
    plain = line(0, 8, "NCCL INFO Channel 00 : 0[60] -> 1[70] via P2P/IPC")
    plugin = line(0, 8, "NCCL INFO Channel 03/0 : 7[3] -> 3[3] [receive] via NET/IBext_v8/3/GDRDMA")
    assert of([ring, plain]).carriers == ("IB",)
    assert of([ring, plain]).local == ("P2P",)
    assert of([plugin]).carriers == ("IBext",)


def test_a_log_without_such_lines_tells_nothing() -> None:
    assert of(["anything", "else"]) == Transport()
    assert Transport().ran(2) is None


def test_the_version_of_a_plugin_is_no_part_of_its_name() -> None:
    assert network_name("GPUDirectTCPX_v7") == "GPUDirectTCPX"
    assert network_name("FasTrak.") == "FasTrak"


def test_rails_that_no_channel_named_were_not_tested() -> None:
    lines = with_lines(table(times(rate=180, floor_us=60)), said(nics=6))
    assert "rails 6, 7: no channel line names their NICs" in judged(lines).not_tested


def test_bindings_are_read_as_sets_of_cores_and_what_is_no_binding_is_left_out() -> None:
    assert cores("eth1:8-10,112;eth2:3") == {"eth1": frozenset({8, 9, 10, 112}), "eth2": frozenset({3})}
    assert cores("") == {}
    assert cores("eth1:9-99999999") == {"eth1": frozenset()}
