"""Stand-ins for the workload controllers (simulated): a pure plan for each kind, and shells that carry it out."""
