"""Real control planes, and real nodes with kubelet and containerd, for tests, demo and benchmarks.

The programs are built once from Go modules pinned in ``mods/`` and kept in a cache outside the
checkout. ``python -m testbed`` builds them and keeps named clusters; ``testbed.plane.ControlPlane`` is
a cluster that lives and dies with a Python process. Everything listens on loopback alone.
"""
