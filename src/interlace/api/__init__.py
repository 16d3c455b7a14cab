"""Kubernetes objects as frozen structs that hold only the fields we read or write.

Invariant: an object that was decoded here is never sent back whole (fields that we
do not know would be lost); writes are patches, server-side apply, or objects that we
built ourselves.
"""
