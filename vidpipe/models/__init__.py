"""Model families: pure rules for which frames a model sees, how large, and at which times."""
