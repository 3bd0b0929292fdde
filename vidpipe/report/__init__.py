"""Pictures and pages of what a run or a model saw."""
