"""Taking over a node from the known driver: its checkpoint, read leniently."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.kube.client import Client
from interlace.node.cdi import PreparedClaim, qualified_ids
from interlace.node.checkpoint import Checkpoint
from interlace.node.demand import ClaimRef
from interlace.node.errors import StateError
from interlace.node.inherited import Inherited, checksum, is_inherited, read
from interlace.node.sweep import Sweeper
from tests.unit.node.parts import DOMAIN as DOMAIN_OF_THE_BENCH
from tests.unit.node.parts import Bench, a_claim, ref

UID = "5b9c1c1e-0000-4000-8000-000000000001"
DOMAIN = "5b9c1c1e-0000-4000-8000-0000000000d0"
DRIVER = "compute-domain.nvidia.com"


def stored(*, device: str = "channel-0", domain: str = DOMAIN, **fields: Any) -> dict[str, Any]:
    """A claim as the known driver stores it."""
    parameters = {"kind": "ComputeDomainChannelConfig", "domainID": domain}
    return {
        "status": {
            "allocation": {
                "devices": {
                    "results": [{"request": "channel", "driver": DRIVER, "pool": "tray-1", "device": device}],
                    "config": [{"source": "FromClaim", "opaque": {"driver": DRIVER, "parameters": parameters}}],
                }
            }
        },
        "preparedDevices": [{"devices": [{"channel": {"info": {"id": 0}}, "daemon": None}], "configState": {}}],
        **fields,
    }


def checkpoint(claims: dict[str, Any], *, boot: str | None = "boot", version: str = "") -> bytes:
    """The bytes of a file with the checksums of that driver; without a boot id, of a release that had none."""
    v1 = {"preparedClaims": claims}
    text = json.dumps(v1, separators=(",", ":"))
    file: dict[str, Any] = {"version": version} if version else {}
    file |= {"checksum": checksum(b'{"checksum":0,"v1":' + text.encode() + b"}"), "v1": v1}
    if boot is not None:
        v2 = {"checksum": 0, "preparedClaims": claims, "nodeBootID": boot}
        file["v2"] = v2 | {"checksum": checksum(json.dumps(v2, separators=(",", ":")).encode())}
    return json.dumps(file, separators=(",", ":")).encode()


def test_the_checksum_is_that_of_the_kubelet_library() -> None:
    # Printed by k8s.io/apimachinery v0.36.3 (util/dump) and hash/fnv for these bytes.
    assert checksum(b'{"a":1}') == 1187653614


@pytest.mark.parametrize("version", ["", "v2"])
@pytest.mark.parametrize("boot", [None, "boot"])
def test_completed_claims_are_read_from_each_version(boot: str | None, version: str) -> None:
    found = read(checkpoint({UID: stored(name="claim", namespace="team")}, boot=boot, version=version), has_spec=bool)
    (claim,) = found.claims
    assert (claim.claim.uid, claim.claim.name, claim.claim.namespace) == (UID, "claim", "team")
    assert (claim.domain, claim.completed, claim.injected, claim.inherited) == (DOMAIN, True, True, True)
    assert [(device.pool, device.device) for device in claim.devices] == [("tray-1", "channel-0")]
    assert found == Inherited(boot_id=boot or "", claims=found.claims, intact=True, unreadable=0)


def test_a_wrong_checksum_loses_no_claim() -> None:
    content = checkpoint({UID: stored()}).replace(b'"preparedDevices"', b'"newField":0,"preparedDevices"')
    found = read(content, has_spec=bool)
    assert (len(found.claims), found.intact) == (1, False)


def test_begun_claims_and_those_of_daemons_are_left_to_kubelet() -> None:
    claims = {
        "begun": stored(checkpointState="PrepareStarted"),
        "daemon": stored(device="daemon-0"),
        "done": stored(checkpointState="PrepareCompleted"),
    }
    assert [claim.claim.uid for claim in read(checkpoint(claims), has_spec=bool).claims] == ["done"]


def test_one_claim_that_cannot_be_read_hides_no_other() -> None:
    found = read(checkpoint({"odd": {"status": {"allocation": 7}}, UID: stored()}), has_spec=bool)
    assert ([claim.claim.uid for claim in found.claims], found.unreadable) == ([UID], 1)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["v1", "v2", "preparedClaims", "status", "allocation", "devices", "results", "name", "x"]
                ),
                inner,
                max_size=3,
            )
        ),
        max_leaves=12,
    )
)
def test_no_content_raises(value: object) -> None:
    content = msgspec.json.encode(value)
    is_inherited(content)
    read(content, has_spec=bool)


def spec_of_the_known_driver(cdi: Path, uid: str) -> Path:
    cdi.mkdir(exist_ok=True)
    path = cdi / f"k8s.compute-domain.nvidia.com-claim_{uid}.yaml"
    path.write_text("cdiVersion: 0.5.0\n")
    return path


def test_the_claims_of_the_known_driver_become_ours(tmp_path: Path) -> None:
    file, cdi = tmp_path / "checkpoint.json", tmp_path / "cdi"
    content = checkpoint({UID: stored()})
    file.write_bytes(content)
    spec_of_the_known_driver(cdi, UID)
    loaded = Checkpoint(tmp_path, boot_id="boot")
    found = loaded.load(cdi_root=cdi)
    assert not found.damaged
    assert "1 claims that it prepared were taken over" in found.remark
    assert [(held.claim.uid, held.injected) for held in loaded] == [(UID, True)]
    (aside,) = tmp_path.glob("checkpoint.json.inherited-*")
    assert aside.read_bytes() == content
    again = Checkpoint(tmp_path, boot_id="boot")
    assert again.load(cdi_root=cdi).remark == ""
    assert [held.inherited for held in again] == [True]


class Interrupted(Checkpoint):
    """An agent that ends before its first file is written."""

    def _write_now(self) -> None:
        raise StateError("no space left on device")


def test_an_end_in_the_middle_of_taking_over_loses_no_claim(tmp_path: Path) -> None:
    file, cdi = tmp_path / "checkpoint.json", tmp_path / "cdi"
    file.write_bytes(checkpoint({UID: stored()}))
    with pytest.raises(StateError):
        Interrupted(tmp_path, boot_id="boot").load(cdi_root=cdi)
    again = Checkpoint(tmp_path, boot_id="boot")
    again.load(cdi_root=cdi)
    assert [held.claim.uid for held in again] == [UID]


def test_claims_of_an_earlier_boot_are_void(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.json").write_bytes(checkpoint({UID: stored()}, boot="before"))
    loaded = Checkpoint(tmp_path, boot_id="now")
    assert "its 1 claims are void" in loaded.load(cdi_root=tmp_path / "cdi").remark
    assert len(loaded) == 0


def test_without_a_boot_id_only_claims_with_a_cdi_spec_are_of_this_boot(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.json").write_bytes(checkpoint({UID: stored(), "other": stored()}, boot=None))
    spec_of_the_known_driver(tmp_path / "cdi", UID)
    loaded = Checkpoint(tmp_path, boot_id="now")
    loaded.load(cdi_root=tmp_path / "cdi")
    assert [held.claim.uid for held in loaded] == [UID]


def test_a_damaged_file_of_our_own_is_not_taken_for_another_drivers(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.json").write_bytes(b'{"version":1,"sha256":"x","body":{"claims":[]}}')
    assert Checkpoint(tmp_path, boot_id="now").load(cdi_root=tmp_path / "cdi").damaged


def inherited(bench: Bench, uid: str = "theirs") -> PreparedClaim:
    """A claim of another domain that the known driver prepared on this node; its file does not name the claim."""
    (bench.settings.cdi_root / f"k8s.compute-domain.nvidia.com-claim_{uid}.yaml").write_text("cdiVersion: 0.5.0\n")
    (claim,) = read(checkpoint({uid: stored()}), has_spec=bool).claims
    return claim


@pytest.mark.looptime
async def test_another_domain_waits_until_kubelet_has_unprepared_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    theirs = inherited(bench)
    await bench.checkpoint.put(theirs)
    bench.api.add(a_claim())
    bench.join()
    assert bench.link.wanted == []  # the known driver's IMEX daemon holds the node's session
    async with asyncio.TaskGroup() as group:
        mine = group.create_task(bench.preparer.prepare(ref()))
        await asyncio.sleep(5)
        assert not mine.done()
        await bench.preparer.unprepare(ClaimRef(namespace="team", name="old", uid="theirs"))
        held = await mine
    assert (held.domain, held.completed, held.inherited) == (DOMAIN_OF_THE_BENCH, True, False)
    assert bench.specs() == ["k8s.compute-domain.nvidia.com-claim_uid-1.json"]


@pytest.mark.looptime
async def test_kubelet_gets_the_devices_of_an_inherited_claim_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    theirs = inherited(bench)
    await bench.checkpoint.put(theirs)
    held = await bench.preparer.prepare(ClaimRef(namespace="team", name="old", uid="theirs"))
    assert held == theirs
    (device,) = held.devices
    assert qualified_ids(held, device) == ["k8s.compute-domain.nvidia.com/claim=theirs-channel-0"]


@pytest.mark.looptime
async def test_the_sweep_leaves_a_claim_without_a_name_to_kubelet(tmp_path: Path) -> None:
    bench = Bench(tmp_path, sweep_interval=600.0)
    await bench.checkpoint.put(inherited(bench))
    sweeper = Sweeper(
        bench.settings,
        client=cast("Client", bench.api),
        checkpoint=bench.checkpoint,
        preparer=bench.preparer,
        reporter=bench.reporter,
    )
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(part.run()) for part in (sweeper, bench.reporter)]
        await asyncio.sleep(3600)
        for task in tasks:
            task.cancel()
    assert [held.claim.uid for held in bench.checkpoint] == ["theirs"]
    assert (bench.api.gets, bench.api.applied) == ([], [])
