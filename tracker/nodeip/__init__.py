"""Rules of Kubernetes about the addresses of a node, as pure functions."""
