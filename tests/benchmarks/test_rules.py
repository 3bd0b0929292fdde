"""Reading replies and measuring them, beside the vectors of upstream's functions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidpipe.benchmarks.choices import ranked
from vidpipe.benchmarks.intervals import interval_iou
from vidpipe.benchmarks.lenient_span import lenient_span
from vidpipe.benchmarks.letters import lenient_letter, tail_letter
from vidpipe.benchmarks.mra import TOLERANCES, official_mra, vlmevalkit_mra
from vidpipe.benchmarks.numbers import first_number_or_word, last_number, lenient_number
from vidpipe.benchmarks.profile import Question
from vidpipe.benchmarks.reasoning import strip_reasoning
from vidpipe.benchmarks.registry import PROFILES, get_profile
from vidpipe.benchmarks.vsi import CHOICE_TYPES, NUMBER_TYPES
from vidpipe.errors import CapabilityError

HERE = Path(__file__).parent


def rows(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((HERE / name).read_text())["rows"]
    return found


@pytest.mark.parametrize("row", rows("lenient_letters.json"), ids=lambda row: repr(row["reply"]))
def test_lenient_letter(row: dict[str, Any]) -> None:
    assert lenient_letter(row["reply"], "".join(row["choices"])) in row.get("accept", [row["extracted"]])


@pytest.mark.parametrize("row", rows("lenient_numbers.json"), ids=lambda row: repr(row["reply"]))
def test_lenient_number(row: dict[str, Any]) -> None:
    assert lenient_number(row["reply"]) in row.get("accept", [row["extracted"]])


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("A and B", None),
        ("A or B", None),
        ("A cat sits left of C", "C"),
        ("A man runs", None),
        ("B, since A is far", "B"),
    ],
)
def test_lenient_letter_does_not_choose_between_two(reply: str, expected: str | None) -> None:
    assert lenient_letter(reply, "ABCD") == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("3 + 4 = 7", 7), ("1 234 567 of them", 1234567), ("minus 3", -3), ("two dozen", None), ("1_200", None),
        ("2 300 and 4.5", 2300), ("4 100", 4100), ("12 3456", 12),
    ],
)  # fmt: skip
def test_lenient_number_reads_what_people_write(reply: str, expected: float | None) -> None:
    assert lenient_number(reply) == expected


@pytest.mark.parametrize("row", rows("mra.json"), ids=lambda row: f"{row['pred']} of {row['gold']}")
def test_mra(row: dict[str, Any]) -> None:
    assert official_mra(row["pred"], row["gold"]) == row["score"]


def test_ten_thresholds() -> None:
    assert len(TOLERANCES) == 10 and TOLERANCES[0] == 0.5


@given(st.floats(0.01, 1e6), st.floats(0, 1e6), st.floats(0, 1))
def test_a_nearer_number_never_scores_less(target: float, far: float, share: float) -> None:
    near = target + (far - target) * share
    assert official_mra(near, target) >= official_mra(far, target) - 0.1  # one threshold for rounding
    assert official_mra(target, target) == 1 == vlmevalkit_mra(target, target)


@given(st.text())
def test_no_reply_breaks_a_reader(text: str) -> None:
    for read in (first_number_or_word, last_number, lenient_number, lenient_letter, tail_letter, strip_reasoning):
        read(text)


@given(st.sampled_from([*NUMBER_TYPES, *CHOICE_TYPES]), st.text(), st.sampled_from(["A", "4", "0", "-2"]))
def test_every_profile_scores_every_reply(question_type: str, text: str, answer: str) -> None:
    for name in PROFILES:
        if name.startswith("vsi."):
            scored = get_profile(name).rule(text, Question(answer, question_type, ("A. x", "B. y")))
            assert 0 <= scored.score <= 1


def test_a_target_of_zero_is_right_only_for_zero() -> None:
    rule = get_profile("vsi.official").rule
    assert [rule(text, Question("0", "object_counting")).score for text in ("0", "1")] == [1, 0]


@pytest.mark.parametrize(("a", "b"), [((3, 3), (3, 3)), ((5, 1), (5, 1)), ((5, 1), (0, 9)), ((1, 3), (3, 5))])
def test_spans_without_length_or_without_a_common_part_do_not_overlap(
    a: tuple[float, float], b: tuple[float, float]
) -> None:
    assert interval_iou(a, b) == 0 == interval_iou(b, a)


def test_an_unreadable_reply_is_wrong_and_said_to_be_unreadable() -> None:
    for name, text in (("vsi.official", "(B)"), ("vsi.vlmevalkit", "B or C"), ("vsi.lenient", "Apple")):
        scored = get_profile(name).rule(text, Question("B", "route_planning", ("A. x", "B. y")))
        assert (scored.score, scored.parsed) == (0, False)


def test_an_unknown_question_type_is_refused() -> None:
    with pytest.raises(ValueError, match="captioning"):
        get_profile("vsi.official").rule("A", Question("A", "captioning"))


def test_an_unknown_profile_is_refused_with_the_known() -> None:
    with pytest.raises(CapabilityError, match=r"vsi\.official"):
        get_profile("vsi")


@pytest.mark.parametrize("name", PROFILES)
def test_profiles_are_named_as_registered_and_say_their_source(name: str) -> None:
    profile = get_profile(name)
    assert profile.name == name and profile.version >= 1 and profile.source


def test_the_documents_name_every_profile() -> None:
    text = (HERE.parents[1] / "docs" / "benchmarks.md").read_text()
    for name in PROFILES:
        family = f"{name.rpartition('.')[0]}.*" if name.startswith(("charades", "timelens")) else name
        assert f"`{family}`" in text, name


ANSWERS = {"charades": [1.0, 2.0], "timelens": [[1.0, 2.0]], "jumpscore": '["1.20s"]', "vsi": "A", "revsi": "A"}


@given(st.text())
def test_no_reply_breaks_a_profile(text: str) -> None:
    for name in PROFILES:
        benchmark = name.partition(".")[0]
        kind = "multi-choice" if benchmark == "tempcompass" else "route_planning"
        question = Question(ANSWERS.get(benchmark, "A"), kind, ("A. x", "B. y", "C. z"), judgement=text)
        assert 0 <= get_profile(name).rule(text, question).score <= 1


def test_a_longer_announcement_behind_a_shorter_one_is_read() -> None:
    assert ranked("the answer is open: Ay, By. Yet the best answer is Ay", "AB") == "A"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("The event happens in 5.0 - 10.0 seconds", (5, 10)), ("5s-10s", (5, 10)), ("[5, 10]", (5, 10)),
        ("It starts at 5.0 seconds and ends at 10.0.", (5, 10)), ("0:05 to 0:10", (5, 10)), ("5 10", None),
        ("1:02:03 - 1:02:05.5", (3723, 3725.5)), ("10.5 \u2013 5.25 s", (5.25, 10.5)), ("at 5 s", None), ("", None),
        ("<think>1 - 2</think>3 to 4", (3, 4)), ("<think>1 - 2", None), ("The man enters at the start.", None),
        ("from 12 until 15 secs", (12, 15)), ("between 3 and 7 seconds", (3, 7)), ("starts: 3 s, ends: 9 s", (3, 9)),
    ],
)  # fmt: skip
def test_lenient_span(reply: str, expected: tuple[float, float] | None) -> None:
    assert lenient_span(reply) == ([] if expected is None else [expected])
    scored = get_profile("timelens.lenient.r50").rule(reply, Question(list(expected or (0, 1))))
    assert (scored.score, scored.parsed) == (float(expected is not None), expected is not None)
