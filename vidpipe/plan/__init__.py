"""The plan: what a run will do, known before the engine starts."""
