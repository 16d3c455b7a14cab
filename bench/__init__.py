"""Measurements: what forming domains costs, how fast the command starts, how much an idle node program takes."""
