"""Stand-ins for what watches over nodes (simulated): life cycle, eviction by taints, pods of lost nodes."""
