"""What others can ask the daemon."""
