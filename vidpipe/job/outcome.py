"""Output rows from what became of requests: answered, refused, unreadable."""

from __future__ import annotations

from vidpipe import __version__
from vidpipe.engine.interface import Reply
from vidpipe.errors import EngineError, MediaError, RowError
from vidpipe.job.prepare import SeenClip
from vidpipe.job.reply import judge
from vidpipe.job.settings import ResolvedRow
from vidpipe.manifest.row import BadRow
from vidpipe.plan.clips import PlannedRow
from vidpipe.record.row import MediaRecord, OutputRow, ResolvedRecord, Seconds, Status, VisionTokens
from vidpipe.wording import counted


def answered(
    planned: PlannedRow, seen: SeenClip, resolved: ResolvedRow, reply: Reply, prepare_s: float, attempt: int
) -> OutputRow:
    """The row of a request that the engine has finished.

    An empty text is an answer; no completion at all is not.
    """
    if reply.text is None:
        error = RowError("no_completion", "the engine ended the request without a completion")
        return _row(planned, resolved, error, seen, prepare_s, reply, attempt)
    return _row(planned, resolved, None, seen, prepare_s, reply, attempt)


def refused(planned: PlannedRow, seen: SeenClip, resolved: ResolvedRow, error: RowError) -> OutputRow:
    """The row of a request that the engine would not take."""
    return _row(planned, resolved, error, seen)


def unreadable(planned: PlannedRow, resolved: ResolvedRow, error: MediaError) -> OutputRow:
    """The row of a request whose clip cannot be shown."""
    return _row(planned, resolved, error)


def poisoned(planned: PlannedRow, resolved: ResolvedRow, deaths: int) -> OutputRow:
    """The row of a request during which processes died, again and again."""
    message = (
        f"{counted(deaths, 'process', 'processes')} died while this row ran; it is not tried again. "
        "Their engine logs say how."
    )
    return _row(planned, resolved, EngineError("poison_row", message), attempt=deaths)


def not_run(bad: BadRow) -> OutputRow:
    """The row of a manifest row that cannot run."""
    return OutputRow(
        id=bad.id,
        clip_id=None,
        status="row_error",
        error_kind=bad.fault.kind,
        error=bad.fault.message,
        manifest=bad.values,
    )


def _row(
    planned: PlannedRow,
    resolved: ResolvedRow,
    error: RowError | MediaError | EngineError | None,
    seen: SeenClip | None = None,
    prepare_s: float | None = None,
    reply: Reply | None = None,
    attempt: int = 1,
) -> OutputRow:
    row = planned.row
    media = seen.media if seen else MediaRecord("error") if isinstance(error, MediaError) else None
    return OutputRow(
        id=row.id,
        clip_id=row.clip_id or _clip_id(planned),
        status=_status(error, reply),
        error_kind=error.kind if error else None,
        error=str(error) if error else None,
        media=media,
        prompt_sha=reply.prompt_sha if reply else None,
        text=reply.text if reply else None,
        finish_reason=reply.finish_reason if reply else None,
        reply=judge(reply.text, planned.settings.generation) if reply and reply.text is not None else None,
        tokens_in=reply.tokens_in if reply else None,
        tokens_out=reply.tokens_out if reply else None,
        frames=seen.videos[0] if seen and seen.videos else None,
        more_frames=list(seen.videos[1:]) if seen else [],
        images=list(seen.images) if seen else [],
        vision_tokens=VisionTokens(seen.vision_tokens, reply.vision_tokens_kept if reply else None) if seen else None,
        resolved=ResolvedRecord(resolved.sha, resolved.model, resolved.engine, __version__),
        seconds=Seconds(
            seen.decode_s if seen else None,
            prepare_s,
            reply.queue_s if reply else None,
            reply.engine_s if reply else None,
        ),
        attempt=attempt,
        manifest=row.values,
    )


def _status(error: RowError | MediaError | EngineError | None, reply: Reply | None) -> Status:
    if isinstance(error, MediaError):
        return "media_error"
    if isinstance(error, EngineError):
        return "engine_error"
    if error is not None:
        return "row_error"
    return "length" if reply and reply.finish_reason == "length" else "ok"


def _clip_id(planned: PlannedRow) -> str | None:
    """The media as the manifest names them; a window as a media fragment behind its video. None without media."""
    return " + ".join(map(str, planned.row.media)) or None
