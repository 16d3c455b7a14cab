"""What the NCCL plugin checks at its start: its guest config, and what it would say to an environment.

The shim of the TCPXO and gIB plugins reads a text-proto of the message ``GuestConfigValidatorConfig``. A mismatch
that it enforces ends the job, one that it recommends is a warning. Invariant: a policy that this module does not know
is reported as such, never counted as passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from interlace.fabric.textproto import Field, messages, parse, strings

Policy = Literal["enforced", "recommended", "required", "unknown"]

_POLICIES: Final[dict[str, Policy]] = {
    "POLICY_ENFORCED": "enforced",
    "POLICY_RECOMMENDED": "recommended",
    "POLICY_REQUIRED": "required",
}


class GuestConfigError(ValueError):
    """A text that is no guest config."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One variable. ``values``: those that are accepted; empty: it must be set (``required``) or must not be."""

    name: str
    policy: Policy
    values: tuple[str, ...] = ()


class GuestConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The rules, and which other names the plugin speaks up about."""

    rules: tuple[Rule, ...]
    keywords: tuple[str, ...] = ()
    """A variable with one of these in its name is unexpected if no rule names it."""
    ignored: tuple[str, ...] = ()
    """But not with one of these in its name."""
    keyword_policy: Policy = "recommended"
    cpus: str = ""
    """The CPUs that processes should be bound to, ``32-63``."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What the plugin would say about one variable. ``ends`` the job, or is a warning only."""

    name: str
    ends: bool
    why: str


def read(text: str) -> GuestConfig:
    """The config in ``text``. Raises TextProtoError for what is no text-proto, GuestConfigError for another message."""
    fields = parse(text)
    rules = tuple(_rule(message) for message in messages(fields, "env_var"))
    if not rules:
        raise GuestConfigError("it has no env_var, so it is not a guest config of the NCCL plugin")
    return GuestConfig(
        rules=rules,
        keywords=tuple(strings(fields, "attention_keyword")),
        ignored=tuple(strings(fields, "unattention_keyword")),
        keyword_policy=_policy(fields, "attention_keyword_check_policy", default="recommended"),
        cpus=",".join(_range(message) for message in messages(fields, "cpu_affinity")),
    )


def check(config: GuestConfig, environment: Mapping[str, str]) -> tuple[Finding, ...]:
    """What the plugin would say to ``environment``: by rule first, then names that no rule knows."""
    found = [finding for rule in config.rules if (finding := _judge(rule, environment))]
    known = {rule.name for rule in config.rules}
    for name in environment:
        if name in known or not any(word in name for word in config.keywords):
            continue
        if any(word in name for word in config.ignored):
            continue
        found.append(
            Finding(
                name=name,
                ends=config.keyword_policy == "enforced",
                why=f"{name} is set, and the plugin expects it unset",
            )
        )
    return tuple(found)


def _judge(rule: Rule, environment: Mapping[str, str]) -> Finding | None:
    value = environment.get(rule.name)
    wanted = " or ".join(rule.values)
    if rule.policy == "unknown":
        return Finding(name=rule.name, ends=False, why=f"the config treats {rule.name} in a way that is not known here")
    ends = rule.policy in {"enforced", "required"}
    if rule.policy == "required" and not rule.values:
        return None if value else Finding(name=rule.name, ends=True, why=f"{rule.name} is not set, and it must be")
    if not rule.values:
        if value is None:
            return None
        return Finding(name=rule.name, ends=ends, why=f"{rule.name} is {value}, and the plugin expects it unset")
    if value in rule.values:
        return None
    have = f"is {value}" if value is not None else "is not set"
    return Finding(name=rule.name, ends=ends, why=f"{rule.name} {have}, and the plugin expects {wanted}")


def _rule(message: tuple[Field, ...]) -> Rule:
    names = strings(message, "name")
    if len(names) != 1:
        line = message[0].line if message else 0
        raise GuestConfigError(f"line {line}: an env_var has {len(names)} names, one is needed")
    return Rule(
        name=names[0],
        policy=_policy(message, "check_policy", default="unknown"),
        values=tuple(strings(message, "value")),
    )


def _policy(message: tuple[Field, ...], name: str, *, default: Policy) -> Policy:
    found = strings(message, name)
    return _POLICIES.get(found[-1], "unknown") if found else default


def _range(message: tuple[Field, ...]) -> str:
    low, high = strings(message, "lo"), strings(message, "hi")
    return f"{low[-1] if low else '?'}-{high[-1] if high else '?'}"
