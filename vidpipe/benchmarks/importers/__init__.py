"""Published benchmark files to manifests: one file a benchmark."""
