"""The run directory: the only truth about a run."""
