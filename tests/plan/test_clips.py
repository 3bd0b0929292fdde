import re

import pytest

from vidpipe.manifest.row import BadRow, Record
from vidpipe.manifest.rows import to_row
from vidpipe.models.registry import get_family
from vidpipe.plan import clips
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


CODEC = {"sampling": {"video_backend": "codec"}}


@pytest.mark.parametrize(
    ("name", "more", "recipe", "reason"),
    [
        ("qwen3_vl", {"subtitles": "a.srt"}, {"pruning": {"method": "evs", "rate": 0.5}}, "with pruning"),
        ("llava_onevision2", {"subtitles": "a.srt"}, CODEC, "canvases"),
        ("llava_onevision2", {"frames_fps": 3}, CODEC, "pictures have none"),
        ("llava_onevision2", {"video": ["a", "b"]}, CODEC, "nothing beside it .* found 2 media"),
        ("llava_onevision2", {"sampling.video_backend": "codec"}, {}, "started for frames"),
        ("llava_onevision2", {"images": ["i"]}, {}, "rows of their own"),
        ("ernie45_vl", {"subtitles": "a.srt"}, {}, "no place for subtitles"),
        ("moss_vl", {"images": ["i"]}, {}, "takes no images"),
        ("moss_vl", {"video": ["a", "b"]}, {}, "found 2"),
    ],
)
def test_kinds_that_exclude_each_other_cost_their_row(name: str, more: dict, recipe: dict, reason: str) -> None:
    family = get_family(name)
    made = Recipe.model_validate({"manifest": "m", "model": {"path": "p"}, **recipe})
    read = [
        to_row(Record(n, values), n, recipe_has_prompt=False)
        for n, values in enumerate([row("plain", "a"), row("r", "a") | more])
    ]
    found = make_plan(read, made, family, family.published)
    assert [clip.first.row.id for clip in found.clips] == ["plain"]
    assert [(bad.id, bad.fault.kind) for bad in found.bad_rows] == [("r", "bad_value")]
    assert re.search(reason, found.bad_rows[0].fault.message)


def test_images_alone_are_taken_where_images_and_videos_exclude_each_other() -> None:
    made = Recipe.model_validate({"manifest": "m", "model": {"path": "p"}})
    read = [to_row(Record(0, {"id": "r", "images": ["i", "j"], "question": "?"}), 0, recipe_has_prompt=False)]
    family = get_family("llava_onevision2")
    assert not make_plan(read, made, family, family.published).bad_rows


def test_settings_are_shared_by_rows_that_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clips, "SETTINGS_KEPT", 1)
    rates = (1.0, 2.0, 1.0, 2.0)
    rows = [row(str(n), "a", **{"sampling.fps": rate}) for n, rate in enumerate(rates)]
    ones, twos = plan(rows).clips
    assert ones.rows[0].settings is ones.rows[1].settings
    assert twos.rows[0].settings is not twos.rows[1].settings, "no more are remembered than asked"


def test_overrides_are_asked_of_every_row() -> None:
    override = {"when": {"kind": "long"}, "sampling": {"fps": 0.5}}
    made = plan([row("1", "a", kind="short"), row("2", "a", kind="long"), row("3", "a")], overrides=[override])
    assert [[p.row.id for p in clip.rows] for clip in made.clips] == [["1", "3"], ["2"]]
    assert made.clips[1].first.settings.sampling.fps == 0.5


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
