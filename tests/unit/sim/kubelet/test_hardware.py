"""Simulated machines and their loopback networks."""

from __future__ import annotations

import random
import socket
from pathlib import Path

import pytest

from interlace.sim.kubelet.hardware import build_trays, claim_networks


def test_two_clusters_at_once_never_share_a_network() -> None:
    with claim_networks(300) as first, claim_networks(300) as second:
        assert len(set(first)) == len(set(second)) == 300
        assert not set(first) & set(second)


def test_a_block_in_which_a_leftover_listens_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as leftover:
        leftover.bind(("127.239.7.3", 0))
        leftover.listen()
        offered = iter([239, 239, 238])
        monkeypatch.setattr(random, "randrange", lambda _low, _high: next(offered))
        with claim_networks(1) as networks:
            assert networks == ["127.238.1"]


def test_trays_fill_one_partition_after_the_other(tmp_path: Path) -> None:
    trays = build_trays([f"127.20.{i}" for i in range(36)], root=tmp_path)
    cliques = [tray.clique for tray in trays]
    assert len(set(cliques[:18])) == len(set(cliques[18:])) == 1
    assert cliques[0].rpartition(".")[0] == cliques[35].rpartition(".")[0]
    assert [cliques[0].rpartition(".")[2], cliques[35].rpartition(".")[2]] == ["0", "1"]


def test_trays_without_a_fabric_have_no_partition(tmp_path: Path) -> None:
    assert {tray.clique for tray in build_trays(["127.20.1"], root=tmp_path, fabric=False)} == {""}
