import json
import shlex
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT
from vidpipe.benchmarks.importers import vsi
from vidpipe.errors import RecipeError
from vidpipe.models.registry import get_family
from vidpipe.recipe import schema
from vidpipe.recipe.load import load_recipe

GOOD = "manifest: rows.jsonl\nmodel: {path: m}\n"


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(text)
    return path


def test_keeps_what_was_given_apart_from_defaults(tmp_path: Path) -> None:
    loaded = load_recipe(write(tmp_path, GOOD), ["sampling.fps=1", "generation.stop=[a, b]"])
    assert loaded.given == {
        "manifest": "rows.jsonl",
        "model": {"path": "m"},
        "sampling": {"fps": 1},
        "generation": {"stop": ["a", "b"]},
    }
    assert loaded.recipe.sampling.fps == 1 and loaded.recipe.generation.max_tokens == 64
    assert loaded.name == "job" and loaded.folder == tmp_path.resolve()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + "samplng: {fps: 1}\n", r"job.yaml, line 3: unknown key 'samplng'. Did you mean 'sampling'"),
        (GOOD + "sampling:\n  fsp: 1\n", r"line 4: unknown key 'sampling.fsp'. Did you mean 'fps'"),
        (GOOD + "overrides:\n- when: {a: 1}\n  samplin: {}\n", r"line 5: unknown key .*Did you mean 'sampling'"),
        (GOOD + "overrides: [{when: {a: 1}, sampling: {fsp: 1}}]\n", r"line 3: overrides.0: .*sampling.fsp: Extra"),
        (GOOD + "overrides: [{when: {a: 1}, generation: {seed: x}}]\n", r"generation.seed: Input should be .* integer"),
        (GOOD + "sampling: {fps: two}\n", r"line 3: sampling.fps: .*found 'two'"),
        (GOOD + "sampling: {fps: 0}\n", r"sampling.fps: .*greater than 0"),
        (GOOD + "sampling: {min_frames: 9, max_frames: 3}\n", r"min_frames 9 is above max_frames 3"),
        (GOOD + "generation: {max_tokens: '8'}\n", r"generation.max_tokens"),
        (GOOD + f"generation: {{seed: {2**63}}}\n", r"generation.seed: .*less than"),
        (GOOD + f"generation: {{max_tokens: {2**63}}}\n", r"generation.max_tokens: .*less than"),
        (GOOD + "generation: {temperature: .inf}\n", r"generation.temperature: .*finite"),
        (GOOD + f"sampling: {{min_pixels: {10**20}}}\n", r"sampling.min_pixels: .*less than"),
        (GOOD + f"sampling: {{num_frames: {10**9}}}\n", r"sampling.num_frames: .*less than"),
        (GOOD + "manifest: b.jsonl\n", r"line 3: key 'manifest' stands twice"),
        ("model: {path: m}\n", r"key 'manifest' is missing"),
        ("- a\n", r"must be a YAML mapping"),
        ("a: [\n", r"not YAML"),
        ("", r"must be a YAML mapping"),
    ],
)
def test_faults_are_named_with_their_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        load_recipe(write(tmp_path, text), [])


def test_every_fault_is_listed(tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        load_recipe(write(tmp_path, GOOD + "a: 1\nb: 2\n"), [])
    assert "'a'" in str(caught.value) and "'b'" in str(caught.value)


def test_missing_file_folder_and_encoding(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="does not exist"):
        load_recipe(tmp_path / "none.yaml", [])
    with pytest.raises(RecipeError, match="is a folder"):
        load_recipe(tmp_path, [])
    (tmp_path / "latin.yaml").write_bytes(b"description: caf\xe9\n")
    with pytest.raises(RecipeError, match="not UTF-8"):
        load_recipe(tmp_path / "latin.yaml", [])


@pytest.mark.parametrize("value", ["What # is it?", "# how many", "[a, b] # two", '"a # b" # c', "1 # x"])
def test_no_part_of_a_value_is_a_comment(tmp_path: Path, value: str) -> None:
    with pytest.raises(RecipeError, match=r"--set prompt: YAML takes what follows # .*Quote the text") as caught:
        load_recipe(write(tmp_path, GOOD), [f"prompt={value}"])
    (shown,) = shlex.split(str(caught.value).rpartition("--set ")[2])
    assert load_recipe(tmp_path / "job.yaml", [shown]).recipe.prompt == value


@pytest.mark.parametrize("value", ["C#", '"What # is it?"', "'a # b'", "|\n  a # b"])
def test_a_value_may_hold_the_sign_of_a_comment(tmp_path: Path, value: str) -> None:
    assert "#" in str(load_recipe(write(tmp_path, GOOD), [f"prompt={value}"]).recipe.prompt)


def test_a_key_without_a_value_can_be_set_below(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD + "pruning:\nsampling: {fps: 1}\n")
    recipe = load_recipe(path, ["pruning.method=evs", "pruning.rate=0.5", "sampling.max_frames=8"]).recipe
    assert recipe.pruning and recipe.pruning.rate == 0.5
    assert (recipe.sampling.fps, recipe.sampling.max_frames) == (1, 8)


def test_characters_that_json_writes_as_two_are_one(tmp_path: Path) -> None:
    asked = "What \U0001f600 happens? \u00e9"
    written = {"manifest": "rows.jsonl", "model": {"path": "m"}, "generation": {"stop": [asked]}, "system": asked}
    recipe = load_recipe(write(tmp_path, json.dumps(written)), [f"prompt={json.dumps(asked)}"]).recipe
    assert (recipe.prompt, recipe.system, recipe.generation.stop) == (asked, asked, [asked])
    for text, more in ((GOOD, ['prompt="\\ud83d"']), (GOOD + 'prompt: "\\ud83d?"\n', [])):
        with pytest.raises(RecipeError, match="half of a surrogate pair"):
            load_recipe(write(tmp_path, text), more)


@pytest.mark.parametrize(
    "assignment",
    ["sampling.fps", "=1", "manifest.x=1", "sampling.fps={{", "sampling={fps: 1, fps: 2}", "overrides=&a [*a]"],
)
def test_bad_assignments(tmp_path: Path, assignment: str) -> None:
    with pytest.raises(RecipeError, match="--set"):
        load_recipe(write(tmp_path, GOOD), [assignment])


def test_every_key_is_documented() -> None:
    sections = [cls for cls in vars(schema).values() if isinstance(cls, type) and issubclass(cls, schema.Section)]
    assert schema.Recipe in sections
    for section in sections:
        for name, field in section.model_fields.items():
            assert field.description, f"{section.__name__}.{name}"


@pytest.mark.parametrize("path", sorted((ROOT / "recipes").glob("*.yaml")), ids=lambda path: path.name)
def test_shipped_recipes_are_valid(path: Path) -> None:
    assert load_recipe(path, []).recipe.manifest
    assert yaml.safe_load(path.read_text())


def test_the_recipe_in_the_readme_is_valid(tmp_path: Path) -> None:
    block = (ROOT / "README.md").read_text().split("```yaml\n")[1].split("```")[0]
    given = load_recipe(write(tmp_path, block), []).given
    assert set(given) == set(schema.Recipe.model_fields), "every key is explained"


@pytest.mark.parametrize(
    ("text", "nbytes"), [("1000", 1000), ("4GiB", 4 << 30), ("1.5 MB", 1_500_000), ("10B", 10), ("2KiB", 2048)]
)
def test_sizes_in_bytes_or_as_text(tmp_path: Path, text: str, nbytes: int) -> None:
    assert load_recipe(write(tmp_path, GOOD), [f"feed.memory={text}"]).recipe.feed.memory == nbytes


@pytest.mark.parametrize("text", ["4 potatoes", "-1GiB", "GiB", "0"])
def test_sizes_that_are_none(tmp_path: Path, text: str) -> None:
    with pytest.raises(RecipeError, match=r"feed\.memory"):
        load_recipe(write(tmp_path, GOOD), [f"feed.memory={text}"])


def test_the_vsibench_recipe_is_the_published_setting() -> None:
    recipe = load_recipe(ROOT / "recipes" / "llava_onevision2_vsibench.yaml", []).recipe
    assert (recipe.prompt, recipe.generation.max_tokens) == (vsi.IMPORTER.prompt, vsi.IMPORTER.max_tokens)
    family = get_family("llava_onevision2")
    assert family.complete(recipe.sampling, {}) == family.complete(schema.Sampling(rule="ov2_eval"), {})


@pytest.mark.parametrize(("written", "meant"), [("on", "on"), ("off", "off"), ("auto", "auto"), ('"on"', "on")])
def test_yaml_takes_on_and_off_for_truth_values(tmp_path: Path, written: str, meant: str) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(f"manifest: m\nmodel: {{path: m}}\nengine: {{encoder_graphs: {written}}}\n")
    assert load_recipe(path, []).recipe.engine.encoder_graphs == meant


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("manifest: !!int ''\n", "is not YAML"),
        ("? [a, b]\n: 1\n", "a key must be a word"),
        ("manifest: &a [*a]\n", "an alias"),
        ("manifest: " + "[" * 3000 + "]" * 3000, "nested too deeply"),
    ],
)
def test_yaml_that_its_parser_stumbles_over(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(text)
    with pytest.raises(RecipeError, match=words):
        load_recipe(path, [])


def test_anchors_may_be_used(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text("manifest: m\nmodel: {path: x}\noverrides:\n- {when: &w {a: 1}}\n- {when: *w}\n")
    assert load_recipe(path, []).recipe.overrides[1].when == {"a": 1}
