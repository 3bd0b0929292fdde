"""`vidpipe run --progress jsonl` and `vidpipe status --json` as models."""

from __future__ import annotations

import os
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from vidpipe.cli.document import Document

if TYPE_CHECKING:
    from vidpipe.job.progress import Progress


class FailedDocument(Document):
    """Rows with one kind of error."""

    kind: str
    """Stable word, as in the output column `error_kind`."""
    rows: int
    """Rows."""
    example: str
    """What one of them says, its first 500 characters."""


class StageSecondsDocument(Document):
    """Seconds that this process spent in each stage since it began; stages run side by side."""

    decode: float
    """Of workers, one thread each."""
    decode_core: float
    """Processor time of the same."""
    prepare: float
    """Of workers, or of this process where it prepares."""
    transfer: float
    """Between a worker's last word about a clip and the engine's process having it."""
    engine: float
    """In which the engine had work."""


class BusyDocument(Document):
    """Shares of the last half minute, 0 to 1."""

    decode: float
    """Of all workers' time."""
    prepare: float
    """Of all workers' time, or of this process's where it prepares."""
    engine: float
    """In which the engine had work."""


class QueueDocument(Document):
    """What is between the files and the answers now."""

    workers: int
    """Worker processes."""
    clips_on_the_way: int
    """Clips that are taken, and not yet decoded and prepared."""
    rows_ready: int
    """Prepared rows that the engine has not taken."""
    rows_in_engine: int
    """Rows that it is at."""
    media_bytes: int
    """Of clips in flight."""
    media_limit_bytes: int
    """The most of these (feed.memory)."""


class GpuDocument(Document):
    """A GPU of this process, as NVML says."""

    name: str
    """Its name."""
    busy: float | None
    """Share of the last sampling period in which a kernel ran; null for a MIG slice."""
    memory_used_bytes: int
    """By all processes on it."""
    memory_bytes: int
    """All it has."""


class ProgressDocument(Document):
    """A line of `vidpipe run --progress jsonl`, on standard error."""

    time: datetime
    """UTC."""
    host: str
    """Of the process that says it."""
    pid: int
    """Its number there."""
    phase: Literal["planning", "starting", "running", "ended"]
    """`starting`: the engine loads."""
    message: str
    """The last change of state, or what went wrong, in words."""
    rows: int
    """Rows of the run (with --shard, of this share); 0 while it is planned."""
    recorded: int
    """Of these, recorded by all processes, and before; what others are at counts by the shard."""
    recorded_here: int
    """Recorded by this process."""
    failed: int
    """Of these, with an error."""
    statuses: dict[str, int]
    """Rows that this process recorded, by status."""
    failures: list[FailedDocument]
    """Rows that this process recorded with an error, the most frequent kind first."""
    clips: int
    """Clips that came through decoding here."""
    rows_per_s: float | None
    """Of all processes, over the last five minutes; null before the first row."""
    rows_per_s_here: float | None
    """Of this process."""
    seconds_left: float | None
    """Of the whole run, by predicted cost; null where nothing tells."""
    tokens_in: int
    """Prompt tokens of rows that this process recorded."""
    tokens_out: int
    """Tokens of their answers."""
    waits_for: Literal["engine_start", "clips", "other_processes"] | None
    """What keeps the engine from working now; null while it has work. `other_processes`: they hold all that is left."""
    elapsed_s: float
    """Seconds since the first engine of this process began to start."""
    seconds: StageSecondsDocument | None
    """Null before that."""
    idle_s: dict[str, float]
    """Seconds in which the engine had nothing to do, by cause: start, decode, prepare, transfer, tail."""
    busy: BusyDocument
    """How busy the stages are."""
    queue: QueueDocument | None
    """Null before the engine began to start."""
    gpus: list[GpuDocument]
    """Empty where NVML does not answer."""


class WorkerDocument(Document):
    """A process on a run."""

    host: str
    """Its host."""
    pid: int
    """Its process number there."""
    shards: list[int]
    """Shards that it holds."""
    heartbeat_age_s: float
    """Seconds since its last sign of life."""
    slurm_task: str | None
    """The Slurm task that it is, ARRAY_INDEX; null outside of Slurm."""
    late: bool
    """Whether its heartbeat is overdue, and it is not taken for lost yet."""
    recorded: int | None
    """Rows that it has recorded; null, as below, where it has not said so yet."""
    rows_per_s: float | None
    """Its rate over the last five minutes."""
    phase: str | None
    """As in `progress`."""
    waits_for: str | None
    """As in `progress`; null while its engine has work."""
    message: str | None
    """Its last change of state, or what went wrong, in words."""


class SlurmJobDocument(Document):
    """A Slurm job that `vidpipe slurm` submitted for the run."""

    job: str
    """Slurm's number of it."""
    tasks: int
    """Workers of an array; 0 for the job that merges."""
    states: dict[str, int] | None
    """Its tasks by Slurm's word for their state; empty once Slurm has forgotten it, null where nobody can be asked."""


class StatusDocument(Document):
    """`vidpipe status --json`."""

    rows: int
    """Rows of the plan."""
    recorded: int
    """Rows that are recorded."""
    statuses: dict[str, int]
    """Recorded rows by status."""
    failures: list[FailedDocument]
    """Recorded rows with an error, the most frequent kind first."""
    shards: int
    """Shards of the plan."""
    shards_done: int
    """Shards that are whole and published."""
    workers: list[WorkerDocument]
    """Processes at work."""
    lost: list[WorkerDocument]
    """Processes that died or are cut off, and whose shards nobody has taken over yet."""
    slurm_jobs: list[SlurmJobDocument]
    """What was submitted, in order."""
    rows_per_s: float | None
    """Rate of the processes at work, as they say; null where none has said so."""
    seconds_left: float | None
    """At that speed, by predicted cost; 0 when all rows are recorded, null where nothing tells."""


def progress_document(progress: Progress, now: datetime) -> ProgressDocument:
    """A moment as a document."""
    gauges = progress.gauges
    seconds = queue = None
    if gauges is not None:
        seconds = StageSecondsDocument(
            decode=round(gauges.decode_s, 3),
            decode_core=round(gauges.decode_core_s, 3),
            prepare=round(gauges.prepare_s, 3),
            transfer=round(gauges.transfer_s, 3),
            engine=round(gauges.engine_s, 3),
        )
        queue = QueueDocument(
            workers=gauges.workers,
            clips_on_the_way=gauges.clips_on_the_way,
            rows_ready=gauges.rows_ready,
            rows_in_engine=gauges.rows_in_engine,
            media_bytes=gauges.media_bytes,
            media_limit_bytes=gauges.media_limit_bytes,
        )
    return ProgressDocument(
        time=now,
        host=os.uname().nodename,
        pid=os.getpid(),
        phase=progress.phase,
        message=progress.message,
        rows=progress.rows,
        recorded=progress.recorded,
        recorded_here=progress.recorded_here,
        failed=progress.failed,
        statuses=dict(progress.statuses),
        failures=[FailedDocument(**asdict(failed)) for failed in progress.failures],
        clips=0 if gauges is None else gauges.clips,
        rows_per_s=progress.rows_per_s,
        rows_per_s_here=progress.rows_per_s_here,
        seconds_left=progress.seconds_left,
        tokens_in=progress.tokens_in,
        tokens_out=progress.tokens_out,
        waits_for=progress.waits_for,
        elapsed_s=0.0 if gauges is None else round(gauges.wall_s, 3),
        seconds=seconds,
        idle_s={} if gauges is None else {cause: round(s, 3) for cause, s in gauges.idle_s.items()},
        busy=BusyDocument(**asdict(progress.busy)),
        queue=queue,
        gpus=[GpuDocument(**asdict(gpu)) for gpu in progress.gpus],
    )
