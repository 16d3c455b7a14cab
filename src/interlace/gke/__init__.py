"""Clusters of Google Kubernetes Engine for GPUDirect: one file, planned, applied, checked and taken away again."""
