"""Generated messages of the kubelet protocols; ``README.md`` says how they were made."""
