"""Form and tear down ComputeDomains on a real control plane and say what it cost."""
