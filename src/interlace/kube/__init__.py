"""Kubernetes runtime: client, informer, work queue, Lease election, events, logging, health and metrics.

Invariant: everything runs on one event loop, holds no global state, bounds every wait, and
stops when it is cancelled. Objects are the frozen structs of ``interlace.api``.
"""
