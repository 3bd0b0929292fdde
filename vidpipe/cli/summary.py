"""The last lines of a run: some answers, counts, where the file is, what the exit code means."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from vidpipe.cli import exit_codes
from vidpipe.cli.advice import ADVICE
from vidpipe.job.encoder_report import sentences
from vidpipe.job.run import RunResult
from vidpipe.job.summary import Sample
from vidpipe.recipe.schema import Recipe
from vidpipe.wording import counted


def print_summary(result: RunResult, recipe: Recipe, code: int) -> None:
    """Print the end of a run to standard output."""
    console = Console(highlight=False)
    summary = result.summary
    if result.answered_now == 0 and summary.complete and not result.interrupted:
        console.print(f"nothing to do: {counted(summary.rows, 'row is', 'rows are')} in {result.results}")
    elif summary.samples:
        console.print(_answers(summary.samples, judged=summary.matches is not None))
    if summary.matches is not None:
        console.print(_exact_match(summary.matches, summary.with_answer), soft_wrap=True)
    for kind, (count, message) in summary.errors.items():
        console.print(escape(f"{count} x {kind}, for example: {message}"))
        if kind in ADVICE:
            console.print(escape(f"  what to do: {ADVICE[kind]}"), soft_wrap=True)
    for mark, (count, row_id) in summary.flags.items():
        console.print(
            escape(f"{counted(count, 'reply', 'replies')} with {mark}, for example row {row_id}"), soft_wrap=True
        )
    if summary.asked_again:
        console.print(
            f"{counted(summary.asked_again, 'row was', 'rows were')} asked again (retry.rules): column other_tries",
            soft_wrap=True,
        )
    if recipe.description:
        console.print(escape(recipe.description.strip()), soft_wrap=True)
    if result.feed is not None:
        console.print(result.feed.sentence(), soft_wrap=True)
    for line in sentences(list(result.encoder)):
        console.print(line, soft_wrap=True)
    statuses = ", ".join(f"{count} {status}" for status, count in sorted(summary.statuses.items()))
    counts = f"{summary.rows} of {counted(summary.expected, 'row')}" + (f" ({statuses})" if statuses else "")
    where = f"recorded in {result.results.parent}" if result.interrupted else f"in {result.results}"
    console.print(f"{counts} {where}", soft_wrap=True)
    if result.stopped:
        more = f"--set output.tolerance={summary.expected}"
        console.print(
            "stopped early: more rows have failed than output.tolerance allows, whatever becomes of the others. Mend "
            f"them and type --fresh, or go on all the same with {more}.",
            soft_wrap=True,
        )
    console.print(f"exit code {code}: {exit_codes.MEANING[code]}")


def _exact_match(right: int, rows: int) -> str:
    """With an interval for rows that are independent; `vidpipe score` has the one over clips."""
    from vidpipe.benchmarks.uncertainty import wilson

    low, high = wilson(right, rows)
    return (
        f"exact match (text equals answer): {right} of {counted(rows, 'row')}, {right / rows:.1%} "
        f"(95 % interval {low:.1%} to {high:.1%}, rows taken as independent)"
    )


def _answers(samples: tuple[Sample, ...], *, judged: bool) -> Table:
    table = Table(box=box.SIMPLE)
    table.add_column("id", overflow="ellipsis", max_width=16, no_wrap=True)
    for name in ("question", "text", *(("answer",) if judged else ())):
        table.add_column(name, overflow="ellipsis", max_width=28 if name == "question" else 13, no_wrap=True)
    if judged:
        table.add_column("right")
    for sample in samples:
        text = sample.text.strip()
        cells = [sample.id, sample.question, text or "(empty)"]
        if judged:
            cells += [sample.answer or "", "yes" if text == sample.answer else "no"]
        table.add_row(*(escape(cell.replace("\n", " ")) for cell in cells))
    return table
