"""What each fault costs in right answers: `python -m tests.world.sensitivity`."""

from __future__ import annotations

from tests.world.faults import FAULTS
from tests.world.rows import answers, engine, options, read_rows, share

GROUPS = {
    "all": (),
    "times": ("time", "last_time", "event_time"),
    "at a time": ("what_at", "present_at"),
    "order": ("order",),
    "direction": ("direction",),
    "colour": ("colour",),
    "counts": ("count", "object_counting"),
}


def main() -> None:
    given = options(__doc__)
    lines = read_rows(given.rows, given.model)
    print(f"| fault ({len(lines)} rows) | {' | '.join(GROUPS)} |\n|---|{'---|' * len(GROUPS)}")
    with engine(given.model) as running:
        for name, fault in {"none": None, **FAULTS}.items():
            answered = answers(running, given.model, given.rows, lines, fault)
            cells = (f"{100 * share(answered, *kinds):.0f}" for kinds in GROUPS.values())
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
