"""Stand-ins for kube-scheduler and kube-controller-manager, for the embedded API server (simulated).

They talk to the server as any client does, and do what the real ones do as far as a ComputeDomain can tell:
scheduling with DRA, claims from templates, workload controllers, garbage collection, node life cycle. What they
write is marked: event sources and user agents begin with ``simulated-``.
"""
