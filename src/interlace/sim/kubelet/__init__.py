"""Hollow nodes: simulated machines whose kubelets drive the real node programs.

Real: Node and Lease objects, plugin registration, concurrent ``NodePrepareResources`` with
kubelet's deadline and retry times, CDI specs applied to a record of the container, tokens
bound to pod and node, our own programs as they run in a cluster. Simulated: images,
sandboxes, cgroups, GPUs (``facts``) and any program that is not ours (it is only recorded).
"""
