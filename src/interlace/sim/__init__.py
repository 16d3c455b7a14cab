"""Stand-ins for what a laptop does not have: API server, scheduler, kubelets, ``nvidia-imex``.

Everything in this package is simulated and says so in its output. It is imported by the
CLI and by tests alone; nothing that runs in a cluster depends on it.
"""
