"""What can be said about the networks of a cluster: pure functions of plain values."""
