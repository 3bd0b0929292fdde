"""Right answers by kind of question, unpruned and, where the family can, with half of the tokens dropped.

`python -m tests.world.held_out`.
"""

from __future__ import annotations

from tests.world.questions import RULES
from tests.world.rows import answers, engine, eye_of, options, read_rows, share
from vidpipe.recipe.schema import Pruning

ARMS = {
    "unpruned": None,
    "EVS 0.5": Pruning.model_validate({"method": "evs", "rate": 0.5}),
    "VidCom2 0.5": Pruning.model_validate({"method": "vidcom2", "rate": 0.5}),
}


def main() -> None:
    given = options(__doc__)
    lines = read_rows(given.rows, given.model)
    answered = {}
    prunable = eye_of(given.model).family.abilities.pruning
    for arm, pruning in ARMS.items():
        if pruning and pruning.method not in prunable:
            continue
        with engine(given.model, pruning) as running:
            answered[arm] = answers(running, given.model, given.rows, lines)
    print(f"| kind | rows | {' | '.join(f'{arm}, % right' for arm in answered)} |\n|---|---:|{'---:|' * len(answered)}")
    asked = [line["question_type"] for line in lines]
    for kind in sorted(set(asked), key=list(RULES).index):
        cells = (f"{100 * share(one, kind):.1f}" for one in answered.values())
        print(f"| `{kind}` | {asked.count(kind)} | {' | '.join(cells)} |")
    cells = (f"{100 * share(one):.1f}" for one in answered.values())
    print(f"| all | {len(lines)} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
