import pytest

from vidpipe.manifest.row import BadRow, Record
from vidpipe.manifest.rows import to_row
from vidpipe.models.registry import get_family
from vidpipe.plan.clips import Plan, make_plan
from vidpipe.recipe.schema import Recipe


def plan(rows: list[dict], **recipe: object) -> Plan:
    made = Recipe.model_validate({"manifest": "m", "model": {"path": "p"}, **recipe})
    read = [to_row(Record(i + 1, row), i, recipe_has_prompt=False) for i, row in enumerate(rows)]
    return make_plan(read, made, get_family("qwen3_vl"), {})


def row(name: str, video: str, **more: object) -> dict:
    return {"id": name, "video": video, "question": "?", **more}


def test_rows_of_a_clip_are_together_wherever_they_stand() -> None:
    made = plan([row("1", "a"), row("2", "b"), row("3", "a"), row("4", "b"), row("5", "a")])
    assert [[p.row.id for p in clip.rows] for clip in made.clips] == [["1", "3", "5"], ["2", "4"]]


def test_another_window_or_sampling_is_another_clip() -> None:
    made = plan([row("1", "a"), row("2", "a", clip_end=2), row("3", "a", **{"sampling.fps": 1.0}), row("4", "a")])
    assert [[p.row.id for p in clip.rows] for clip in made.clips] == [["1", "4"], ["2"], ["3"]]


def test_rows_that_cannot_run_are_kept_apart() -> None:
    made = plan(
        [row("1", "a", **{"sampling.fps": -1}), {"id": "2", "video": "a"}, row("3", "a")], prompt="{{ question }}"
    )
    assert [(bad.id, bad.fault.kind) for bad in made.bad_rows] == [("1", "bad_value"), ("2", "missing_field")]
    assert all(isinstance(bad, BadRow) for bad in made.bad_rows)


def test_sampling_defaults_are_filled_in() -> None:
    sampling = plan([row("1", "a")]).clips[0].first.settings.sampling
    assert (sampling.fps, sampling.min_frames, sampling.max_frames) == (2.0, 4, 768)


@pytest.mark.parametrize(
    ("more", "recipe", "reason"),
    [
        ({"subtitles": "a.srt"}, {"pruning": {"method": "evs", "rate": 0.5}}, "with pruning"),
        ({"subtitles": "a.srt"}, {"sampling": {"video_backend": "codec"}}, "canvases"),
        ({"frames_fps": 3}, {"sampling": {"video_backend": "codec"}}, "pictures have none"),
    ],
)
def test_kinds_that_exclude_each_other_cost_their_row(more: dict, recipe: dict, reason: str) -> None:
    family = get_family("llava_onevision2" if "sampling" in recipe else "qwen3_vl")
    made = Recipe.model_validate({"manifest": "m", "model": {"path": "p"}, **recipe})
    read = [
        to_row(Record(n, values), n, recipe_has_prompt=False)
        for n, values in enumerate([row("plain", "a"), row("r", "a", **more)])
    ]
    found = make_plan(read, made, family, family.published)
    assert [clip.first.row.id for clip in found.clips] == ["plain"]
    assert [(bad.id, bad.fault.kind) for bad in found.bad_rows] == [("r", "bad_value")]
    assert reason in found.bad_rows[0].fault.message


def test_clips_differ_by_all_that_changes_what_is_shown() -> None:
    told = {"subtitles": "a.srt"}
    made = plan(
        [
            row("1", "a"), row("2", "a", **told), row("3", "a", **told, subtitle_offset=1), row("4", "a", **told),
            row("5", "a", timestamps_from="video"), row("6", "a", images=["i"]), row("7", "a", frames_fps=3),
            row("8", "a", prefill="Yes"), {"id": "9", "video": [], "question": "?"},
            {"id": "10", "video": [], "question": "?"},
        ]
    )  # fmt: skip
    assert [[p.row.id for p in clip.rows] for clip in made.clips] == [
        ["1", "8"], ["2", "4"], ["3"], ["5"], ["6"], ["7"], ["9"], ["10"],
    ]  # fmt: skip
