"""Dropping vision tokens after the encoder: how many stay, which ones, and where those stand."""
