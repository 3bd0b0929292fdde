"""The recipe: one YAML file that says everything about a run."""
