"""`vidpipe report`: everything that a run directory and the run's files tell, brought together for one page."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from vidpipe import __version__
from vidpipe.benchmarks.load_parquet import read_results
from vidpipe.engine.retold import Teller
from vidpipe.errors import CapabilityError, ManifestError, MediaError, RecipeError
from vidpipe.job import host
from vidpipe.job.media_again import MediumAgain, show_again
from vidpipe.job.past import Past, reopen
from vidpipe.job.report_facts import compared, distributions, facts, failures, headline, processes, speed
from vidpipe.job.report_rows import in_order_of_need, pictures_of, shown_clip, shown_row, told_prompt
from vidpipe.job.report_scores import Found, scores_of
from vidpipe.plan.clips import Clip
from vidpipe.record.merge import is_complete, merge
from vidpipe.record.row import FramesRecord, ImageRecord
from vidpipe.record.run_dir import RunDir
from vidpipe.record.shards import Shards, read_shards
from vidpipe.report.page import Page, render
from vidpipe.video.channel import JobFailedError
from vidpipe.video.pool import ClipPool

PAGE_BYTES = 25_000_000
ROW_BYTES = 12_000_000
"""Of them for rows; what is left, but for a margin, is for clips and pictures."""
MARGIN_BYTES = 500_000
CLIP_LIMIT_S = 600.0
FULL = "This page is full; a report of fewer rows (--rows) has room for more."


@dataclass(frozen=True)
class Report:
    """What was written."""

    path: Path
    rows: int
    """Rows on the page."""
    of_rows: int
    """Rows that are recorded."""
    clips: int
    """Clips with pictures."""
    bytes: int
    notes: tuple[str, ...]


def write_report(folder: Path, output: Path, most_rows: int, advice: Mapping[str, str]) -> Report:
    """Write the page of the run in `folder`; at any time, also of one that goes on.

    Args:
        folder: The run directory.
        output: The file.
        most_rows: Rows on the page; failed ones and wrong answers first.
        advice: What to do about each kind of error.

    Raises:
        RecipeError: `folder` is no run directory, or `output` cannot be written.
    """
    run_dir = RunDir(folder)
    run = run_dir.read_run()
    if run is None:
        raise RecipeError(f"{folder} is not a run directory (it has no run.json). Type the -o of a vidpipe run.")
    shards = read_shards(run_dir)
    with _results(run_dir, shards) as results:
        found = _scored(results, folder, shards.rows)
        table = pq.read_table(results, columns=["id", "status"]).to_pylist()
        places = in_order_of_need(table, found.judged)[:most_rows]
        rows = _read(results, {table[place]["id"] for place in places})
        wanted = [rows[table[place]["id"]] for place in places]
        columns = list(run["manifest"]["columns"])
        shown = _within(wanted, [shown_row(row, found.judged.get(row["id"]), columns) for row in wanted])
        rows = {row["id"]: rows[row["id"]] for row in shown}
        past = reopen(run, rows.keys(), shards.sha)
        clips, pictures = _clips(past, shown, rows)
        with_media, with_pictures = sum(bool(clip["media"]) for clip in clips), sum(map(bool, pictures))
        notes = [*past.notes]
        if len(shown) < len(table):
            notes.append(
                f"{len(shown):,} of {len(table):,} rows are on this page: failed ones first, then wrong answers, then "
                "the others in the manifest's order."
            )
        if with_pictures < with_media:
            notes.append(f"{with_pictures:,} of {with_media:,} clips have pictures here; the others say why not.")
        page = Page(
            title=folder.resolve().name,
            description=str(run.get("description") or "").strip(),
            made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC by vidpipe {__version__}",
            partial=len(table) < shards.rows,
            headline=headline(results, shards.rows, found),
            scores=found.tables,
            no_scores=found.none_because,
            speed=speed(folder, results),
            processes=processes(folder),
            compared=compared(run_dir, results, shards.rows),
            distributions=distributions(results),
            failures=failures(results, advice),
            facts=facts(run, folder),
            recipe=run_dir.recipe_file.read_text(encoding="utf-8") if run_dir.recipe_file.exists() else "",
            notes=notes,
            rows=shown,
            clips=clips,
            pictures=pictures,
        )
    content = render(page).encode("utf-8", "replace")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_bytes(content)
    except OSError as error:
        raise RecipeError(f"-o {output}: cannot be written: {error}.") from None
    return Report(output, len(shown), len(table), with_pictures, len(content), tuple(notes))


@contextmanager
def _results(run_dir: RunDir, shards: Shards) -> Iterator[Path]:
    """The results file of a run; of one that goes on, of what there is."""
    if is_complete(run_dir.results, shards.rows):
        yield run_dir.results
        return
    with tempfile.TemporaryDirectory() as folder:
        yield merge([run_dir.path], Path(folder) / "rows.parquet").path


def _scored(results: Path, folder: Path, expected: int) -> Found:
    try:
        return scores_of(read_results(results, str(folder), expected))
    except (ManifestError, RecipeError) as error:
        return Found((), {}, f"Not scored: {error}")


def _read(results: Path, ids: set[str]) -> dict[str, dict[str, Any]]:
    found = {}
    with pq.ParquetFile(results) as file:
        for batch in file.iter_batches():
            mask = pa.array([row_id in ids for row_id in batch["id"].to_pylist()])
            for row in batch.filter(mask).to_pylist():
                found[row["id"]] = row
    return found


def _within(wanted: Sequence[Mapping[str, Any]], shown: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first rows that fit into their share of the page."""
    left = ROW_BYTES
    for place, row in enumerate(shown):
        left -= _size(row)
        if left < 0:
            return list(shown[:place])
    return list(shown)


def _clips(
    past: Past, shown: Sequence[dict[str, Any]], rows: Mapping[str, Mapping[str, Any]]
) -> tuple[list[dict[str, Any]], list[list[str]]]:
    """Fill in the clips and prompts of the shown rows; returns the clips, and the pictures of each."""
    clips: list[dict[str, Any]] = []
    pictures: list[list[str]] = []
    by_id = {row["id"]: row for row in shown}
    left = PAGE_BYTES - MARGIN_BYTES - sum(map(_size, shown))
    clip_of = {planned.row.id: place for place, clip in enumerate(past.clips) for planned in clip.rows}
    order = dict.fromkeys(clip_of[row["id"]] for row in shown if row["id"] in clip_of)
    teller = _teller(past)
    for clip, decoded in _media(past, [past.clips[place] for place in order], rows):
        known = [(place, p.row.id) for place, p in enumerate(clip.rows) if p.row.id in by_id]
        recorded = next((rows[row_id] for _, row_id in known if _has_media(rows[row_id])), None)
        if recorded is None and clip.first.row.media:
            continue
        media = decoded
        images = [] if isinstance(media, str) else pictures_of(media)
        made = shown_clip(clip.name, recorded or rows[known[0][1]], media)
        if _size(made) + sum(map(len, images)) > left:
            media, images = FULL, []
            made = shown_clip(clip.name, recorded or rows[known[0][1]], media)
        left -= _size(made) + sum(map(len, images))
        for place, row_id in known:
            row = by_id[row_id]
            row["clip"] = len(clips)
            if isinstance(media, str):
                row["prompt_note"] = f"The prompt is not shown: {media}"
                continue
            assert past.named is not None
            policy = past.named.recipe.special_tokens
            row["prompt"], row["prompt_note"] = told_prompt(teller, clip, place, media, rows[row_id], policy)
            left -= _size(row["prompt"])
            if left < 0:
                row["prompt"], row["prompt_note"] = None, f"The prompt is not shown: {FULL}"
        clips.append(made)
        pictures.append(images)
    return clips, pictures


def _size(value: Any) -> int:
    """Bytes that a value takes on the page, nearly."""
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def _has_media(row: Mapping[str, Any]) -> bool:
    return bool(row["frames"] or row["more_frames"] or row["images"])


def _teller(past: Past) -> Teller | None:
    try:
        return None if past.named is None else Teller(past.named.checkpoint.location)
    except CapabilityError:
        return None


def _media(
    past: Past, order: Sequence[Clip], rows: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[Clip, list[MediumAgain] | str]]:
    """Each clip with its media decoded again, or why it has none, in order."""
    if past.named is None or not order:
        return
    workers = max(1, host.cores() // 2)
    ahead = 2 * workers
    with ClipPool(workers) as pool:
        jobs: list[Future[list[MediumAgain]] | None] = []

        def submit(clip: Clip) -> Future[list[MediumAgain]] | None:
            row = next((rows[p.row.id] for p in clip.rows if p.row.id in rows and _has_media(rows[p.row.id])), None)
            if row is None:
                return None
            videos = [FramesRecord(**frames) for frames in (row["frames"], *row["more_frames"]) if frames]
            images = [ImageRecord(**image) for image in row["images"]]
            assert past.named is not None
            return pool.submit(
                show_again, past.named.reader, clip, videos, images, name=clip.name, time_limit_s=CLIP_LIMIT_S
            )

        for place, clip in enumerate(order):
            while len(jobs) < min(len(order), place + ahead):
                jobs.append(submit(order[len(jobs)]))
            job, jobs[place] = jobs[place], None
            try:
                yield clip, [] if job is None else job.result()
            except (MediaError, JobFailedError, CancelledError) as error:
                yield clip, str(error)
