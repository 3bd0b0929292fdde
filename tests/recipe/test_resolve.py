import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidpipe.errors import RecipeError, RowError
from vidpipe.recipe.resolve import fingerprint, refuse_unknown_columns, resolve_row, when_names
from vidpipe.recipe.schema import Recipe


def recipe(**values: object) -> Recipe:
    return Recipe.model_validate({"manifest": "m", "model": {"path": "p"}, **values})


def test_row_beats_override_beats_recipe_beats_default() -> None:
    made = recipe(
        sampling={"fps": 4.0, "max_frames": 64},
        overrides=[
            {"when": {"categories.duration": "long"}, "sampling": {"fps": 1.0, "max_frames": 32}},
            {"when": {"categories.duration": "long"}, "sampling": {"fps": 9.0}},
        ],
    )
    long_row = {"categories": {"duration": "long"}}
    assert resolve_row(made, {}, {}, {}).sampling.fps == 4.0
    assert resolve_row(made, long_row, {}, {}).sampling.fps == 1.0, "the first match wins"
    settings = resolve_row(made, long_row, {"fps": 0.5}, {"max_tokens": 7})
    assert (settings.sampling.fps, settings.sampling.max_frames, settings.generation.max_tokens) == (0.5, 32, 7)
    assert resolve_row(made, {"categories.duration": "long"}, {}, {}).sampling.max_frames == 32, "dotted column"


def test_an_override_that_could_never_apply_is_refused() -> None:
    whens = [{"id": "a", "question_typ": "count"}, {"clip_start": None, "categories.duration": "long"}]
    made = recipe(overrides=[{"when": when, "sampling": {"fps": 1.0}} for when in whens])
    assert when_names(made) == {"id", "question_typ", "categories.duration"}, "None fits rows without the column"
    columns = ["id", "question_type", "categories"]
    refuse_unknown_columns(made, set(), columns)
    with pytest.raises(RecipeError, match=r"overrides\[0\]\.when: no row has 'question_typ'.*'question_type'\?"):
        refuse_unknown_columns(made, {"question_typ"}, columns)
    with pytest.raises(RecipeError, match=r"overrides\[1\]\.when: no row has 'categories.duration'"):
        refuse_unknown_columns(made, {"categories.duration"}, columns)


def test_a_bad_value_costs_the_row_and_is_named() -> None:
    with pytest.raises(RowError, match=r"sampling\.fps.*found -1"):
        resolve_row(recipe(), {}, {"fps": -1.0}, {})
    with pytest.raises(RowError, match=r"generation\.tokens"):
        resolve_row(recipe(), {}, {}, {"tokens": 3})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), json_values, max_size=5))
def test_fingerprint_ignores_key_order(values: dict) -> None:
    assert fingerprint(values) == fingerprint(dict(reversed(values.items())))


def test_fingerprint_tells_values_apart() -> None:
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})
