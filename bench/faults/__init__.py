"""What fails, and what comes of it: the fault table, measured on real control planes with hollow nodes."""
