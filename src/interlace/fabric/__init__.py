"""Hardware families as data: networks, versions, software, NCCL environment, pod contract, expected bandwidth."""
