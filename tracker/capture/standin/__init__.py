"""A kernel on paper: true state, the messages about it, and the dumps of it."""
