"""Canonical REST bodies of the resources of a GKE cluster, and the requests that carry them."""
