"""The fastest GPU-to-GPU path for every multi-node job on Kubernetes, formed and proven.

Layers are folders and import only downward: see docs/architecture.md.
"""

__version__ = "0.1.0.dev0"
