"""The style of the page: for a screen in light or dark, and for paper. Nothing is fetched."""

from __future__ import annotations

from typing import Final

from interlace.verify.report.palette import BADGES, css

_RULES: Final = """
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main, footer { max-width: 72rem; margin: 0 auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; line-height: 1.3; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; break-after: avoid; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; break-after: avoid; }
.verdict { display: inline-block; padding: 0 .6em; border-radius: .3em; margin-right: .3em; }
.label { border: 2px solid var(--middling); padding: .4rem .8rem; font-weight: 600; }
.remedy { font-weight: 600; }
.quiet, footer, figcaption, caption { color: var(--quiet); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; }
dt { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
li { overflow-wrap: anywhere; }
figure { margin: 0; break-inside: avoid; min-width: 0; }
.beside { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1rem; }
.beside > * { min-width: 0; }
svg { width: 100%; height: auto; display: block; }
svg text { font-family: system-ui, sans-serif; }
.topology text { font-size: 13px; fill: var(--ink); }
.topology .strong { font-weight: 600; }
.topology .small { font-size: 11px; fill: var(--quiet); }
.topology .mark { fill: var(--bad); text-anchor: end; font-weight: 600; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
caption { text-align: left; }
th, td { padding: .15rem .7rem .15rem 0; text-align: left; border-bottom: 1px solid var(--grid); }
summary { cursor: pointer; color: var(--link); }
:focus-visible { outline: 3px solid var(--first); outline-offset: 2px; }
footer { margin-top: 2rem; padding-bottom: 2rem; font-size: .85rem; }
@media print {
  @page { margin: 15mm; }
  body { font-size: 10.5pt; }
  .verdict { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .rows { display: none; }
  .scroll { overflow: visible; }
  tr { break-inside: avoid; }
}
"""


def style() -> str:
    """The whole style sheet."""
    badges = "".join(
        f".{name.replace(' ', '-')} {{ color: {ink}; background: {ground}; }}\n"
        for name, (ink, ground) in BADGES.items()
    )
    return f"{css()}{_RULES}{badges}"
