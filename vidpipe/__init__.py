"""vidpipe answers questions about videos in bulk and records what the model saw."""

__version__ = "0.1.0"
