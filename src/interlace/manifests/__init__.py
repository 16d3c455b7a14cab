"""What is installed in a cluster: our own components, and what hardware of a family needs beside them."""

from interlace.manifests.components import IMAGE, NAMESPACE, manifests, render

__all__ = ["IMAGE", "NAMESPACE", "manifests", "render"]
