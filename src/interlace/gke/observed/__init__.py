"""What there is in a project and its cluster, as rules see it: read from a bundle, or gathered from a live one."""
