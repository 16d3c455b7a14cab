"""nvidia-imex on a node: its files, its process, its health, and the socket over which the agent gives orders."""
