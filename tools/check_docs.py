"""Every link in the Markdown files leads somewhere.

A relative link must name a file of the repository, and its anchor a heading there. Absolute paths are
refused, in links and in text: what lies on one person's machine helps nobody else.
"""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

FENCE = re.compile(r"^(\s*)(`{3,}|~{3,}).*?^\1\2[`~]*\s*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"(?<!\\)\]\(\s*<?([^)\s>]+)>?(?:\s+[\"'(][^)]*)?\)")
DEFINITION = re.compile(r"^ {0,3}\[[^\]]+\]:\s*<?(\S+?)>?(?:\s|$)", re.MULTILINE)
TAG = re.compile(r"<(?:a|img)\b[^>]*?\b(?:href|src)=[\"']([^\"']+)[\"']", re.IGNORECASE)
HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$", re.MULTILINE)
HTML_ANCHOR = re.compile(r"<[^>]*\b(?:id|name)=[\"']([^\"']+)[\"']")
SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
HOME = re.compile(r"(?<![\w.-])/(?:home(?!/kubernetes/bin\b)|root|Users)/[\w.-]+")
"""``/home/kubernetes/bin`` is a folder of every GKE node."""


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    text = re.sub(r"[`*]|(?<!\w)_|_(?!\w)|<[^>]+>", "", text).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(markdown: str) -> set[str]:
    """All anchors of a page; repeated headings get -1, -2 …"""
    prose = FENCE.sub("", markdown)
    found: set[str] = set(HTML_ANCHOR.findall(prose))
    seen: dict[str, int] = {}
    for heading in HEADING.findall(prose):
        base = slug(heading)
        count = seen.get(base, 0)
        seen[base] = count + 1
        found.add(f"{base}-{count}" if count else base)
    return found


def links(markdown: str) -> Iterator[str]:
    """Targets of all links and images outside code."""
    prose = CODE.sub("", FENCE.sub("", markdown))
    for pattern in (LINK, DEFINITION, TAG):
        yield from pattern.findall(prose)


def problems(page: Path, root: Path) -> Iterator[str]:
    """What is wrong in ``page``, one sentence each."""
    text = page.read_text()
    name = page.relative_to(root)
    for path in HOME.findall(text):
        yield f"{name}: {path} is a path of one machine; write a relative path or a variable"
    for target in links(text):
        if SCHEME.match(target) or target.startswith("//"):
            continue
        path, _, anchor = urllib.parse.unquote(target).partition("#")
        if path.startswith("/"):
            yield f"{name}: link {target} is absolute; write it relative to the page"
            continue
        there = (page.parent / path).resolve() if path else page
        if not there.is_relative_to(root):
            yield f"{name}: link {target} leads out of the repository; link to a page inside"
        elif not there.exists():
            yield f"{name}: link {target} leads to nothing; correct the path"
        elif anchor and there.suffix == ".md" and anchor not in anchors(there.read_text()):
            yield f"{name}: link {target} names no heading of {there.relative_to(root)}; correct the anchor"


def pages(root: Path) -> list[Path]:
    """Markdown files that git knows or would add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.md"]
    listed = subprocess.run(command, cwd=root, capture_output=True, check=True, text=True).stdout
    return [path for name in sorted(set(listed.split("\0")) - {""}) if (path := root / name).exists()]


def main(root: Path) -> int:
    """Exit code: 0 if all is well, 1 with one line a finding."""
    checked = pages(root)
    found = [problem for page in checked for problem in problems(page, root)]
    for problem in found:
        print(problem, file=sys.stderr)
    print(f"docs: {len(checked)} pages, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parents[1]))
