"""``python -m interlace.manifests``: the committed ``deploy/interlace.yaml``."""

from __future__ import annotations

import sys

from interlace.manifests.components import manifests, render

if __name__ == "__main__":
    sys.stdout.write(render(manifests()))
