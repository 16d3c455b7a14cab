"""The demonstration: one job's domain is formed, loses a node, heals, shrinks, grows and goes."""
