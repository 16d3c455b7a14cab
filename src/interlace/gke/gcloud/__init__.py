"""gcloud command lines: read from a page of shell, and what they would send, without running anything."""
