"""What a node offers to the scheduler: itself as a whole, or more places to one holder.

A free node offers one device. The scheduler gives a device once, so that device is the lock that keeps
domains apart, and a node is taken and given back without a write. An opened node offers ``SLOTS`` devices that
all name their holder (the uid of a domain), so nobody else takes one. The steps:

* free to open only while the holder alone has claims here, one of them prepared, and the controller asks;
* open to free in two: first one device that still names the holder, and after ``CLOSING`` seconds without
  a claim of it the free device. The scheduler may have given a slot away a moment before; where somebody else came
  in all the same, the device names that one instead;
* what an earlier run of the agent offered is read from the slice; where that is gone, the first offer is
  not the free device while a prepared claim or a clique row names somebody.

Pure; ``offering`` is the shell around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from interlace.api.resource import Device, DeviceAttribute, ResourceSlice
from interlace.node.fabric import Fabric

SLOTS = 8
"""Devices of an opened node."""
CLOSING = 2.0
"""Seconds between the two writes that close a node."""

CHANNEL, UNHEALTHY = "channel", "channel-unhealthy"
_ATTRIBUTE_LIMIT = 64


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """One state of a node."""

    holder: str = ""
    """Who alone may take a device; empty: whoever comes first."""
    slots: int = 1


FREE = Offer()


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """Who uses the node, as the agent knows it at one moment."""

    prepared: Sequence[str]
    """Holders of the claims that are prepared, the oldest first."""
    begun: Sequence[str] = ()
    """Holders of claims that kubelet asks for."""
    rows: Mapping[str, bool] = {}
    """Holders that the controller counts this node to, and whether it asks to open the node."""
    synced: bool = True
    """Whether ``rows`` has been read."""

    def uses(self, holder: str) -> bool:
        """Whether anything here is the holder's."""
        return holder in self.rows or holder in self.prepared or holder in self.begun


def settle(before: Offer | None, seen: Seen, *, quiet: float) -> Offer | None:
    """The offer after ``before``; None where it cannot be told yet.

    ``before`` None: nothing is known of an earlier one. ``quiet`` is for how many seconds an offer of one device with
    a holder has stood without anything of that holder.
    """
    if before is None:
        return _rebuild(seen) if seen.synced else None
    if not before.holder:
        return _open(seen) or before
    if seen.uses(before.holder) or not seen.synced:
        asked = before.holder in seen.prepared and seen.rows.get(before.holder, False)
        return Offer(holder=before.holder, slots=SLOTS) if asked else before
    closing = Offer(holder=before.holder)
    return _rebuild(seen) if before == closing and quiet >= CLOSING else closing


def closes(offer: Offer | None, seen: Seen) -> bool:
    """Whether the offer only waits for ``CLOSING`` to pass."""
    return offer is not None and bool(offer.holder) and offer.slots == 1 and seen.synced and not seen.uses(offer.holder)


def _rebuild(seen: Seen) -> Offer:
    holder = next(iter([*seen.prepared, *sorted(seen.rows), *seen.begun]), "")
    return _open(seen) or Offer(holder=holder)


def _open(seen: Seen) -> Offer | None:
    """The opened node, if it may be opened: the free device is held by the only holder that there is."""
    holders = {*seen.prepared, *seen.begun, *seen.rows}
    if len(holders) == 1 and seen.prepared and seen.rows.get(seen.prepared[0], False):
        return Offer(holder=seen.prepared[0], slots=SLOTS)
    return None


def devices(fabric: Fabric, *, offer: Offer = FREE) -> list[Device]:
    """The devices of this node; all have the id that the DeviceClass selects.

    On an unhealthy fabric their type is one that no DeviceClass selects. ``clique`` is left out where it is not
    known, which is something else than ``""``: no fabric.
    """
    attributes = {
        "type": DeviceAttribute(string=CHANNEL if fabric.healthy else UNHEALTHY),
        "id": DeviceAttribute(int_=0),
        "domain": DeviceAttribute(string=offer.holder),
    }
    if fabric.clique or fabric.healthy:
        attributes["clique"] = DeviceAttribute(string=fabric.clique)
    if not fabric.healthy:
        attributes["reason"] = DeviceAttribute(string=fabric.reason[:_ATTRIBUTE_LIMIT])
    return [Device(name=f"channel-{slot}", attributes=attributes) for slot in range(offer.slots)]


def offer_of(slice_: ResourceSlice) -> Offer | None:
    """What a slice of ours offers; None where it does not say, as on a node whose fabric does not work."""
    found = slice_.spec.devices
    holders = {attribute.string for device in found if (attribute := device.attributes.get("domain")) is not None}
    if len(holders) != 1:
        return None
    holder = holders.pop()
    if holder:
        return Offer(holder=holder, slots=SLOTS if len(found) > 1 else 1)
    kinds = {attribute.string for device in found if (attribute := device.attributes.get("type")) is not None}
    return FREE if holder == "" and kinds == {CHANNEL} else None
