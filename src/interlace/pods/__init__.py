"""Pods that get the fabric of their nodes: injection as a pure function, files, and admission."""
