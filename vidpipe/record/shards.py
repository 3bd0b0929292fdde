"""The plan of a run as it is stored: shards of whole clips, written once, nothing about workers.

A manifest that grows adds a further plan file for the new rows; shards that exist never
change. Each row's content is known by hash, so that a changed one is noticed.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather

from vidpipe.record.disk import read_mark, set_mark, sync, temporary_for, wait_until_whole
from vidpipe.record.parts import parquet_writer
from vidpipe.record.run_dir import RunDir

SCHEMA = pa.schema([("shard", pa.int32()), ("id", pa.string()), ("sha", pa.string())])


@dataclass(frozen=True)
class Shards:
    """All shards of a run."""

    ids: Mapping[int, tuple[str, ...]]
    """Row ids of each shard."""
    sha: Mapping[str, str]
    """Hash of each row's content, by id."""
    cost: Mapping[int, int]
    """Predicted cost of each shard."""
    plans: int
    """Plan files that were read."""

    @property
    def rows(self) -> int:
        """Rows in all shards."""
        return len(self.sha)


def read_plan(run_dir: RunDir) -> pa.Table:
    """All plan files of a run as one table of `SCHEMA`; empty for a new run."""
    return _read(run_dir, _plan_marks(run_dir))


def _read(run_dir: RunDir, marks: Iterable[Mapping[str, Any]]) -> pa.Table:
    files = [run_dir.plans / mark["plan"] for mark in marks]
    return pa.concat_tables([SCHEMA.empty_table(), *map(pq.read_table, files)])


def read_shards(run_dir: RunDir) -> Shards:
    """The plan as Python objects; for a million rows `read_plan` takes a tenth of the memory."""
    ids: dict[int, list[str]] = {}
    sha: dict[str, str] = {}
    marks = list(_plan_marks(run_dir))
    for batch in _read(run_dir, marks).to_batches(max_chunksize=10_000):
        for shard, row_id, row_sha in zip(*(batch[name].to_pylist() for name in SCHEMA.names), strict=True):
            ids.setdefault(shard, []).append(row_id)
            sha[row_id] = row_sha
    cost = dict.fromkeys(ids, 0)
    for mark in marks:
        cost |= enumerate(mark.get("costs", ()), mark.get("first", 0))  # earlier versions have not written them
    return Shards({shard: tuple(members) for shard, members in ids.items()}, sha, cost, len(marks))


@dataclass(frozen=True)
class Sizes:
    """How large the shards of a run are."""

    rows: Mapping[int, int]
    cost: Mapping[int, int]
    """Predicted; the rows where a plan has no costs (older versions)."""

    def cost_a_row(self, shard: int) -> float:
        """Rows of one shard are reckoned to cost the same."""
        return self.cost[shard] / self.rows[shard]


def read_sizes(run_dir: RunDir) -> Sizes:
    """Rows and cost of each shard; of the plan's files only one column is read."""
    rows: dict[int, int] = {}
    cost: dict[int, int] = {}
    for mark in _plan_marks(run_dir):
        column = pq.read_table(run_dir.plans / mark["plan"], columns=["shard"])["shard"]
        rows |= {count["values"]: count["counts"] for count in column.value_counts().to_pylist()}
        cost |= enumerate(mark.get("costs", ()), mark.get("first", 0))
    return Sizes(rows, {shard: cost.get(shard, 0) for shard in rows} if any(cost.values()) else rows)


def add_shards(
    run_dir: RunDir,
    shards: Sequence[Sequence[tuple[str, str]]],
    costs: Sequence[int],
    known: Shards,
    predicted: Mapping[str, int] | None = None,
) -> None:
    """Store further shards, each a list of (id, hash); another process may be first with its own.

    The caller reads the plan again and plans what is still missing.

    Args:
        run_dir: The run.
        shards: None is empty.
        costs: Predicted cost of each.
        known: The plan so far.
        predicted: Kept beside the plan, for comparison with what comes true.
    """
    first = max(known.ids, default=-1) + 1
    path = run_dir.plans / f"{uuid.uuid4().hex}.parquet"
    columns = {
        "shard": pa.array((first + n for n, shard in enumerate(shards) for _ in shard), pa.int32()),
        "id": pa.array((row_id for shard in shards for row_id, _ in shard), pa.string()),
        "sha": pa.array((sha for shard in shards for _, sha in shard), pa.string()),
    }
    table = pa.table(columns, schema=SCHEMA)
    with parquet_writer(path, SCHEMA, {}) as writer:
        writer.write_table(table)
    mark = {"plan": path.name, "rows": table.num_rows, "first": first, "costs": list(costs)}
    # The place behind what the caller knows: whoever planned at the same time has taken it, or will not get it.
    place = run_dir.plans / f"{known.plans:06d}"
    if not set_mark(place, mark | {"predicted": dict(predicted or {})}):
        path.unlink()
        wait_until_whole(place)


def read_predictions(run_dir: RunDir) -> list[Mapping[str, int]]:
    """What was predicted with each plan file; empty mappings for those of older versions."""
    return [mark.get("predicted", {}) for mark in _plan_marks(run_dir)]


def _plan_marks(run_dir: RunDir) -> Iterator[dict[str, Any]]:
    generation = 0
    while (mark := read_mark(run_dir.plans / f"{generation:06d}")) is not None:
        yield mark
        generation += 1


def write_order(run_dir: RunDir, ids: Iterable[str]) -> None:
    """Store the order of the manifest's rows; the merge sorts by it."""
    temporary = temporary_for(run_dir.order_file)
    try:
        feather.write_feather(pa.table({"id": pa.array(ids, pa.string())}), temporary, compression="zstd")
        sync(temporary)
        temporary.replace(run_dir.order_file)
        sync(run_dir.order_file.parent)
    finally:
        temporary.unlink(missing_ok=True)


def read_order(run_dir: RunDir) -> pa.ChunkedArray:
    """Row ids in manifest order."""
    if not run_dir.order_file.exists():
        return pa.chunked_array([], pa.string())
    return feather.read_table(run_dir.order_file)["id"]
