"""The command line: one small file a command, nothing heavy imported before a command runs."""
