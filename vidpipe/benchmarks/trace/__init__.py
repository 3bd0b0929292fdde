"""Scorers as `vidpipe trace` runs them over vectors of upstream's functions."""
