"""Checks of the repository itself, run by ``make check``."""
