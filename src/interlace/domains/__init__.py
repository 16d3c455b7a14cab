"""ComputeDomains: from claims to IMEX node maps and status.

The controller is the only writer of templates, cliques and status. What decides is pure and takes
values: ``membership`` (which nodes), ``indexes`` and ``cliques`` (the node maps), ``template`` (the
claim template), ``debounce`` (when to write), ``status`` and ``conditions`` (what to report),
``waiting`` (what each Pod waits for). ``reconciler`` and ``controller`` talk to the API server.
"""
