"""`vidpipe frames`: the frames, times and tokens that a model would get of one file; a contact sheet as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from vidpipe.cli.documents import FramesDocument
    from vidpipe.job.preview import Preview

SECTIONS = ("sampling", "pruning", "model.family")


def frames(
    file: Annotated[Path, typer.Argument(metavar="FILE|FOLDER", help="A video file, or a folder of pictures.")],
    model: Annotated[str, typer.Option("--model", metavar="M", help="A family's name, or a checkpoint.")],
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="sampling.* and pruning.* as in a recipe.")
    ] = None,
    frames_fps: Annotated[
        float | None, typer.Option("--frames-fps", min=0.001, help="A folder's pictures a second.")
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="SHEET.png", help="Contact sheet.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Show what the model would see: which frames at which times, how large, and the prompt around them."""
    from vidpipe.errors import RecipeError
    from vidpipe.job.preview import family_and_processor, preview
    from vidpipe.recipe.load import build_recipe

    for assignment in assignments or []:
        if not assignment.startswith(tuple(f"{section}{mark}" for section in SECTIONS for mark in ".=")):
            raise RecipeError(f"--set {assignment}: here only {', '.join(SECTIONS)} change anything. Remove it.")
    raw = {"manifest": str(file), "model": {"path": model}}
    recipe = build_recipe(
        raw, assignments or [], text="", folder=Path.cwd(), name=file.stem, source="command line"
    ).recipe
    family, processor = family_and_processor(model, recipe.model.family, Path.cwd())
    shown = preview(file, recipe, family, processor, frames_fps)
    if output is not None:
        _write_sheet(shown, file, output)
    document = _document(shown, file, output, recipe.pruning.model_dump() if recipe.pruning else None)
    if as_json:
        typer.echo(document.model_dump_json())
    else:
        _print(document)


def _document(shown: Preview, file: Path, sheet: Path | None, pruning: dict[str, object] | None) -> FramesDocument:
    from vidpipe.cli.documents import FramesDocument, PromptPiece, PrunedDocument, TokensDocument
    from vidpipe.job.preview import PIXEL_SCORES

    (seen,), media = shown.seen.videos, shown.seen.media
    assert media is not None
    pruned = None
    if pruning is not None and shown.kept_cells is not None:
        kept = shown.kept_cells.sum(axis=(1, 2)).tolist()
        pruned = PrunedDocument.model_validate({**pruning, "kept_per_step": kept, "scores": PIXEL_SCORES})
    height, width = shown.pixels.shape[1:3]
    return FramesDocument(
        file=str(file),
        family=shown.family.name,
        sampling=shown.sampling.model_dump(),
        outcome=media.outcome,
        frames_missing=media.frames_missing,
        notes=media.notes,
        frames=seen.count,
        indices=seen.indices,
        times_s=seen.times_s,
        told_times_s=shown.told_s,
        times_in=shown.family.times_in,
        time_texts=shown.time_texts,
        source_wh=(width, height),
        size_wh=shown.layout.size_wh,
        grid_thw=shown.layout.grid_thw,
        vision_tokens=TokensDocument(asked=shown.tokens.asked, kept=shown.tokens.kept),
        prompt=[PromptPiece(text=span.text, times=span.times) for span in shown.prompt],
        pruning=pruned,
        sheet=None if sheet is None else str(sheet),
    )


def _write_sheet(shown: Preview, file: Path, output: Path) -> None:
    from vidpipe.errors import RecipeError
    from vidpipe.job.preview import PIXEL_SCORES
    from vidpipe.report.sheet import Tile, draw_sheet

    seen, (width, height) = shown.seen.videos[0], shown.layout.size_wh
    heading = [
        f"{file.name} as {shown.family.name} sees it: {seen.count} frames of {width}x{height}, "
        f"{shown.tokens.kept} of {shown.tokens.asked} vision tokens"
    ]
    if shown.kept_cells is not None:
        heading.append(f"shaded: dropped ({PIXEL_SCORES})")
    tiles = [
        Tile(
            shown.pixels[number],
            [f"frame {index}  {time_s:.3f} s", shown.time_texts[number // shown.frames_per_text]],
            shown.kept_in_frame(number),
        )
        for number, (index, time_s) in enumerate(zip(seen.indices, seen.times_s, strict=True))
    ]
    try:
        draw_sheet(heading, tiles).save(output)
    except (OSError, ValueError) as error:
        raise RecipeError(f"-o {output}: cannot be written: {error}. Give a path that ends in .png.") from None


def _print(document: FramesDocument) -> None:
    width, height = document.size_wh
    tokens = document.vision_tokens
    typer.echo(
        f"{document.file}: {document.frames} frames of {document.source_wh[0]}x{document.source_wh[1]}, shown to "
        f"{document.family} at {width}x{height}; grid {'x'.join(map(str, document.grid_thw))}, "
        f"{tokens.kept} of {tokens.asked} vision tokens"
    )
    asked = ", ".join(f"{key} {value}" for key, value in document.sampling.items() if value is not None)
    typer.echo(f"sampling: {asked}")
    for note in document.notes:
        typer.echo(f"note: {note}")
    per_text = -(-document.frames // len(document.time_texts))
    typer.echo(f"{'frame':>7}  {'time in file':>12}  read as{'' if document.times_in == 'prompt' else ' (drawn)'}")
    for number, (index, time_s) in enumerate(zip(document.indices, document.times_s, strict=True)):
        text = document.time_texts[number // per_text] if number % per_text == 0 else ""
        typer.echo(f"{index:>7}  {time_s:>10.3f} s  {text}".rstrip())
    pieces = (piece.text if piece.times in (None, 1) else f"{piece.text}*{piece.times}" for piece in document.prompt)
    typer.echo(f"prompt: {''.join(pieces)}")
    if document.pruning is not None:
        typer.echo(
            f"{document.pruning.method}: kept per step {document.pruning.kept_per_step}; {document.pruning.scores}"
        )
    if document.sheet is not None:
        typer.echo(f"sheet: {document.sheet}")
