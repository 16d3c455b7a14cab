"""Stand-ins for the garbage collector and the namespace controller (simulated)."""
