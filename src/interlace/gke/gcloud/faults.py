"""What gcloud sends without a word and the service refuses, or what is no value yet but a word to be replaced.

Invariant: a fault is an error with a rule, the line of the page and a remedy; commands with faults make no requests.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Final

from interlace.gke.gcloud.call import Call
from interlace.rules.finding import Finding
from interlace.rules.pointer import pointer

NAME: Final = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?\Z")
CLUSTER_NAME: Final = re.compile(r"[a-z](?:[-a-z0-9]{0,38}[a-z0-9])?\Z")
_LABEL_KEY: Final = re.compile(r"[a-z][-_a-z0-9]{0,62}\Z")
_LABEL_VALUE: Final = re.compile(r"[-_a-z0-9]{0,63}\Z")
_WORDS: Final = "PREFIX|PROJECT|REGION|ZONE|LOCATION|VERSION|CLUSTER|NAME|NETWORK|SUBNET|RANGE|RESERVATION"
_PLACEHOLDER: Final = re.compile(rf"(?<![A-Za-z0-9])(?:[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|{_WORDS})(?![A-Za-z0-9])")

_REPLACEABLE: Final = frozenset(
    {"--project", "--region", "--zone", "--location", "--network", "--subnetwork", "--range", "--cluster",
     "--source-ranges", "--cluster-version", "--node-version", "--machine-type", "--placement-policy", "--reservation",
     "--additional-node-network", "--service-account", "--node-locations", "--num-nodes", "--mtu", "--network-profile",
     "--cluster-ipv4-cidr", "--services-ipv4-cidr", "--master-ipv4-cidr", "--workload-pool", "--resource-policies",
     "--master-authorized-networks", "--vm-count", "--secondary-range", "--node-pool"}
)  # fmt: skip
"""Flags whose values are never capitals with underscores."""


def finding(rule: str, line: int, text: str, remedy: str, *, severity: str = "error") -> Finding:
    """A finding about a line of a page."""
    return Finding(
        rule=f"gcloud.{rule}",
        severity="error" if severity == "error" else "warning",
        pointer=pointer("lines", line),
        text=f"line {line}: {text}",
        remedy=remedy,
    )


def placeholder(text: str) -> str:
    """The word in ``text`` that a reader was to replace; empty if there is none."""
    match = _PLACEHOLDER.search(text)
    return match[0] if match else ""


def placeholders(call: Call) -> dict[str, list[str]]:
    """Words of the page that were to be replaced, each with the values that it stands in."""
    texts = [("", name) for name in call.names]
    texts += [(flag, value) for flag, values in call.flags.items() for value in values if isinstance(value, str)]
    found: dict[str, list[str]] = {}
    for flag, value in texts:
        word = placeholder(value) if not flag or flag in _REPLACEABLE else ""
        if word:
            found.setdefault(word, []).append(f"{flag}={value}" if flag else value)
    return found


class Faults:
    """Collects findings about one call."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.found: list[Finding] = []
        for word, places in placeholders(call).items():
            self.add(
                "placeholder",
                f"{word} in {places[0]} is a word to be replaced, not a value",
                f"Write the value, or give it with --set {word}=VALUE",
            )

    def add(self, rule: str, text: str, remedy: str) -> None:
        self.found.append(finding(rule, self.call.line, text, remedy))

    @property
    def replaced(self) -> bool:
        """Whether some values are placeholders: others of the same command are then not judged."""
        return any(each.rule == "gcloud.placeholder" for each in self.found)

    def name(self, name: str, *, what: str, pattern: re.Pattern[str] = NAME) -> None:
        """A name must be one that the service takes."""
        if not pattern.match(name) and not placeholder(name):
            most = 40 if pattern is CLUSTER_NAME else 63
            self.add(
                "name", f"the name {name} of the {what} is refused by the service",
                f"Begin with a lower-case letter; lower-case letters, digits and hyphens, at most {most}",
            )  # fmt: skip

    def mtu(self, mtu: int | None) -> None:
        if mtu is not None and not 1300 <= mtu <= 8896:
            self.add("mtu", f"the MTU {mtu} is refused by the service", "Write 1300 to 8896; GPUDirect wants 8244")

    def range(self, text: str, *, flag: str) -> None:
        """An address range must be one, with the address of a network."""
        try:
            ipaddress.ip_network(text)
        except ValueError:
            if not placeholder(text):
                self.add("range", f"{flag}={text} is no address range", "Write it like 192.168.1.0/24")

    def labels(self, labels: Mapping[str, str] | None) -> None:
        """Labels of Google Cloud are in lower case."""
        for key, value in (labels or {}).items():
            if not _LABEL_KEY.match(key) or not _LABEL_VALUE.match(value):
                self.add("label", f"the label {key}={value} is refused by the service", "Write labels in lower case")

    def count(self, count: int | None, *, flag: str) -> None:
        if count is not None and count < 0:
            self.add("node-count", f"{flag}={count} is no number of nodes", "Write 0 or more")

    def bounds(self, name: str, low: int | None, high: int | None) -> None:
        """A pool that grows needs a top, not below its bottom."""
        if low is not None and high is not None and low > high:
            self.add("autoscaling", f"{name}: the least, {low}, is above the most, {high}", "Swap or change them")

    def ranges(self, texts: Iterable[str], *, flag: str) -> None:
        for text in texts:
            self.range(text, flag=flag)
