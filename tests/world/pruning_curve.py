"""Right answers over pruning rates, for EVS and VidCom2: `python -m tests.world.pruning_curve`. An engine each."""

from __future__ import annotations

from tests.world.rows import answers, engine, options, read_rows, share
from vidpipe.recipe.schema import Pruning

RATES = (0.25, 0.5, 0.75, 0.9)


def main() -> None:
    given = options(__doc__)
    lines = read_rows(given.rows, given.model)

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
