"""Published benchmarks: importers, prompts and scorers, and the statistics behind every number."""
