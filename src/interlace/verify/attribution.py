"""Which node or which link is bad, and nothing else: from the readings of many pairs to names.

Pure. A node is slow if its effect is, a link if the residual of its pair still is after it was read again; both need
a robust z and a relative floor, because the spread of a healthy set can be so small that everything is an outlier.
Invariant: where the readings cannot tell a node from its link, the pair is named and not one of them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from statistics import median
from typing import Final, Literal

import msgspec

from interlace.verify.faults import Failure, Fault, failures
from interlace.verify.measurement import Reading, by_match
from interlace.verify.pairing import Level, Match
from interlace.verify.polish import PARTNERS, Fit, fit

FLOOR: Final = 0.05
"""Nothing is named that is less than this share slower than it should be."""
SURE_NODE: Final = 4.0
SURE_LINK: Final = 5.0
"""Robust z from which a node or a link is named: there are many more links, so many more to be wrong about."""
_TOLD_APART: Final = 4
"""Partners from which a node is told from its links: of three readings two bad ones already outvote the good one."""
_BLOCK: Final = 3
"""Matches between two cliques from which their uplink is judged."""

Group = tuple[Level, int | None]
"""Level and rail: what is compared with each other."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something bad, with its name."""

    kind: Literal["node", "link", "pair", "uplink", "all"]
    """``pair``: a node or the link, the readings cannot tell; ``uplink``: between two cliques; ``all``: every pair."""
    names: tuple[str, ...]
    """One node, two nodes, two cliques, or none."""
    fault: Fault
    level: Level = "inside"
    rail: int | None = None
    """None: all rails, or measured together."""
    share: float | None = None
    """Of what it should reach; None where nothing was measured."""
    busbw: float | None = None
    """GB/s, median of what was measured with it."""
    readings: int = 0
    """Or, of a node, matches."""
    note: str = ""

    @property
    def text(self) -> str:
        """A sentence without its full stop."""
        where = "" if self.rail is None else f" on rail {self.rail}"
        what = {"node": "node ", "link": "link ", "pair": "pair ", "uplink": "uplink "}.get(self.kind, "")
        name = f"{what}{' - '.join(self.names)}{where}" if self.names else f"all pairs{where}"
        if self.fault == "slow" and self.share is not None:
            said = f"{name} reaches {100 * self.share:.0f} % of what it should"
            reached = f" ({self.busbw:.4g} GB/s)" if self.busbw is not None else ""
            said += reached
        else:
            said = f"{name}: {'wrong data' if self.fault == 'wrong data' else 'measurements fail'}"
        return f"{said}; {self.note}" if self.note else said


class Attribution(msgspec.Struct, frozen=True, kw_only=True):
    """What all readings together mean."""

    findings: tuple[Finding, ...]
    typical: Mapping[Group, float]
    """GB/s of a pair, by level and rail."""
    noise: Mapping[Group, float]
    """Relative standard deviation of one reading."""
    effects: Mapping[str, float]
    """Share of the typical that a node reaches with its partners: the least over levels and rails."""
    pairs: Mapping[Match, float]
    """GB/s, median of the readings of a match."""


def attribute(
    readings: Iterable[Reading],
    *,
    cliques: Mapping[str, str] | None = None,
    expected: Mapping[Level, float] | None = None,
    noise: float = 0.0,
) -> Attribution:
    """Name what is bad.

    ``cliques``: clique of each node, for uplinks. ``expected``: GB/s that a pair must reach, if anybody knows.
    ``noise``: relative, assumed where too few pairs were read.
    """
    matches = by_match(readings)
    findings = [_failed(each) for each in failures(matches)]
    blamed = {(each.names, each.rail) for each in findings}
    typical: dict[Group, float] = {}
    noises: dict[Group, float] = {}
    effects: dict[str, float] = {}
    pairs = _medians(matches)
    slow: list[Finding] = []
    for group in sorted({(match.level, match.rail) for match in pairs}, key=str):
        own = {match: value for match, value in pairs.items() if (match.level, match.rail) == group}
        view = _View(own, matches, cliques=cliques or {}, noise=noise)
        typical[group], noises[group] = math.exp(view.fit.typical), view.fit.noise
        for node, effect in view.fit.effects.items():
            effects[node] = min(effects.get(node, math.inf), math.exp(effect))
        slow += view.findings(group, expected=(expected or {}).get(group[0]))
    rails = {match.rail for match in pairs}
    findings += [each for each in _over_rails(slow, rails=rails) if (each.names, each.rail) not in blamed]
    return Attribution(findings=tuple(findings), typical=typical, noise=noises, effects=effects, pairs=pairs)


def suspects(
    readings: Iterable[Reading], *, cliques: Mapping[str, str] | None = None, noise: float = 0.0, sure: float
) -> tuple[Match, ...]:
    """Pairs worth another reading: slower than their nodes explain by ``sure`` standard errors, or failed.

    Also pairs of nodes that may be slow. In the order of suspicion.
    """
    matches = by_match(readings)
    pairs = _medians(matches)
    found: dict[Match, float] = {}
    named = {name for each in failures(matches) if each.kind == "node" for name in each.names}
    for match, taken in matches.items():
        if any(each.outcome == "failed" for each in taken) and not named & set(match.nodes):
            found[match] = -math.inf
    for group in {(match.level, match.rail) for match in pairs}:
        own = {match: value for match, value in pairs.items() if (match.level, match.rail) == group}
        view = _View(own, matches, cliques=cliques or {}, noise=noise)
        found |= view.suspects(sure)
    return tuple(sorted(found, key=lambda match: (found[match], match)))


def _medians(matches: Mapping[Match, list[Reading]]) -> dict[Match, float]:
    taken = {match: _measured(readings) for match, readings in matches.items()}
    return {match: median(values) for match, values in taken.items() if values and min(values) > 0}


def _measured(readings: Iterable[Reading]) -> list[float]:
    return [each.busbw for each in readings if each.busbw is not None and each.outcome == "measured"]


class _View:
    """One level and rail: its fit, and what stands out of it."""

    def __init__(
        self,
        pairs: Mapping[Match, float],
        matches: Mapping[Match, list[Reading]],
        *,
        cliques: Mapping[str, str],
        noise: float,
    ) -> None:
        self.pairs = pairs
        self.values = {match: math.log(value) for match, value in pairs.items()}
        self.read = {match: [math.log(value) for value in _measured(matches[match])] for match in pairs}
        self.uplinks, blocks = _uplinks(self.values, cliques=cliques, noise=noise)
        self.fit: Fit = fit(self.values, blocks=blocks, assumed_noise=noise)

    def findings(self, group: Group, *, expected: float | None) -> Iterator[Finding]:
        """Nodes, then links and pairs, then uplinks, then everything."""
        level, rail = group
        typical = math.exp(self.fit.typical)
        for node in self._slow_nodes(SURE_NODE):
            taken = [self.pairs[each] for each in self.pairs if node in each.nodes]
            share = math.exp(self.fit.effects[node])
            yield _slow("node", (node,), group, share=share, busbw=median(taken), readings=len(taken))
        for match in self._slow_pairs(SURE_LINK):
            kind: Literal["link", "pair"] = "link" if self._told_apart(match) else "pair"
            share, busbw = math.exp(self.fit.residuals[match]), self.pairs[match]
            yield _slow(kind, match.nodes, group, share=share, busbw=busbw, readings=len(self.read[match]))
        for names, effect in self.uplinks.items():
            yield _slow("uplink", names, group, share=math.exp(effect), busbw=typical * math.exp(effect))
        if expected is not None and typical < expected:
            note = f"at least {expected:.4g} GB/s are expected of a pair"
            yield Finding(
                kind="all", names=(), fault="slow", level=level, rail=rail, share=typical / expected,
                busbw=typical, readings=len(self.pairs), note=note,
            )  # fmt: skip
        elif expected is not None and len(self.pairs) < PARTNERS:
            for match, busbw in self.pairs.items():
                if busbw < expected:
                    count = len(self.read[match])
                    yield _slow("pair", match.nodes, group, share=busbw / expected, busbw=busbw, readings=count)

    def suspects(self, sure: float) -> dict[Match, float]:
        """Residuals of the pairs to be read again."""
        found = {match: self.fit.residuals[match] for match in self._slow_pairs(sure)}
        certain = set(self._slow_nodes(SURE_NODE))
        for node in set(self._slow_nodes(sure)) - certain:
            found |= {match: self.fit.residuals[match] for match in self.pairs if node in match.nodes}
        return found

    def _slow_nodes(self, sure: float) -> Iterator[str]:
        for node, effect in sorted(self.fit.effects.items()):
            if effect < math.log1p(-FLOOR) and -effect > sure * self.fit.errors[node]:
                yield node

    def _slow_pairs(self, sure: float) -> Iterator[Match]:
        for match, residual in sorted(self.fit.residuals.items()):
            error = self.fit.residual_error(match, readings=self.read[match])
            if residual < math.log1p(-FLOOR) and -residual > sure * error:
                yield match

    def _told_apart(self, match: Match) -> bool:
        return all(sum(node in each.nodes for each in self.pairs) >= _TOLD_APART for node in match.nodes)


def _uplinks(
    values: Mapping[Match, float], *, cliques: Mapping[str, str], noise: float
) -> tuple[dict[tuple[str, ...], float], dict[Match, float]]:
    """Pairs of cliques whose matches are all slow, and what that takes from each match."""
    blocks: dict[tuple[str, ...], list[Match]] = {}
    for match in values:
        ends = sorted({cliques.get(node, "") for node in match.nodes})
        if match.level == "between" and len(ends) == 2:
            blocks.setdefault(tuple(ends), []).append(match)
    if len(blocks) < PARTNERS:
        return {}, {}
    middles = {ends: median(values[match] for match in block) for ends, block in blocks.items()}
    typical = median(middles.values())
    inner = fit(values, blocks={match: middles[ends] for ends, block in blocks.items() for match in block},
                assumed_noise=noise).noise  # fmt: skip
    slow = {
        ends: middles[ends] - typical
        for ends, block in sorted(blocks.items())
        if len(block) >= _BLOCK
        and middles[ends] - typical < math.log1p(-FLOOR)
        and typical - middles[ends] > SURE_LINK * 1.2533 * inner / math.sqrt(len(block))
    }
    return slow, {match: effect for ends, effect in slow.items() for match in blocks[ends]}


def _slow(
    kind: Literal["node", "link", "pair", "uplink"],
    names: tuple[str, ...],
    group: Group,
    *,
    share: float,
    busbw: float,
    readings: int = 0,
) -> Finding:
    level, rail = group
    return Finding(
        kind=kind, names=names, fault="slow", level=level, rail=rail, share=share, busbw=busbw, readings=readings
    )


def _failed(each: Failure) -> Finding:
    return Finding(
        kind=each.kind, names=each.names, fault=each.fault, rail=each.rail, readings=each.matches, note=each.note
    )


def _over_rails(findings: Collection[Finding], *, rails: Collection[int | None]) -> Iterator[Finding]:
    """Findings, with those of one thing on every one of several ``rails`` told once."""
    by_thing: dict[tuple[str, tuple[str, ...], Level], list[Finding]] = {}
    for each in findings:
        by_thing.setdefault((each.kind, each.names, each.level), []).append(each)
    for same in by_thing.values():
        if len(rails) > 1 and {each.rail for each in same} == set(rails):
            worst = min(same, key=lambda each: each.share if each.share is not None else 0.0)
            yield msgspec.structs.replace(worst, rail=None, note=f"on all {len(rails)} rails that were measured")
        else:
            yield from same
