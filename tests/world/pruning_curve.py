"""Right answers over pruning rates, for EVS and VidCom2: `python -m tests.world.pruning_curve`. An engine each."""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.conftest import ROOT, TINY_MODEL
from tests.world.rows import answers, engine, read_rows, share
from vidpipe.recipe.schema import Pruning

RATES = (0.25, 0.5, 0.75, 0.9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, default=ROOT / "data" / "world", help="folder of clips with rows.jsonl")
    parser.add_argument("--model", type=Path, default=TINY_MODEL)
    given = parser.parse_args()
    lines = read_rows(given.rows)

    def right(pruning: Pruning | None) -> str:
        with engine(given.model, pruning) as running:
            return f"{100 * share(answers(running, given.model, given.rows, lines)):.1f}"

    whole = right(None)
    print(f"| % right of {len(lines)} rows | 0 | {' | '.join(map(str, RATES))} |\n|---|---|{'---|' * len(RATES)}")
    for method in ("evs", "vidcom2"):
        cells = [right(Pruning.model_validate({"method": method, "rate": rate})) for rate in RATES]
        print(f"| {method} | {whole} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
