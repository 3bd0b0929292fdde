"""The stored plan of a run: made by the first process, completed when the manifest has grown, checked by all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from vidpipe.errors import MediaError, RecipeError
from vidpipe.job.decoders import Decoders
from vidpipe.job.encoder_plan import store_graphs
from vidpipe.job.predicted import predict
from vidpipe.job.prepare import Outlook
from vidpipe.job.prospect import Prospect
from vidpipe.manifest.row import BadRow, Row
from vidpipe.plan.clips import Clip, Plan
from vidpipe.plan.cost import share_out
from vidpipe.record.run_dir import RunDir
from vidpipe.record.shards import Shards, add_shards, read_shards, write_order
from vidpipe.wording import counted

MOST_AT_ONCE = 32
"""Clips that go to a child together to be looked at."""


def stored_shards(
    prospect: Prospect, run_dir: RunDir, decoders: Decoders, limit: int | None, tell: Callable[[str], None]
) -> Shards:
    """Shards for the manifest's first `limit` rows: those stored, and new ones for rows that have none.

    `tell` is told what takes long.

    Raises:
        RecipeError: a row that has been planned reads differently now.
    """
    sha = {row.id: row_sha(row) for row in prospect.manifest.rows}
    wanted = {row.id for row in prospect.manifest.rows[:limit]}
    while True:
        shards = read_shards(run_dir)
        changed = [row_id for row_id, before in shards.sha.items() if sha.get(row_id) != before]
        if changed:
            names = ", ".join(map(repr, changed[:5]))
            raise RecipeError(
                f"{prospect.manifest_path}: {counted(len(changed), 'row')} that {run_dir.path} was made of "
                f"changed or went away ({names}).\nType --fresh to forget that run, or choose another run directory "
                "with -o."
            )
        if wanted <= shards.sha.keys():
            return shards
        new = [row for row in prospect.manifest.rows[:limit] if row.id not in shards.sha]
        plan = prospect.plan(new)
        tell(f"planning {counted(len(new), 'row')}: reading the headers of {counted(len(plan.clips), 'clip')}")
        outlooks = look_at(plan.clips, decoders)
        store_graphs(run_dir, prospect, outlooks)
        groups = cut_rows(plan, outlooks)
        hashed = [[(row_id, sha[row_id]) for row_id in group.ids] for group in groups]
        costs = [group.cost for group in groups]
        write_order(run_dir, sha)  # before the plan: whoever finds its rows planned writes nothing more
        add_shards(run_dir, hashed, costs, shards, predict(plan, outlooks, prospect))


def row_sha(row: Row | BadRow) -> str:
    """Hash of a row's content, by which a plan knows it again."""
    text = json.dumps(row.values, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


@dataclass(frozen=True)
class Group:
    """Rows that will be a shard, and their predicted cost."""

    ids: list[str]
    cost: int


def cut_rows(plan: Plan, outlooks: Sequence[Outlook | MediaError]) -> list[Group]:
    """The shards: whole clips, as `share_out` says; rows that cannot run go with the last."""
    costs = [0 if isinstance(outlook, MediaError) else outlook.cost for outlook in outlooks]
    shards = share_out(costs) or [[]]
    groups = []
    for places in shards:
        ids = [planned.row.id for place in places for planned in plan.clips[place].rows]
        if places is shards[-1]:
            ids += [bad.id for bad in plan.bad_rows]
        if ids:
            groups.append(Group(ids, sum(costs[place] for place in places)))
    return groups


def look_at(clips: Sequence[Clip], decoders: Decoders, *, tell: bool = False) -> list[Outlook | MediaError]:
    """What the headers promise of each clip (`tell`: see `ClipReader.look`), or why a file cannot be opened."""
    handful = max(1, min(MOST_AT_ONCE, len(clips) // (4 * decoders.workers)))
    handfuls = [clips[first : first + handful] for first in range(0, len(clips), handful)]
    with ThreadPoolExecutor(decoders.workers) as threads:
        found = threads.map(lambda some: decoders.look_at(some, tell=tell), handfuls)
        return [outlook for some in found for outlook in some]
