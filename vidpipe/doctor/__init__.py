"""Whether a machine can run vidpipe, and if not, what to type."""
