"""One verdict for a log: what its runs reached, what its lines say, the first cause, and what was not tested.

Invariant: the verdict comes first, then one sentence of cause, then the evidence that it rests on. Bandwidth alone
never passes where the log shows another transport than the family's.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from interlace.fabric.bands import Scope
from interlace.fabric.family import Family, families
from interlace.verify.assertions import Scene
from interlace.verify.bandwidth import Assessment, Place, assess, assumed_noise
from interlace.verify.causes import UNKNOWN, Diagnosis, Finding, diagnose
from interlace.verify.comparison import tolerance
from interlace.verify.coverage import untested
from interlace.verify.curve import main_curve, size_name
from interlace.verify.events import LogEvent
from interlace.verify.run import Run, is_reversed
from interlace.verify.shape import Shape, scale
from interlace.verify.transport import Transport, observe
from interlace.verify.verdict import Evidence, Verdict, worst

_MODEL = re.compile(r"\b(GB\d{3}|[ABH]\d{3})\b")
_QUOTED: Final = 240
"""Characters of a line that are quoted."""


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """The answer."""

    verdict: Verdict
    cause: str
    """One sentence without its full stop."""
    remedy: str = ""
    family: str | None = None
    nodes: int | None = None
    transport: str | None = None
    """What carried the data, in a word: ``NVLink``, ``FasTrak``, ``GPUDirectTCPX``, ``gIB``, ``Socket`` …"""
    evidence: tuple[Evidence, ...] = ()
    causes: tuple[Finding, ...] = ()
    """What went wrong, the first cause first, each with its consequences."""
    noted: tuple[Finding, ...] = ()
    """Seen, and without consequence here."""
    not_tested: tuple[str, ...] = ()
    disagreements: tuple[str, ...] = ()
    """Runs of the same thing that differ by more than noise."""
    assessments: tuple[Assessment, ...] = ()


def judge(
    runs: Iterable[Run],
    events: Iterable[LogEvent],
    *,
    family: Family | None = None,
    nodes: int | None = None,
    baseline: Sequence[Run] | None = None,
) -> Judgement:
    """Judge what was read from one or several logs of one test.

    ``nodes``: as the user says; else as the log does, else ranks over the family's GPUs a node. ``baseline``: runs
    that replace the bands.
    """
    runs, events = tuple(runs), tuple(events)
    transport = observe(events)
    found_nodes, assumed = _nodes(runs, transport, family=family, given=nodes)
    ranks = max((run.ranks or 0 for run in runs), default=0) or transport.ranks
    scene = Scene(transport=transport, runs=runs, family=family, nodes=found_nodes, ranks=ranks)
    other = _other_family(runs, transport, family)
    # What a family should have used says nothing about a log of another one.
    diagnosis = diagnose(msgspec.structs.replace(scene, family=None) if other else scene, events)
    assessments = tuple(_assess(run, scene, given=nodes, baseline=baseline) for run in runs)
    causes, noted = _matter(diagnosis, assessments)
    verdict, cause, remedy = _decide(causes, diagnosis.slow, assessments, began=diagnosis.began)
    if verdict == "pass":  # what could have slowed it did not
        noted = (*diagnosis.slow, *noted)
    else:
        causes = (*causes, *diagnosis.slow)
    noise = assumed_noise(family)
    disagreements = _disagreements(assessments, noise=noise)
    if disagreements and verdict in ("fail", "degraded") and any(each.verdict == "pass" for each in assessments):
        cause = f"{cause}; runs disagree: {disagreements[0]}"
    grown = _grown(assessments, scene)
    return Judgement(
        verdict=verdict,
        cause=cause,
        remedy=remedy or (grown.remedy if grown is not None else ""),
        family=family.id if family is not None else None,
        nodes=found_nodes,
        transport=scene.ran,
        evidence=(
            *(evidence for each in causes for evidence in _shown(each)),
            *(evidence for each in assessments for evidence in each.evidence),
            *_said(scene, assumed=assumed, given=nodes),
            *([Evidence(kind="shape", text=f"{grown.text}: {grown.cause}")] if grown is not None else ()),
        ),
        causes=causes,
        noted=noted,
        not_tested=untested(scene, assessments),
        disagreements=disagreements,
        assessments=assessments,
    )


def _nodes(
    runs: Sequence[Run], transport: Transport, *, family: Family | None, given: int | None
) -> tuple[int | None, bool]:
    """The nodes, and whether they were only assumed. Pods may share a host name; NCCL tells them apart."""
    known = given or max(_hosts(runs), transport.nodes or 0)
    if known:
        return known, False
    ranks = max((run.ranks or 0 for run in runs), default=0)
    if family is not None and ranks and ranks % family.node.gpus == 0:
        return ranks // family.node.gpus, True
    return None, False


def _hosts(runs: Iterable[Run]) -> int:
    return max((run.nodes or 0 for run in runs), default=0)


def _assess(run: Run, scene: Scene, *, given: int | None, baseline: Sequence[Run] | None) -> Assessment:
    family = scene.family
    told = scene.transport if run.ranks == scene.ranks else Transport()
    own = _nodes([run], told, family=family, given=given)[0] or scene.nodes
    place = Place(family=family, nodes=own, scope=_scope(scene, own))
    assessment = assess(run, place=place, baseline=baseline)
    other = _other_family([run], scene.transport, family) if baseline is None else None
    if other is None or assessment.verdict == "cannot tell" or run.wrong_total:
        return assessment
    why = f"{other}: no band is for it"
    return msgspec.structs.replace(
        assessment,
        verdict="cannot tell",
        cause=why,
        remedy="Name the family that ran, or give a baseline.",
        judged=False,
    )


def _scope(scene: Scene, nodes: int | None) -> Scope | None:
    family, transport = scene.family, scene.transport
    if family is None or not family.node.mnnvl:
        return "nodes"
    if transport.mnnvl is False and transport.settings.get("NCCL_MNNVL_ENABLE") == "0":
        return "nodes"
    return "nvlink" if (nodes or 1) <= family.node.domain_nodes else None


def _other_family(runs: Iterable[Run], transport: Transport, family: Family | None) -> str | None:
    """What in the log is not the family's: the GPU model, or a network that only other families have."""
    if family is None:
        return None
    own, wanted = _MODEL.search(family.node.product.replace("-", " ")), family.node.nccl_network
    for device in (run.device for run in runs if run.device is not None):
        model = _MODEL.search(device.replace("-", " "))
        if model is not None and own is not None and model[1] != own[1]:
            return f"the log is of {device}, and family {family.id} has {family.node.product}"
    others = {each.node.nccl_network for each in families()} - {wanted, ""}
    used = transport.carriers or not transport.mnnvl
    if wanted and used and transport.network in others:
        return f"the network of the log is {transport.network}, and family {family.id} has {wanted}"
    return None


def _matter(diagnosis: Diagnosis, assessments: Sequence[Assessment]) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Findings that bear on the verdict, and those that a completed measurement has disproved."""
    ended = bool(assessments) and all(_ended(each.run) for each in assessments)
    quiet = any(each.run.rows for each in assessments) and not any(each.run.errors for each in assessments)
    survived = tuple(
        each
        for each in diagnosis.causes
        if (ended and each.signature.effect == "stops") or (quiet and each.signature.id == UNKNOWN)
    )
    return tuple(each for each in diagnosis.causes if each not in survived), (*survived, *diagnosis.notes)


def _ended(run: Run) -> bool:
    return bool(run.rows) and not run.partial_rows and not run.errors and run.avg_busbw_printed is not None


def _decide(
    causes: Sequence[Finding], slow: Sequence[Finding], assessments: Sequence[Assessment], *, began: bool
) -> tuple[Verdict, str, str]:
    """The verdict, its cause in one sentence, and what to do."""
    counted = [each for each in assessments if each.judged] or list(assessments)
    measured = worst(each.verdict for each in counted)
    alike = [each for each in counted if each.verdict == measured]
    # Of a log that is read from its end the header comes last, as a run without rows.
    deciding = next((each for each in alike if is_reversed(each.run.rows)), alike[0] if alike else None)
    if causes and causes[0].signature.stage == "nccl":
        return "fail", _told(causes[0]), causes[0].signature.remedy
    if causes and measured not in ("fail", "degraded"):
        rows = any(each.run.rows for each in assessments)
        what = "was cut short" if rows else "was ended before it measured anything" if began else "did not start"
        why = f"the test {what}: {_told(causes[0])}; the fabric was not tested"
        return "cannot tell", why, causes[0].signature.remedy
    if deciding is None:
        return "cannot tell", "no table of nccl-tests was read", "Give the whole output of the test."
    broken = next((each.run for each in assessments if each.run.errors), None)
    if broken is not None and measured != "fail":
        return "fail", f"the test ended with an error: {_clean(broken.errors[0])}", "Run it with NCCL_DEBUG=INFO."
    cause, remedy = f"{deciding.name}: {deciding.cause}", deciding.remedy
    if slow and measured in ("fail", "degraded"):
        cause, remedy = f"{cause}; {_told(slow[0])}", slow[0].signature.remedy
    return measured, cause, remedy


def _told(finding: Finding) -> str:
    return f"{finding.signature.cause} ({finding.detail})" if finding.detail else finding.signature.cause


def _shown(finding: Finding) -> Iterable[Evidence]:
    """The line that shows a finding; then how many others follow from it."""
    sign, event = finding.signature, finding.event
    also = f", {finding.count} times" if finding.count > 1 else ""
    ranks = f", on {len(finding.ranks)} ranks" if len(finding.ranks) > 1 else ""
    quoted = f': "{_clean(event.text)}"' if event is not None else ""
    yield Evidence(
        kind="log",
        text=f"{sign.id}: {_told(finding)}{also}{ranks}{quoted}",
        log=sign.log,
        source=event.source if event is not None else None,
        line=event.line if event is not None else None,
        rank=event.rank if event is not None else None,
        host=event.host if event is not None else None,
    )
    if finding.consequences:
        names = ", ".join(f"{each.signature.id} ({each.count})" for each in finding.consequences)
        yield Evidence(kind="log", text=f"follows from it: {names}")


def _clean(text: str) -> str:
    """A line as it may be shown: no control characters, not too long."""
    shown = "".join(character if character.isprintable() else " " for character in text).strip()
    return shown if len(shown) <= _QUOTED else f"{shown[:_QUOTED]}…"


def _said(scene: Scene, *, assumed: bool, given: int | None) -> Iterable[Evidence]:
    """Evidence about the set-up."""
    transport, family = scene.transport, scene.family
    if assumed and family is not None:
        text = f"{scene.nodes} nodes are assumed: {scene.ranks} ranks at {family.node.gpus} GPUs a node"
        yield Evidence(kind="assumed", text=text)
    hosts = max(_hosts(scene.runs), transport.nodes or 0)
    if given and hosts and hosts != given:
        yield Evidence(kind="assumed", text=f"{given} nodes, as --nodes says, where the log names {hosts}")
    ran = scene.ran
    if ran is None:
        return
    via = transport.first_channel or transport.first_network or transport.first_comm
    direct = {True: ", with GPUDirect", False: ", not all channels with GPUDirect", None: ""}[transport.direct]
    nics = f", {len(transport.net_devices)} NICs named" if transport.net_devices else ""
    own = family.node.nccl_network if family is not None else ""
    other = f" (the family's own is {own})" if own and scene.between_nodes and ran not in (own, "NVLink") else ""
    yield Evidence(
        kind="transport",
        text=f"data went over {ran}{direct}{nics}{other}",
        log="rank",
        source=via.source if via is not None else None,
        line=via.line if via is not None else None,
    )


def _disagreements(assessments: Sequence[Assessment], *, noise: float) -> tuple[str, ...]:
    """Runs of one collective, ranks and size that differ by more than noise explains."""
    groups: dict[tuple[str | None, int | None, int], list[float]] = defaultdict(list)
    for each in assessments:
        points = main_curve(each.run).points
        if points:
            groups[each.run.collective, each.run.ranks, points[-1].size].append(points[-1].busbw)
    return tuple(
        f"{len(values)} runs of {collective or 'a collective'} over {ranks} ranks reach"
        f" {min(values):.4g} to {max(values):.4g} GB/s at {size_name(size)}"
        for (collective, ranks, size), values in groups.items()
        if len(values) > 1 and min(values) < (1 - tolerance(noise)) * max(values)
    )


def _grown(assessments: Sequence[Assessment], scene: Scene) -> Shape | None:
    """Whether one collective falls by nearly half on more ranks."""
    family = scene.family
    rate = family.node.nics * family.node.nic_gbps / 8 if family is not None and not family.node.mnnvl else None
    for collective in sorted({each.run.collective for each in assessments if each.run.collective}):
        of_it = [each for each in assessments if each.run.collective == collective and (each.nodes or 0) > 1]
        found = scale([(each.run.ranks or 0, main_curve(each.run)) for each in of_it], rate=rate)
        if found is not None:
            return found
    return None
