"""The same work done by what a user would pick instead: `make bench-peers`."""
