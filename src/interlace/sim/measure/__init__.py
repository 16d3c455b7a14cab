"""Measurements without hardware: a bandwidth model with faults, and hollow Pods that answer from it (simulated)."""
