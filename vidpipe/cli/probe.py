"""`vidpipe probe`: what is in a video file, as vidpipe will show it to a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vidpipe.wording import counted

if TYPE_CHECKING:
    from concurrent.futures import Future

    from vidpipe.cli.documents import ProbeDocument
    from vidpipe.video.pool import ClipPool
    from vidpipe.video.probe import Probe

_TIME_LIMIT_S = 600.0


def probe(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Video files or file:// URIs.")],
    timeline: Annotated[bool, typer.Option("--timeline", help="Also when each frame is shown.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Show stream, size, frames, times and faults of video files.

    With --json: an object for one file, a list for several. A file that cannot be shown has the
    outcome `error` and its kind; the exit code is 0 all the same, for that is the answer.
    """
    import json

    from vidpipe.job import host
    from vidpipe.video.pool import ClipPool

    # In children: a file on which a decoder crashes or hangs is an answer about that file.
    with ClipPool(min(len(files), host.cores())) as pool:
        documents = [_document(file, found, timeline) for file, found in _start(pool, files)]
    if as_json:
        # `times_s` stands only where it was asked for; the other keys are always there.
        drop = None if timeline else {"times_s"}
        dumped = [document.model_dump(mode="json", exclude=drop) for document in documents]
        typer.echo(json.dumps(dumped[0] if len(dumped) == 1 else dumped, ensure_ascii=False))
        return
    for document in documents:
        typer.echo(_as_text(document))


def _start(pool: ClipPool, files: list[str]) -> list[tuple[str, Future[Probe]]]:
    from vidpipe.video.probe import probe_name
    from vidpipe.video.source import uri_or_name

    return [(file, pool.submit(probe_name, file, name=uri_or_name(file), time_limit_s=_TIME_LIMIT_S)) for file in files]


def _document(file: str, probed: Future[Probe], timeline: bool) -> ProbeDocument:
    from vidpipe.cli.documents import ProbeDocument, ProbeError
    from vidpipe.errors import MediaError
    from vidpipe.video.source import uri_or_name

    name = uri_or_name(file)
    try:
        found = probed.result()
    except MediaError as error:
        return ProbeDocument(file=name, outcome="error", error=ProbeError(kind=error.kind, message=str(error)))
    return ProbeDocument(
        file=name,
        outcome="ok" if found.frames_known else "ok_partial",
        stream_index=found.stream_index,
        codec=found.codec,
        display_wh=found.display_wh,
        frames=found.frames,
        times_s=[round(float(t), 6) for t in found.timeline.times_s] if timeline else None,
        duration_s=round(found.duration_s, 6),
        average_fps=round(found.average_fps, 6),
        variable_rate=found.variable_rate,
        rotation_deg=found.rotation_deg,
        mirrored=found.mirrored,
        notes=list(found.notes),
    )


def _as_text(document: ProbeDocument) -> str:
    if document.error is not None:
        return f"{document.file}\n  {document.error.kind}: {document.error.message}"
    assert document.display_wh is not None and document.frames is not None
    width, height = document.display_wh
    turned = f", turned {document.rotation_deg} degrees" if document.rotation_deg else ""
    mirrored = ", mirrored" if document.mirrored else ""
    rate = "varying, on average " if document.variable_rate else ""
    lines = [
        f"{document.file}",
        f"  {document.codec}, {width} x {height}{turned}{mirrored}, stream {document.stream_index}",
        f"  {counted(document.frames, 'frame')} in {document.duration_s:.3f} s, "
        f"{rate}{document.average_fps:.3f} a second",
        *(f"  {note}" for note in document.notes),
    ]
    if document.times_s is not None:
        lines += [f"  {index:6d}  {time_s:12.6f} s" for index, time_s in enumerate(document.times_s)]
    return "\n".join(lines)
