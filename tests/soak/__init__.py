"""Random kernel operations in a network namespace, and what the tracker makes of them."""
