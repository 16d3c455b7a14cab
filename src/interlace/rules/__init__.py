"""The one rule engine: what is wrong, how bad it is, where, why, and what to do about it."""
