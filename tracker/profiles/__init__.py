"""What other software would choose on a host; imported by `compare` alone."""
