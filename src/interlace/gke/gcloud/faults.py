"""Names that the service refuses although gcloud sends them, and words that a reader of the page was to replace.

What else gcloud does not notice is for the rules about requests (``gke/rules``). Invariant: a fault is an error with a
rule, the line of the page and a remedy; commands with faults make no requests.
"""

from __future__ import annotations

import re
from typing import Final

from interlace.gke.gcloud.call import Call
from interlace.rules.finding import Finding, Severity
from interlace.rules.pointer import pointer

NAME: Final = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?\Z")
CLUSTER_NAME: Final = re.compile(r"[a-z](?:[-a-z0-9]{0,38}[a-z0-9])?\Z")
_WORDS: Final = "PREFIX|PROJECT|REGION|ZONE|LOCATION|VERSION|CLUSTER|NAME|NETWORK|SUBNET|RANGE|RESERVATION"
_PLACEHOLDER: Final = re.compile(rf"(?<![A-Za-z0-9])(?:[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|{_WORDS})(?![A-Za-z0-9])")

REPLACEABLE: Final = frozenset(
    {"--project", "--region", "--zone", "--location", "--network", "--subnetwork", "--range", "--cluster",
     "--source-ranges", "--cluster-version", "--node-version", "--machine-type", "--placement-policy", "--reservation",
     "--additional-node-network", "--service-account", "--node-locations", "--num-nodes", "--mtu", "--network-profile",
     "--cluster-ipv4-cidr", "--services-ipv4-cidr", "--master-ipv4-cidr", "--workload-pool", "--resource-policies",
     "--master-authorized-networks", "--vm-count", "--secondary-range", "--node-pool"}
)  # fmt: skip
"""Flags whose values are never capitals with underscores."""


def finding(rule: str, line: int, text: str, remedy: str, *, severity: Severity = "error") -> Finding:
    """A finding about a line of a page."""
    return Finding(
        rule=f"gcloud.{rule}",
        severity=severity,
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
        word = placeholder(value) if not flag or flag in REPLACEABLE else ""
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

    def name(self, name: str, *, what: str, pattern: re.Pattern[str] = NAME) -> None:
        """A name must be one that the service takes."""
        if not pattern.match(name) and not placeholder(name):
            most = 40 if pattern is CLUSTER_NAME else 63
            self.add(
                "name", f"the name {name} of the {what} is refused by the service",
                f"Begin with a lower-case letter; lower-case letters, digits and hyphens, at most {most}",
            )  # fmt: skip
