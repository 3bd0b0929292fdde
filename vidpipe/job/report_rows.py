"""The rows of a report: which ones, and for each what the page shows of it.

A row is a plain dict, for it becomes JSON that `report/page.js` reads:

```
id, clip (place among the clips, or null), name (clip id), status, kind, error, question, options, text, answer,
mark (right | part | wrong | null), score (0 to 1 or null), tokens_in, tokens_out, vision [asked, kept], frames,
seconds {stage: s}, flags, attempt, prompt (texts and places of media), prompt_note, columns {name: text}
clip: name, media [medium], why (no pictures) ; medium: name, kind, size, source, frames, times, texts, spans, shown,
notes
```
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vidpipe.engine.retold import Teller
from vidpipe.errors import CapabilityError, RowError
from vidpipe.job.media_again import MOST_PICTURES, MediumAgain
from vidpipe.job.preview import PIXEL_SCORES
from vidpipe.plan.clips import Clip
from vidpipe.record.schema import output_name

LONGEST_TEXT = 20_000
"""Characters of one text on the page; the whole stands in the results."""
SHOWN_APART = ("question", "prompt", "options", "answer", "id", "clip_id", "video", "messages")


@dataclass(frozen=True)
class Judged:
    """What a row scored."""

    score: float
    """From 0 to 1."""
    profile: str

    @property
    def mark(self) -> str:
        """In a word."""
        return "right" if self.score >= 1 else "wrong" if self.score <= 0 else "part"


def in_order_of_need(rows: Sequence[Mapping[str, Any]], judged: Mapping[str, Judged]) -> list[int]:
    """Places of rows: failed ones first, then wrong answers, then the others, each in the manifest's order."""

    def need(row: Mapping[str, Any]) -> int:
        if row["status"].endswith("_error"):
            return 0
        found = judged.get(row["id"])
        if row["status"] == "length" or (found is not None and found.mark != "right"):
            return 1
        return 2

    return sorted(range(len(rows)), key=lambda place: need(rows[place]))


def shown_row(row: Mapping[str, Any], judged: Judged | None, columns: Sequence[str]) -> dict[str, Any]:
    """What the page shows of a recorded row, but for its prompt and clip."""
    vision, reply, frames = row["vision_tokens"], row["reply"], row["frames"]
    own = {name: output_name(name) for name in columns}
    answer = _plain(row.get(own.get("answer", "")))
    return {
        "id": row["id"],
        "clip": None,
        "name": row["clip_id"] or "",
        "status": row["status"],
        "kind": row["error_kind"],
        "error": _cut(row["error"]),
        "question": _cut(_plain(row.get(own.get("question", ""))) or _plain(row.get(own.get("prompt", ""))) or ""),
        "options": _listed(row.get(own.get("options", ""))),
        "text": _cut(row["text"]),
        "answer": _cut(answer),
        "mark": judged.mark if judged else None,
        "score": judged.score if judged else None,
        "profile": judged.profile if judged else None,
        "tokens_in": row["tokens_in"],
        "tokens_out": row["tokens_out"],
        "vision": [vision["asked"], vision["kept"]] if vision else None,
        "frames": frames["count"] if frames else None,
        "seconds": {stage: round(s, 3) for stage, s in row["seconds"].items() if s is not None},
        "flags": (reply or {}).get("flags") or [],
        "finish": row["finish_reason"],
        "attempt": row["attempt"],
        "prompt": None,
        "prompt_note": "The prompt is not shown: the manifest, the recipe or the checkpoint is not what it was.",
        "columns": {
            name: _cut(_plain(row[own[name]])) for name in columns if name not in SHOWN_APART and row[own[name]]
        },
    }


def told_prompt(
    teller: Teller | None, clip: Clip, place: int, media: Sequence[MediumAgain], row: Mapping[str, Any], policy: Any
) -> tuple[list[str | int] | None, str]:
    """The prompt of a row of a clip, in texts and places of media, and how sure it is.

    Args:
        teller: Of the checkpoint; None if it cannot tell.
        clip: The clip as planned.
        place: Of the row among its rows.
        media: As the model saw them.
        row: As recorded.
        policy: The recipe's `special_tokens`.
    """
    if teller is None:
        return None, "The checkpoint's tokenizer cannot be read here, so the prompt is not shown."
    try:
        told = teller.tell(clip.rows[place].messages, [medium.told for medium in media], policy)
    except (RowError, CapabilityError) as error:
        return None, f"The prompt cannot be made again: {error}"
    parts: list[str | int] = [_cut(part) or "" if isinstance(part, str) else part for part in teller.texts(told)]
    if row["prompt_sha"] is None:
        return parts, "Rendered again from the recorded frames; the row got no answer, so no hash was recorded."
    if told.sha == row["prompt_sha"]:
        return parts, f"Rendered again from the recorded frames: all {told.tokens} tokens equal those of the run."
    return parts, "Rendered again from the recorded frames, but its hash is not the recorded one: take it as a sketch."


def shown_clip(name: str, row: Mapping[str, Any], media: Sequence[MediumAgain] | str | None) -> dict[str, Any]:
    """What the page shows of a clip: what a row records of it, and its media or the reason why they are not shown."""
    recorded = [frames for frames in (row["frames"], *row["more_frames"]) if frames]
    if not isinstance(media, Sequence) or isinstance(media, str):
        shown = [
            {"name": name, "kind": "video", "size": f["size_wh"], "frames": f["indices"], "times": _times(f["times_s"])}
            for f in recorded
        ]
        return {"name": name, "media": shown, "why": media}
    return {"name": name, "media": [_shown_medium(medium) for medium in media], "why": None}


def pictures_of(media: Sequence[MediumAgain]) -> list[str]:
    """The pictures of a clip as data URIs, one medium after the other."""
    return [
        "data:image/webp;base64," + base64.b64encode(content).decode()
        for medium in media
        for _, content in medium.pictures
    ]


def _shown_medium(medium: MediumAgain) -> dict[str, Any]:
    return {
        "name": medium.name,
        "kind": "video" if medium.indices else "image",
        "size": list(medium.size_wh),
        "source": list(medium.source_wh),
        "frames": list(medium.indices),
        "times": _times(medium.times_s),
        "texts": list(medium.time_texts),
        "spans": [[span.text, span.times] for span in medium.told.spans],
        "shown": [place for place, _ in medium.pictures],
        "notes": list(_notes(medium)),
    }


def _notes(medium: MediumAgain) -> Iterator[str]:
    if medium.same:
        yield "Decoded again: every byte equals what the model was shown."
    else:
        yield "Decoded again, but the bytes are not those that the row records: the file or the decoder has changed."
    if len(medium.indices) > MOST_PICTURES:
        yield f"{MOST_PICTURES} of {len(medium.indices)} frames have a picture here."
    if medium.shaded:
        yield f"Shaded: tokens that pruning drops; {PIXEL_SCORES}."


def _times(times_s: Sequence[float]) -> list[float]:
    return [round(time_s, 4) for time_s in times_s]


def _cut(text: str | None) -> str | None:
    if text is None or len(text) <= LONGEST_TEXT:
        return text
    return f"{text[:LONGEST_TEXT]} … ({len(text) - LONGEST_TEXT} characters more in results.parquet)"


def _plain(cell: Any) -> str | None:
    """A cell as text; JSON text of a text without its quotes."""
    if not isinstance(cell, str):
        return None if cell is None else str(cell)
    try:
        value = json.loads(cell)
    except ValueError:
        return cell
    return value if isinstance(value, str) else cell


def _listed(cell: Any) -> list[str]:
    try:
        values = json.loads(cell or "[]")
    except ValueError:
        return [cell]
    return [str(_cut(str(value))) for value in values] if isinstance(values, list) else [str(values)]
