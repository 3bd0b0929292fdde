"""Exit codes of every command; scripts and Slurm jobs rely on them."""

from __future__ import annotations

DONE = 0
ROWS_FAILED = 1  # the run is complete, but more rows failed than the recipe tolerates
WRONG_INPUT = 2  # recipe, manifest or arguments
ENGINE_FAILED = 3  # the engine cannot start, or keeps dying
UNFORESEEN = 70  # EX_SOFTWARE: an exception that nobody catches, which Python would end with 1
INTERRUPTED = 75  # EX_TEMPFAIL: the same command goes on where this one stopped
READER_GONE = 141  # what a shell says of a program that SIGPIPE ended

MEANING = {
    DONE: "done",
    ROWS_FAILED: "more rows failed than output.tolerance allows",
    WRONG_INPUT: "wrong recipe, manifest or arguments",
    ENGINE_FAILED: "the engine failed; run the same command again",
    UNFORESEEN: "an error that vidpipe does not know",
    INTERRUPTED: "interrupted; the same command goes on where this one stopped",
    READER_GONE: "nobody reads the output any more",
}
