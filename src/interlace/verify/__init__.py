"""Prove a fabric: read measurements of nccl-tests, check and judge them, measure pairs of nodes, report."""
