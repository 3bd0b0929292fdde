"""Rows grouped into clips: what is decoded once, for all the questions about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from vidpipe.errors import CapabilityError, RowError
from vidpipe.manifest.row import BadRow, Fault, Row
from vidpipe.models.family import Family
from vidpipe.plan.prompts import PromptTemplate, messages_for
from vidpipe.recipe.resolve import RowSettings, resolve_row
from vidpipe.recipe.schema import Recipe, Sampling

SETTINGS_KEPT = 1024
"""Different settings of rows that are remembered, for the rows to come."""


@dataclass(frozen=True)
class PlannedRow:
    """A row with everything resolved that needs no media."""

    row: Row
    settings: RowSettings
    messages: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Clip:
    """The same media under one sampling, and the rows that ask about them: nearly always one part of one file.

    A row without media is a clip of its own: there is nothing to share.
    """

    rows: tuple[PlannedRow, ...]

    @property
    def first(self) -> PlannedRow:
        """All rows of a clip agree on media, windows and sampling: any of them tells."""
        return self.rows[0]

    @property
    def name(self) -> str:
        """The clip as messages name it."""
        row = self.first.row
        return ", ".join(medium.name for medium in row.media) or f"row {row.id!r}"


@dataclass(frozen=True)
class Plan:
    """What a run will do."""

    clips: tuple[Clip, ...]
    bad_rows: tuple[BadRow, ...]
    """Rows that cannot run; they only need their output row."""


def make_plan(rows: Iterable[Row | BadRow], recipe: Recipe, family: Family, processor: Mapping[str, Any]) -> Plan:
    """Rows grouped into clips, clips in order of their first row.

    Args:
        rows: Rows of the manifest.
        recipe: The run's recipe.
        family: The model's family; fills in sampling defaults.
        processor: The checkpoint's video processor settings.
    """
    resolver = RowResolver(recipe, family, processor)
    groups: dict[tuple[Any, ...], list[PlannedRow]] = {}
    bad: list[BadRow] = []
    for row in rows:
        planned = resolver.resolve(row)
        if isinstance(planned, BadRow):
            bad.append(planned)
        else:
            groups.setdefault(clip_key(planned), []).append(planned)
    return Plan(tuple(Clip(tuple(members)) for members in groups.values()), tuple(bad))


class RowResolver:
    """Gives rows their settings and messages; rows that say the same of their settings share one `RowSettings`.

    Args:
        recipe: The run's recipe.
        family: The model's family; fills in sampling defaults.
        processor: The checkpoint's video processor settings.
    """

    def __init__(self, recipe: Recipe, family: Family, processor: Mapping[str, Any]) -> None:
        self._recipe, self._family, self._processor = recipe, family, processor
        self._template = PromptTemplate(recipe.prompt, recipe.template)
        self._known: dict[str, RowSettings] = {}

    def resolve(self, row: Row | BadRow) -> PlannedRow | BadRow:
        """What is to be asked, or why it cannot be."""
        if isinstance(row, BadRow):
            return row
        try:
            settings = self._settings(row)
            refuse_impossible_media(row, self._family, self._recipe, settings.sampling)
            messages = messages_for(row, self._template, self._recipe.system)
        except RowError as error:
            return BadRow(row.index, row.id, Fault(error.kind, str(error), row.line, row.id), row.values)
        except CapabilityError as error:  # the recipe's own sampling was found good; the row's columns ask for this
            fault = Fault("bad_value", f"row {row.id!r}: {error}", row.line, row.id)
            return BadRow(row.index, row.id, fault, row.values)
        return PlannedRow(row, settings, messages)

    def _settings(self, row: Row) -> RowSettings:
        own = "" if not (row.sampling or row.generation) else repr((row.sampling, row.generation))
        alike = not self._recipe.overrides
        if alike and (known := self._known.get(own)) is not None:
            return known
        settings = resolve_row(self._recipe, row.values, row.sampling, row.generation)
        settings = replace(settings, sampling=self._family.complete(settings.sampling, self._processor))
        if alike and len(self._known) < SETTINGS_KEPT:
            self._known[own] = settings
        return settings


def refuse_impossible_media(row: Row, family: Family, recipe: Recipe, sampling: Sampling) -> None:
    """Refuse media that the family does not take; other rows are not touched.

    Args:
        row: The row.
        family: The model's family.
        recipe: The run's recipe.
        sampling: The row's.

    Raises:
        RowError: `bad_value`.
    """
    abilities = family.abilities
    videos = sum(medium.modality == "video" for medium in row.media)
    if videos < len(row.media) and abilities.images is None:
        raise RowError("bad_value", f"row {row.id!r}: {family.name} takes no images here.")
    if 0 < videos < len(row.media) and abilities.images and not abilities.images.beside_videos:
        raise RowError(
            "bad_value",
            f"row {row.id!r}: {family.name} puts images and frames through one processor, which would show the images "
            "at the frames' size. Put images and videos into rows of their own.",
        )
    if videos > 1 and not abilities.several_videos:
        raise RowError("bad_value", f"row {row.id!r}: {family.name} takes one video a row here, found {videos}.")
    if sampling.video_backend == "codec" and recipe.sampling.video_backend != "codec":
        raise RowError(
            "bad_value",
            f"row {row.id!r}: video_backend codec, but the engine is started for frames. Set it in the recipe, and "
            "frames for the other rows.",
        )
    if sampling.video_backend == "codec" and len(row.media) > 1:
        raise RowError(
            "bad_value",
            f"row {row.id!r}: the codec takes one video a row and nothing beside it (vLLM miscounts the canvases of "
            f"two), found {len(row.media)} media.",
        )
    if sampling.video_backend == "codec" and any(medium.kind == "frames" for medium in row.media):
        raise RowError(
            "bad_value", f"row {row.id!r}: the codec reads a video file's own stream, and pictures have none."
        )
    if row.subtitles and not abilities.text_between_frames:
        raise RowError(
            "bad_value",
            f"row {row.id!r}: {family.name} has no place for subtitles between frames. Put their text into the prompt.",
        )
    if row.subtitles and sampling.video_backend == "codec":
        raise RowError("bad_value", f"row {row.id!r}: the codec's canvases have no place for subtitles between them.")
    if row.subtitles and recipe.pruning is not None:
        raise RowError("bad_value", f"row {row.id!r}: with pruning there is no place for subtitles between frames.")


def clip_key(planned: PlannedRow) -> tuple[Any, ...]:
    """Equal for the rows of one clip."""
    row = planned.row
    if not row.media:
        return ("text", row.index)
    subtitles = (row.subtitles, row.subtitle_offset_s)
    return (row.media, row.timestamps_from, subtitles, planned.settings.sampling)
