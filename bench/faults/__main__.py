"""``python -m bench.faults [--only NAME] [--again]``: play the fault table; ``report``: write docs/reliability.md.

Rows that have a good result are left out unless ``--again`` or ``--only`` asks for them, so an ended run goes on
where it was. Exit code 1 if a row failed, 2 for a name that no row has.
"""

from __future__ import annotations

import argparse
import asyncio
import fnmatch
import sys

from bench.faults.page import PAGE, page
from bench.faults.runner import load, run
from bench.faults.table import ROWS
from interlace.kube.log import configure

OUTAGE = 60.0
"""Seconds for which something is away; tests take 10."""
MANY = 10_000
"""Random objects a kind; tests take 150."""


def main() -> int:
    """Exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.faults", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("verb", nargs="?", choices=("run", "report", "list"), default="run")
    parser.add_argument("--only", action="append", metavar="NAME", help="rows of this name; * stands for anything")
    parser.add_argument("--again", action="store_true", help="also rows that have a good result")
    parser.add_argument("--outage", type=float, default=OUTAGE, metavar="SECONDS", help="default: %(default)g")
    parser.add_argument("--many", type=int, default=MANY, help="random objects a kind; default: %(default)d")
    options = parser.parse_args()
    names = [row.name for row in ROWS]
    for pattern in options.only or ():
        if not fnmatch.filter(names, pattern):
            print(f"--only {pattern}: no row has this name; `python -m bench.faults list` shows them", file=sys.stderr)
            return 2
    try:
        found = load()
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if options.verb == "report":
        PAGE.write_text(page(found))
        return 0
    chosen = [
        row
        for row in ROWS
        if (
            any(fnmatch.fnmatch(row.name, pattern) for pattern in options.only)
            if options.only
            else options.again or row.name not in found or not found[row.name].good
        )
    ]
    if options.verb == "list":
        print("\n".join(row.name for row in (chosen if options.only else ROWS)))
        return 0
    configure("error", json=False)
    good = asyncio.run(run(chosen, outage=options.outage, many=options.many, tell=lambda line: print(line, flush=True)))
    PAGE.write_text(page(load()))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
