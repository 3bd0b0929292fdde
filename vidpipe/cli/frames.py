"""`vidpipe frames`: the frames, times and tokens that a model would get of one file; a contact sheet as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from vidpipe.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vidpipe.cli.documents import FramesDocument
    from vidpipe.job.preview import Preview

T = TypeVar("T")
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
    if file.is_dir() and frames_fps is None:
        raise RecipeError(f"{file} is a folder. Of pictures that make a video, say how many a second: --frames-fps 2")
    raw = {"manifest": str(file), "model": {"path": model}}
    recipe = build_recipe(
        raw, assignments or [], text="", folder=Path.cwd(), name=file.stem, source="command line"
    ).recipe
    family, processor = family_and_processor(model, recipe.model.family, Path.cwd())
    shown = preview(file, recipe, family, processor, frames_fps)
    document = _document(shown, file, output, recipe.pruning.model_dump() if recipe.pruning else None)
    if output is not None:
        _write_sheet(shown, document, output)
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
        file_frames=shown.file_frames,
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


def _write_sheet(shown: Preview, document: FramesDocument, output: Path) -> None:
    from vidpipe.errors import RecipeError
    from vidpipe.report.sheet import Group, Tile, draw_sheet

    seen, each = shown.seen.videos[0], shown.frames_per_text
    kept = None if document.pruning is None else document.pruning.kept_per_step
    tiles = [
        Tile(shown.pixels[number], [f"frame {index} at {time_s:.3f} s"], shown.kept_in_frame(number))
        for number, (index, time_s) in enumerate(zip(seen.indices, seen.times_s, strict=True))
    ]
    groups = []
    for number, text in enumerate(shown.time_texts):
        some = tiles[number * each : (number + 1) * each]
        groups.append(Group(f"{text}{_kept_of(document, kept, number)}", some))
    heading = [f"{Path(document.file).name} as {document.family} sees it", *_facts(document)]
    if document.pruning is not None:
        heading.append(f"red: dropped; {document.pruning.scores}")
    try:
        draw_sheet(heading, groups).save(output)
    except (OSError, ValueError) as error:
        raise RecipeError(
            f"-o {output}: cannot be written: {error}. Give a path that ends in .png, in a folder that exists."
        ) from None


def _facts(document: FramesDocument) -> list[str]:
    """What holds for all frames, for the sheet's heading and the terminal."""
    (from_w, from_h), (to_w, to_h), tokens = document.source_wh, document.size_wh, document.vision_tokens
    size = f"{from_w}x{from_h}" + ("" if document.source_wh == document.size_wh else f" -> {to_w}x{to_h}")
    facts = [
        f"{document.frames} of {counted(document.file_frames, 'frame')}",
        f"size {size}",
        f"grid {'x'.join(map(str, document.grid_thw))} patches",
        f"{tokens.asked} vision tokens",
    ]
    if document.pruning is not None:
        facts[-1] += f", {tokens.kept} kept ({document.pruning.method} {document.pruning.rate:g})"
    asked = ", ".join(f"{key} {value}" for key, value in document.sampling.items() if value is not None)
    lines = [", ".join(facts), f"sampling: {asked}"]
    if document.frames_missing:
        lines.append(f"{counted(document.frames_missing, 'frame is', 'frames are')} missing in the file")
    return lines + [f"note: {note}" for note in document.notes]


def _kept_of(document: FramesDocument, kept: list[int] | None, text: int) -> str:
    """Of the frames that a text stands for: how many of their tokens pruning keeps."""
    if kept is None or len(kept) != len(document.time_texts):
        return ""
    return f"  {kept[text]} of {document.vision_tokens.asked // len(kept)} tokens"


def _print(document: FramesDocument) -> None:
    typer.echo(f"{document.file} as {document.family} sees it")
    for line in _facts(document):
        typer.echo(line)
    per_text = -(-document.frames // len(document.time_texts))
    kept = None if document.pruning is None else document.pruning.kept_per_step
    named = [
        (", ".join(map(str, indices)), ", ".join(f"{time_s:.3f}" for time_s in times_s), text)
        for indices, times_s, text in zip(
            _batched(document.indices, per_text), _batched(document.times_s, per_text), document.time_texts, strict=True
        )
    ]
    wide = [max(len(line[column]) for line in named) for column in (0, 1, 2)]
    heads = ("frame" if per_text == 1 else "frames", "s in file")
    wide = [max(wide[0], len(heads[0])), max(wide[1], len(heads[1])), wide[2]]
    drawn = "" if document.times_in == "prompt" else " (drawn)"
    typer.echo(f"{heads[0]:>{wide[0]}}  {heads[1]:>{wide[1]}}  read as{drawn}")
    for number, (indices, times_s, text) in enumerate(named):
        tokens = _kept_of(document, kept, number)
        typer.echo(f"{indices:>{wide[0]}}  {times_s:>{wide[1]}}  {text:{wide[2]}}{tokens}".rstrip())
    pieces = (piece.text if piece.times in (None, 1) else f"{piece.text}*{piece.times}" for piece in document.prompt)
    typer.echo(f"prompt: {''.join(pieces)}")
    if document.pruning is not None:
        typer.echo(f"{document.pruning.method}: {document.pruning.scores}")
    if document.sheet is not None:
        typer.echo(f"sheet: {document.sheet}")


def _batched(values: Sequence[T], count: int) -> list[Sequence[T]]:
    """`values` in pieces of `count`, the last one perhaps shorter."""
    return [values[first : first + count] for first in range(0, len(values), count)]
