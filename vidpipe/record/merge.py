"""All rows of run directories in one Parquet file, in manifest order, each once, in bounded memory.

Rows come in the order in which shards were finished. They are spread over a few files by
their place in the manifest, and then each of these, which fits into memory, is sorted.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from vidpipe.errors import RecipeError
from vidpipe.record.collect import ShardFinishedError, batches
from vidpipe.record.parts import parquet_writer
from vidpipe.record.run_dir import RunDir
from vidpipe.record.schema import output_schema
from vidpipe.record.shard_writer import RESOLVED_KEY, RUN_KEY
from vidpipe.record.shards import read_order, read_plan

PARTIAL_KEY = "vidpipe.partial"
BUCKET_ROWS = 10_000
PLACE = "place"


@dataclass(frozen=True)
class Merged:
    """What a merge found."""

    rows: int
    expected: int
    """Rows of the runs' plans."""
    path: Path
    missing: tuple[str, ...] = field(default=())
    """The first ids that have no row yet."""

    @property
    def partial(self) -> bool:
        """Whether rows are still missing."""
        return self.rows < self.expected


def merge(run_dirs: Sequence[Path], output: Path) -> Merged:
    """Write the rows of `run_dirs` to `output`; may be called at any time, again and again.

    Raises:
        RecipeError: not a run directory, or two rows of one id, or manifests with other columns.
    """
    if output.is_dir():
        raise RecipeError(f"-o {output}: is a folder. Give the file's name, such as {output / 'all.parquet'}.")
    if output.suffix != ".parquet":
        raise RecipeError(f"-o {output}: what is written is Parquet. Give a path that ends in .parquet.")
    runs = [_open(folder) for folder in run_dirs]
    columns = runs[0].columns
    for run in runs:
        if run.columns.keys() != columns.keys():
            folder = run.run_dir.path
            raise RecipeError(f"{folder} has other columns than {run_dirs[0]}; merge runs of one kind of manifest.")
    # Runs with --shard have the whole manifest's order each, and parts of its rows. Planned rows of which no order
    # knows (another process has put that of a shorter manifest there) come last.
    known = [ids for run in runs for ids in run.order.chunks] + [ids for run in runs for ids in run.plan["id"].chunks]
    order = pc.unique(pa.chunked_array(known, pa.string()))
    output.parent.mkdir(parents=True, exist_ok=True)
    while True:
        try:
            return _merge(runs, order, columns, output)
        except ShardFinishedError:
            continue


@dataclass(frozen=True)
class _Run:
    run_dir: RunDir
    values: dict[str, Any]
    plan: pa.Table
    order: pa.ChunkedArray

    @property
    def columns(self) -> dict[str, Any]:
        columns: dict[str, Any] = self.values["manifest"]["columns"]
        return columns


def _open(folder: Path) -> _Run:
    run_dir = RunDir(folder)
    values = run_dir.read_run()
    if values is None:
        raise RecipeError(f"{folder} is not a run directory (it has no run.json). Type the -o of a vidpipe run.")
    return _Run(run_dir, values, read_plan(run_dir), read_order(run_dir))


def _merge(runs: Sequence[_Run], order: pa.StringArray, columns: dict[str, Any], output: Path) -> Merged:
    schema = output_schema(columns)
    settings: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix=".merge-", dir=output.parent) as folder, ExitStack() as stack:
        spread = _Spread(Path(folder), schema, order, stack)
        for run in runs:
            for batch in batches(run.run_dir, pc.unique(run.plan["shard"]).to_pylist(), columns):
                settings |= batch.settings
                spread.add(batch.table)
        spread.close()
        expected = len(pc.unique(pa.concat_tables([run.plan for run in runs])["id"]))
        values: Any = runs[0].values if len(runs) == 1 else [run.values for run in runs]
        partial = json.dumps(spread.rows < expected)
        metadata = {RUN_KEY: json.dumps(values), RESOLVED_KEY: json.dumps(settings), PARTIAL_KEY: partial}
        found = 0
        missing: list[str] = []
        with parquet_writer(output, schema, metadata) as writer:
            for table, first, last in spread.sorted():
                _refuse_duplicates(table)
                writer.write_table(table.drop_columns([PLACE]))
                found += table.num_rows
                if len(missing) < 5 and table.num_rows < last - first:
                    here = order.slice(first, last - first)
                    absent = pc.invert(pc.is_in(here, table["id"].combine_chunks()))
                    missing += here.filter(absent).to_pylist()[: 5 - len(missing)]
    return Merged(found, expected, output, tuple(missing))


class _Spread:
    """Rows on their way into order: an Arrow file for each stretch of the manifest."""

    def __init__(self, folder: Path, schema: pa.Schema, order: pa.StringArray, stack: ExitStack) -> None:
        self._schema = schema.append(pa.field(PLACE, pa.int32()))
        self._order = order
        self._paths = [folder / f"{n}.arrow" for n in range(max(1, -(-len(order) // BUCKET_ROWS)))]
        self._writers = [stack.enter_context(pa.ipc.new_file(path, self._schema)) for path in self._paths]
        self._held: list[pa.Table] = []
        self._held_rows = 0
        self.rows = 0

    def add(self, table: pa.Table) -> None:
        """Add rows; they are looked up in the manifest's order many at a time, for each look-up reads all of it."""
        self._held.append(table)
        self._held_rows += table.num_rows
        if self._held_rows >= BUCKET_ROWS:
            self._spread_held()

    def close(self) -> None:
        """Nothing more will be added."""
        self._spread_held()
        for writer in self._writers:
            writer.close()

    def _spread_held(self) -> None:
        if not self._held_rows:
            return
        table = pa.concat_tables(self._held).combine_chunks()
        places = pc.index_in(table["id"], self._order)
        placed = table.append_column(self._schema.field(PLACE), places)
        buckets = pc.divide(placed[PLACE], BUCKET_ROWS)
        for bucket in pc.unique(buckets).to_pylist():
            self._writers[bucket].write_table(placed.filter(pc.equal(buckets, bucket)))
        self.rows += self._held_rows
        self._held, self._held_rows = [], 0

    def sorted(self) -> Iterator[tuple[pa.Table, int, int]]:
        """The stretches in order, each sorted, with the places that it spans."""
        for n, path in enumerate(self._paths):
            first = n * BUCKET_ROWS
            with pa.memory_map(str(path)) as source:
                table = pa.ipc.open_file(source).read_all().combine_chunks().sort_by(PLACE)
            yield table, first, min(len(self._order), first + BUCKET_ROWS)
            path.unlink()


def _refuse_duplicates(table: pa.Table) -> None:
    """Refuse rows, sorted by place, of which two have one place."""
    places = table[PLACE].combine_chunks()
    twice = table.slice(1).filter(pc.equal(places.slice(1), places.slice(0, max(0, len(places) - 1))))
    if twice.num_rows:
        names = ", ".join(map(repr, twice["id"].to_pylist()[:5]))
        raise RecipeError(f"{twice.num_rows} ids stand twice in these runs: {names}. Merge runs of different rows.")


def is_complete(results: Path, rows: int) -> bool:
    """Whether a results file holds `rows` rows and none is missing."""
    if not results.exists():
        return False
    metadata = pq.read_metadata(results)
    return metadata.num_rows == rows and (metadata.metadata or {}).get(PARTIAL_KEY.encode()) == b"false"
