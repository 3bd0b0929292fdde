"""Engines: one small interface, and what stands behind it."""
