"""A cluster file in the languages of other tools: gcloud commands, Terraform, bare requests."""
