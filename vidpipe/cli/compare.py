"""`vidpipe compare`: what did a change cost, and what did it bring?"""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidpipe.wording import counted

if TYPE_CHECKING:
    from vidpipe.benchmarks.compare import Difference
    from vidpipe.benchmarks.predictions import Predictions
    from vidpipe.cli.documents_of_scores import CompareDocument, DifferenceDocument


def compare(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help="A run, a .parquet, or a .jsonl: the baseline.")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="The same for the change.")],
    profile: Annotated[
        str | None, typer.Option("--profile", metavar="NAME", help="Rules; else what the rows name.")
    ] = None,
    strip_reasoning: Annotated[
        bool, typer.Option("--strip-reasoning", help="Take tagged reasoning out of both runs' replies first.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Paired difference B - A in score, with its interval, and speed; over the rows that both have."""
    from vidpipe.benchmarks.compare import compare as compare_predictions
    from vidpipe.benchmarks.load import load_predictions
    from vidpipe.benchmarks.reasoning import strip_reasoning as strip
    from vidpipe.benchmarks.registry import get_profile
    from vidpipe.benchmarks.speed import read_speed
    from vidpipe.benchmarks.uncertainty import clips_to_see
    from vidpipe.cli.documents_of_scores import CompareDocument, SpeedDocument
    from vidpipe.cli.score import ONE_POINT
    from vidpipe.job.settings import differences

    benchmark = profile.partition(".")[0] if profile else None
    a, b = (load_predictions(path, benchmark) for path in (run_a, run_b))
    rules = get_profile(_profile_of(a, b, profile))
    prepare = strip if strip_reasoning or a.scoring.strip_reasoning or b.scoring.strip_reasoning else None
    found = compare_predictions(a, b, rules, prepare)
    document = CompareDocument(
        a=str(run_a),
        b=str(run_b),
        profile=rules.name,
        version=rules.version,
        changed=differences(a.asked, b.asked) if a.asked and b.asked else [],
        matched=found.matched,
        only_a=found.only_a,
        only_b=found.only_b,
        overall=_difference(found.overall),
        clips_for_one_point=clips_to_see(ONE_POINT, found.overall.difference),
        groups=[_difference(group) for group in found.groups],
        types=[_difference(one) for one in found.types],
        paired_t_p=None if math.isnan(found.paired_t_p) else found.paired_t_p,
        strip_reasoning=prepare is not None,
        won=list(found.won),
        lost=list(found.lost),
        speed_a=SpeedDocument.model_validate(asdict(read_speed(run_a))),
        speed_b=SpeedDocument.model_validate(asdict(read_speed(run_b))),
    )
    if as_json:
        typer.echo(document.model_dump_json())
    else:
        _print(document)


def _profile_of(a: Predictions, b: Predictions, asked: str | None) -> str:
    from vidpipe.benchmarks.select import rows_by_profile
    from vidpipe.errors import RecipeError

    if asked:
        return asked
    named = {name for run in (a, b) for name in rows_by_profile(run, [])}
    if len(named) > 1:
        raise RecipeError(f"the rows name several scorers ({', '.join(sorted(named))}). Choose one with --profile.")
    return named.pop()


def _difference(found: Difference) -> DifferenceDocument:
    from vidpipe.cli.documents_of_scores import DifferenceDocument
    from vidpipe.cli.score import percent

    change = found.difference
    return DifferenceDocument(
        name=found.name,
        score_a=100 * found.score_a,
        score_b=100 * found.score_b,
        difference=100 * change.value,
        stderr=None if change.stderr is None else 100 * change.stderr,
        interval_95=percent(change.interval),
        rows=change.rows,
        clips=change.clips,
        wins=found.wins,
        losses=found.losses,
        mcnemar_p=found.mcnemar_p,
    )


def _print(document: CompareDocument) -> None:
    typer.echo(f"A {document.a}\nB {document.b}\n{document.profile} version {document.version}, percent, B - A")
    for change in document.changed:
        typer.echo(f"changed: {change}")
    grouped = {group.name for group in document.groups}
    for line in (document.overall, *document.groups, *(one for one in document.types if one.name not in grouped)):
        interval = "[one clip]" if line.interval_95 is None else "[{:+.2f}, {:+.2f}]".format(*line.interval_95)
        typer.echo(
            f"{line.name:28} {line.score_a:6.2f} -> {line.score_b:6.2f}  {line.difference:+6.2f} {interval:18} "
            f"{counted(line.rows, 'row')}, {counted(line.clips, 'clip')}, {line.wins} better, "
            f"{line.losses} worse{_mcnemar(line)}"
        )
    if document.paired_t_p is not None:
        typer.echo(f"paired t over rows p = {document.paired_t_p:.3g}")
    if document.clips_for_one_point is not None:
        typer.echo(f"one point is seen with about {document.clips_for_one_point} such clips (power 80 %)")
    if document.strip_reasoning:
        typer.echo("tagged reasoning was taken out of both runs' replies first")
    if document.only_a or document.only_b:
        typer.echo(f"left out: {counted(document.only_a, 'row')} that only A has, {document.only_b} that only B has")
    a, b = document.speed_a.model_dump(), document.speed_b.model_dump()
    stages_a, stages_b = a.pop("seconds"), b.pop("seconds")
    pairs = {f"{stage} s a row": (stages_a.get(stage), stages_b.get(stage)) for stage in stages_a}
    for name, (before, after) in {**pairs, **{name: (a[name], b[name]) for name in a}}.items():
        if before is not None and after is not None:
            ratio = f" (x {after / before:.2f})" if before else ""
            typer.echo(f"{name.replace('_', ' '):28} {before:.4g} -> {after:.4g}{ratio}")


def _mcnemar(line: DifferenceDocument) -> str:
    return "" if line.mcnemar_p is None else f", McNemar p = {line.mcnemar_p:.3g}"
