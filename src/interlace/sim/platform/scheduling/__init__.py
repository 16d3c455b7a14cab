"""Stand-in for kube-scheduler (simulated): pure decisions on snapshots, and the shell that writes them."""
