"""Rules for GPUDirect on GKE: over an observed cluster, a cluster file, and requests. ``checking`` runs them."""
