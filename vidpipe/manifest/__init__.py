"""Manifests: files of rows, one row one request to the model."""
