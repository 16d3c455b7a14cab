"""The report as JUnit XML, which every CI system shows: one case a run and a pair that was named, and one for all.

What cannot be told is an error, because nothing was tested and the command does not end with 0; what nobody judges (no
band) is skipped. Invariant: no clock and no host of ours in it, so that the same report gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from interlace.verify.report.content import Report
from interlace.verify.report.text import html
from interlace.verify.verdict import Verdict

_ELEMENTS = {"fail": "failure", "degraded": "failure", "cannot tell": "error"}


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One check and how it ended."""

    name: str
    group: str
    verdict: Verdict
    message: str = ""
    text: str = ""
    judged: bool = True


def cases(report: Report) -> Iterator[Case]:
    """The whole first, then runs, then what is named as bad."""
    yield Case(
        name="verdict", group="interlace.verify", verdict=report.verdict, message=report.cause, text=report.remedy
    )
    for each in report.assessments:
        yield Case(
            name=f"{each.name} ({'stdin' if each.run.source == '-' else each.run.source}:{each.run.line})",
            group="interlace.verify.runs",
            verdict=each.verdict,
            message=each.cause,
            text=each.remedy,
            judged=each.judged,
        )
    for found in report.matrix.findings if report.matrix is not None else ():
        verdict: Verdict = "degraded" if found.fault == "slow" else "fail"
        name = " - ".join(found.names) or "all pairs"
        yield Case(name=f"{found.kind} {name}", group="interlace.verify.pairs", verdict=verdict, message=found.text)


def junit(report: Report) -> str:
    """The XML document."""
    found = list(cases(report))
    ended = [_ending(case) for case in found]
    counts = {
        "tests": len(found),
        "failures": ended.count("failure"),
        "errors": ended.count("error"),
        "skipped": ended.count("skipped"),
    }
    numbers = " ".join(f'{name}="{count}"' for name, count in counts.items())
    label = " (simulated)" if report.simulated else ""
    body = "\n".join(f"    {_case(case, ending)}" for case, ending in zip(found, ended, strict=True))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites name="interlace verify{label}" {numbers}>\n'
        f'  <testsuite name="interlace verify{label}" {numbers}>\n{body}\n  </testsuite>\n</testsuites>\n'
    )


def _ending(case: Case) -> str:
    return "skipped" if not case.judged else _ELEMENTS.get(case.verdict, "")


def _case(case: Case, ending: str) -> str:
    first = f'<testcase classname="{html(case.group)}" name="{html(case.name)}"'
    if not ending:
        return f"{first}/>"
    kind = "" if ending == "skipped" else f' type="{html(case.verdict)}"'
    return f'{first}><{ending} message="{html(case.message)}"{kind}>{html(case.text)}</{ending}></testcase>'
