"""The node agent: a DRA kubelet plugin that gives a pod its channel once the node's own IMEX is ready.

The parts that decide (``fabric``, ``opaque``, ``demand``, ``orders``, ``gate``, ``peers``) are pure;
``agent`` wires them to kubelet, the API server, the disk and the imex-host.
"""
