"""Tables and comparisons from made-up replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.benchmarks.test_import import TYPES
from vidpipe.benchmarks.compare import compare
from vidpipe.benchmarks.load import load_predictions
from vidpipe.benchmarks.predictions import Prediction, Predictions
from vidpipe.benchmarks.profile import Profile, Question, Scored
from vidpipe.benchmarks.registry import get_profile
from vidpipe.benchmarks.score import make_table
from vidpipe.benchmarks.vsi import NUMBER_TYPES
from vidpipe.cli.app import app
from vidpipe.errors import ManifestError, RecipeError

PLAIN = Profile("test.plain", 1, "this test", lambda text, question: Scored(float(text == question.answer), text))


def rows(texts: list[str | None], question_type: str = "route_planning", answer: Any = "A") -> list[Prediction]:
    return [
        Prediction(f"{question_type}{i}", text, Question(answer, question_type), f"clip{i // 2}")
        for i, text in enumerate(texts)
    ]


def run(found: list[Prediction], expected: int | None = None) -> Predictions:
    return Predictions("made up", found, len(found) if expected is None else expected)


def test_groups_weigh_the_same_whatever_their_rows() -> None:
    found = [
        row for i, name in enumerate(TYPES) for row in rows(["4" if name in NUMBER_TYPES else "A"] * (i + 1), name)
    ]
    found = [
        Prediction(row.id, row.text, Question("4" if row.text == "4" else "A", row.question.question_type), row.clip)
        for row in found
    ]
    wrong = [
        Prediction(row.id, "B" if row.question.question_type.endswith("easy") else row.text, row.question, row.clip)
        for row in found
    ]
    table, _ = make_table(run(wrong), wrong, get_profile("vsi.official"))
    assert table.headline.estimate.value == pytest.approx((7 + 2 / 3) / 8)
    assert not table.partial and len(table.groups) == 8 and len(table.types) == 10


def test_failed_unparsed_cut_and_unscored_rows_are_counted_and_wrong() -> None:
    found = [*rows(["A", "(A)", None, "A"]), Prediction("x", "A", Question(None, "route_planning"), "c")]
    table, scored = make_table(run(found), found, get_profile("vsi.official"))
    whole = table.headline
    assert (whole.estimate.value, whole.estimate.rows, whole.estimate.clips) == (0.5, 4, 2)
    assert (whole.unparsed, whole.failed, table.unscored) == (1, 1, 1)
    assert [one.score for one in scored.scored] == [1, 0, 0, 1]


def test_a_table_with_types_or_rows_missing_is_partial() -> None:
    found = rows(["A", "A"])
    table, _ = make_table(run(found), found, get_profile("vsi.official"))
    assert table.partial and len(table.missing_types) == 9
    table, _ = make_table(run(found, expected=3), found, PLAIN)
    assert table.partial and table.missing_rows == 1
    assert not make_table(run(found), found, PLAIN)[0].partial


def test_what_cannot_be_scored_is_refused_in_words() -> None:
    with pytest.raises(RecipeError, match=r"row 'captions0' cannot be scored.*'captions' is none"):
        make_table(run([]), rows(["A"], "captions"), get_profile("vsi.official"))
    with pytest.raises(RecipeError, match="none of 1 row has an answer"):
        make_table(run([]), rows(["A"], answer=None), PLAIN)


def test_reasoning_is_taken_out_only_when_asked() -> None:
    found = rows(["<think>B?</think>A"])
    assert make_table(run(found), found, PLAIN)[0].headline.estimate.value == 0
    table, _ = make_table(run(found), found, PLAIN, lambda text: text.partition("</think>")[2])
    assert table.headline.estimate.value == 1


def test_a_comparison_pairs_rows_and_clusters_their_differences() -> None:
    a, b = rows(["A", "B", "B", "A", "B", "B"]), rows(["A", "A", "A", "A", "B", "A"])
    found = compare(run(a), run([*b, *rows(["A"], "more")]), PLAIN)
    assert (found.matched, found.only_a, found.only_b) == (6, 0, 1)
    assert found.overall.difference.value == pytest.approx(0.5) and found.overall.difference.clips == 3
    assert (found.overall.wins, found.overall.losses) == (3, 0)
    assert found.overall.mcnemar_p == pytest.approx(0.25) and not found.groups
    assert [(one.name, one.wins, one.mcnemar_p) for one in found.types] == [("route_planning", 3, pytest.approx(0.25))]
    assert found.overall.difference.stderr == 0  # every clip gains the same
    assert found.won == ("route_planning1", "route_planning2", "route_planning5") and found.lost == ()


def test_runs_of_other_questions_are_not_compared() -> None:
    with pytest.raises(RecipeError, match="other questions"):
        compare(run(rows(["A"])), run(rows(["A"], answer="B")), PLAIN)
    with pytest.raises(RecipeError, match="no row in common"):
        compare(run(rows(["A"])), run(rows(["A"], "other")), PLAIN)


def write(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_predictions_of_other_tools(tmp_path: Path) -> None:
    ours = write(
        tmp_path / "a.jsonl",
        [{"id": 1, "prediction": "B", "ground_truth": "B", "question_type": "route_planning", "options": ["A. x"]}],
    )
    (row,) = load_predictions(ours).rows
    assert (row.id, row.text, row.question) == ("1", "B", Question("B", "route_planning", ("A. x",)))
    doc = {"id": 7, "dataset": "scannet", "scene_name": "s", "question_type": "route_planning", "question": "?"}
    sample = {"doc_id": 0, "doc": {**doc, "ground_truth": "A", "options": ["A. x"]}, "filtered_resps": ["A"]}
    logs = write(tmp_path / "samples.jsonl", [sample])
    (row,) = load_predictions(logs, "vsi").rows
    assert (row.id, row.clip, row.text) == ("7", "scannet/s", "A")
    result = CliRunner().invoke(app, ["score", str(logs), "--profile", "vsi.official", "--json"])
    assert json.loads(result.stdout)["tables"][0]["overall"]["score"] == 100


def test_broken_files_of_predictions_are_refused(tmp_path: Path) -> None:
    for records in ([{"id": 1, "text": "A"}] * 2, [{"text": "A"}], [{"id": 1, "text": 4}]):
        with pytest.raises(ManifestError):
            load_predictions(write(tmp_path / "a.jsonl", records))
    (tmp_path / "x.parquet").write_text("no")
    with pytest.raises(ManifestError):
        load_predictions(tmp_path / "x.parquet")
    for wrong in (tmp_path, tmp_path / "x.txt"):
        with pytest.raises(RecipeError):
            load_predictions(wrong)


def test_what_each_row_scored_is_json_even_for_a_reading_of_nan(tmp_path: Path) -> None:
    record = {"id": "a", "text": "nan", "answer": "4", "question_type": "object_counting"}
    source, out = write(tmp_path / "a.jsonl", [record]), tmp_path / "rows.jsonl"
    result = CliRunner().invoke(app, ["score", str(source), "--profile", "vsi.official", "--rows", str(out)])
    assert result.exit_code == 0, result.output
    row = json.loads(out.read_text(), parse_constant=pytest.fail)
    assert (row["extracted"], row["score"], row["profile"]) == ("nan", 0, "vsi.official@1")


def test_no_interval_that_is_shown_passes_0_or_100(tmp_path: Path) -> None:
    def replies(name: str, texts: str) -> str:
        records = [{"id": i, "text": text, "answer": "A", "clip_id": str(i)} for i, text in enumerate(texts)]
        return str(write(tmp_path / name, records))

    a, b, asked = replies("a.jsonl", "ABBB"), replies("b.jsonl", "AAAB"), ["--profile", "exact"]
    shown = CliRunner().invoke(app, ["score", b, *asked])
    assert " 75.00 [26.00, 100.00]" in shown.stdout, shown.output
    assert json.loads(CliRunner().invoke(app, ["score", a, *asked, "--json"]).stdout)["tables"][0]["overall"][
        "interval_95"
    ] == [0, pytest.approx(74, abs=0.01)]
    shown = CliRunner().invoke(app, ["compare", a, b, *asked])
    assert " +50.00 [-6.58, +100.00]" in shown.stdout, shown.output


def test_several_profiles_and_several_scorers(tmp_path: Path) -> None:
    records = [
        {"id": "a", "text": "(B)", "answer": "B", "question_type": "route_planning", "scorer": "vsi.official"},
        {"id": "b", "text": "B", "answer": "B", "scorer": "videomme.official"},
    ]
    source = write(tmp_path / "a.jsonl", records)
    tables = json.loads(CliRunner().invoke(app, ["score", str(source), "--json"]).stdout)["tables"]
    assert [(t["profile"], t["overall"]["score"]) for t in tables] == [("vsi.official", 0), ("videomme.official", 100)]
    result = CliRunner().invoke(app, ["compare", str(source), str(source)])
    assert isinstance(result.exception, RecipeError | SystemExit) and result.exit_code != 0


def test_mcnemar_is_only_for_rows_that_are_right_or_wrong() -> None:
    a = [*rows(["A", "B"]), *rows(["4", "5"], "object_counting", "4")]
    found = compare(run(a), run(a), get_profile("vsi.official"))
    assert found.overall.mcnemar_p is None  # 5 for 4 scores between
    assert {one.name: one.mcnemar_p for one in found.types} == {"object_counting": None, "route_planning": 1}
    assert {one.name for one in found.groups} == {"object_counting", "route_planning"}


def test_clips_to_see_a_point_follow_from_the_error() -> None:
    from vidpipe.benchmarks.uncertainty import Estimate, clips_to_see

    assert clips_to_see(0.01, Estimate(0.5, 900, 300, 0.01)) == 2355  # 300 * (1.96 + 0.8416)^2
    assert clips_to_see(0.01, Estimate(0.5, 900, 300, 0.02)) == 9419
    assert clips_to_see(1, Estimate(0.5, 900, 300, 0.01)) == 2, "one clip tells nothing of how clips differ"
    assert clips_to_see(0.01, Estimate(0.5, 4, 1, None)) is None


def sets(replies: str, structure: str = "[1,2,3,4]", kind: str = "logic") -> list[Prediction]:
    """Four rows a set, `.` for a right reply, in an order that is not the file's."""
    found = [
        Prediction(
            f"q{place}", None if reply == "?" else "B" if reply == "." else "C", Question("B", kind), f"v{place // 4}",
            categories={"group_structure": structure}, set_id=f"v{place // 4}", set_index=place % 4,
        )
        for place, reply in enumerate(replies)
    ]  # fmt: skip
    return found[::-1]


def test_sets_are_scored_together_and_are_what_is_counted() -> None:
    found = sets("......x.x...")
    table, scored = make_table(run(found), found, get_profile("videomme_v2.ov2"))
    assert sorted(one.score for one in scored.scored) == [0, 0.25, 1]
    assert (table.headline.estimate.value, table.headline.estimate.rows) == (pytest.approx(1.25 / 3), 3)
    assert not table.partial and table.incomplete_sets == 0
    found = sets("x.xx", "[[1,2],3,4]")
    assert make_table(run(found), found, get_profile("videomme_v2.ov2"))[0].headline.estimate.value == pytest.approx(
        0.1
    )


def test_sets_are_compared_as_sets() -> None:
    found = compare(run(sets("....x...")), run(sets("...xx...")), get_profile("videomme_v2.ov2"))
    assert (found.overall.difference.rows, found.overall.losses, found.lost) == (2, 1, ("v0",))
    assert found.overall.difference.value == pytest.approx(-7 / 16 / 2)


def test_a_set_with_rows_missing_is_left_out_and_said() -> None:
    found = sets("......x.")[1:]
    table, _ = make_table(run(found, expected=8), found, get_profile("videomme_v2.ov2"))
    assert (table.headline.estimate.rows, table.incomplete_sets, table.partial) == (1, 1, True)
    with pytest.raises(RecipeError, match="none of the 1 sets has its 4 rows"):
        make_table(run([]), sets("..."), get_profile("videomme_v2.ov2"))
    failed = sets("...?")
    table, _ = make_table(run(failed), failed, get_profile("videomme_v2.ov2"))
    assert (table.headline.failed, table.headline.estimate.value) == (1, pytest.approx(9 / 16))


def test_rows_without_a_set_or_with_an_unknown_kind_are_refused() -> None:
    with pytest.raises(RecipeError, match="has no set_id"):
        make_table(run([]), rows(["B"]), get_profile("videomme_v2.ov2"))
    with pytest.raises(RecipeError, match="neither relevance nor logic"):
        make_table(run([]), sets("....", kind="riddle"), get_profile("videomme_v2.ov2"))


def test_replies_cut_inside_their_reasoning_are_counted() -> None:
    found = [
        Prediction(str(n), text, Question("A"), str(n), cut=n < 2) for n, text in enumerate(["<think>a", "A", "A"])
    ]
    table, _ = make_table(run(found), found, PLAIN)
    assert (table.cut, table.cut_reasoning) == (2, 1)


def invoke(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, (result.output, result.exception)
    return result


def test_a_judges_replies_are_joined_by_id(tmp_path: Path) -> None:
    records = [{"id": n, "text": "a dog", "answer": "dog", "question_type": "object"} for n in range(3)]
    source = write(tmp_path / "a.jsonl", records)
    verdicts = [{"id": 0, "text": "{'pred': 'yes', 'score': 4}"}, {"id": 1, "response": "{'pred': 'no', 'score': 1}"}]
    judge = write(tmp_path / "judge.jsonl", verdicts)
    names = ("--profile", "activitynetqa.judge", "--profile", "activitynetqa.judge_score")
    document = json.loads(invoke("score", source, *names, "--judge", judge, "--json").stdout)
    accuracy, score = (table["overall"] for table in document["tables"])
    assert (accuracy["score"], accuracy["unparsed"]) == (pytest.approx(100 / 3), 1)
    assert score["score"] == pytest.approx(100 / 3) and document["judge"] == str(judge)
    result = CliRunner().invoke(app, ["score", str(source), *names])
    assert isinstance(result.exception, RecipeError | SystemExit) and result.exit_code != 0
    for wrong in ([{"id": 9, "text": "x"}], [{"id": 0}], verdicts[:1] * 2):
        write(judge, wrong)
        assert CliRunner().invoke(app, ["score", str(source), *names, "--judge", str(judge)]).exit_code != 0


def test_tempcompass_asks_the_judge_only_where_no_rule_matches(tmp_path: Path) -> None:
    question = {"answer": "A. slow", "question_type": "multi-choice"}
    records = [{"id": 0, "text": "It is slow", **question}, {"id": 1, "text": "B", **question}]
    judge = write(tmp_path / "judge.jsonl", [{"id": n, "text": "Correct"} for n in range(2)])
    source = write(tmp_path / "a.jsonl", records)
    document = json.loads(invoke("score", source, "--profile", "tempcompass.judge", "--judge", judge, "--json").stdout)
    assert document["tables"][0]["overall"]["score"] == 50


def test_a_submission_holds_every_row_and_guesses_none(tmp_path: Path) -> None:
    options = ["A. cup", "B. book"]
    records = [{"id": uid, "text": text, "options": options} for uid, text in (("a", "B."), ("b", "?"), ("c", None))]
    source, out = write(tmp_path / "a.jsonl", records), tmp_path / "out.json"
    result = invoke("score", source, "--profile", "egoschema.lmms_main", "--submission", out, "--json")
    assert json.loads(out.read_text()) == {"a": 1, "b": None, "c": None}
    assert json.loads(result.stdout)["tables"] == [] and "2 of them null; nothing was sent" in result.stderr
    write(source, [{**records[0], "answer": 1}, *records[1:]])
    result = invoke("score", source, "--profile", "longvideobench.lmms_main", "--submission", out, "--json")
    assert json.loads(out.read_text()) == {"a": "B.", "b": "?", "c": None}
    assert json.loads(result.stdout)["tables"][0]["overall"]["score"] == 100


def test_an_index_may_come_as_text_from_csv(tmp_path: Path) -> None:
    record = {"id": 1, "text": "C", "answer": "2", "answer_type": "choice_index", "options": ["1", "2", "3"]}
    source = write(tmp_path / "a.jsonl", [record])
    assert "100.00" in invoke("score", source, "--profile", "nextqa.lmms_main").stdout
    write(source, [{**record, "answer": "x"}])
    assert CliRunner().invoke(app, ["score", str(source), "--profile", "nextqa.lmms_main"]).exit_code != 0


def test_the_official_video_mme_file_brings_its_replies(tmp_path: Path) -> None:
    question = {"question_id": "001-1", "task_type": "t", "question": "?", "options": ["A. x", "B. y"], "answer": "B"}
    video = {"video_id": "001", "duration": "short", "domain": "d", "sub_category": "s"}
    path = tmp_path / "output.json"
    path.write_text(json.dumps([{**video, "questions": [{**question, "response": "B. y"}]}]))
    (table,) = json.loads(invoke("score", path, "--profile", "videomme.official", "--json").stdout)["tables"]
    assert table["overall"]["score"] == 100 and table["breakdowns"]["duration"][0]["name"] == "short"


def test_format_failures_are_a_share_of_the_rows(tmp_path: Path) -> None:
    records = [
        {"id": n, "text": text, "answer": "A", "question_type": "route_planning"} for n, text in enumerate("A(BC")
    ]
    source = write(tmp_path / "a.jsonl", records)
    result = invoke("score", source, "--profile", "vsi.official")
    assert (
        "1 unparsed (wrong; format failures 25.00 %)" in result.stdout and "sees one point with about" in result.stdout
    )


def test_stripping_is_a_recorded_step_and_the_raw_reply_stays(tmp_path: Path) -> None:
    record = {"id": 1, "text": "<think>B</think>A", "answer": "A", "question_type": "route_planning"}
    source, out = write(tmp_path / "a.jsonl", [record]), tmp_path / "rows.jsonl"
    profile = ("--profile", "vsi.official", "--rows", out, "--json")
    documents = [json.loads(invoke("score", source, *profile, *flag).stdout) for flag in ((), ("--strip-reasoning",))]
    assert [document["strip_reasoning"] for document in documents] == [False, True]
    assert [document["tables"][0]["overall"]["score"] for document in documents] == [0, 100]
    assert json.loads(out.read_text()) | {"answer": ""} == {
        "id": "1", "profile": "vsi.official@1", "text": "<think>B</think>A", "stripped": "A", "extracted": "A",
        "parsed": True, "answer": "", "score": 1.0,
    }  # fmt: skip
    compared = json.loads(invoke("compare", source, source, *profile[:2], "--strip-reasoning", "--json").stdout)
    assert compared["strip_reasoning"] and compared["overall"]["score_a"] == 100


def test_lmms_evals_logs_of_a_benchmark_that_names_its_task_by_the_file(tmp_path: Path) -> None:
    doc = {"video": "a.mp4", "question": "What?", "candidates": ["Sit.", "Run."], "answer": "Run."}
    samples = [{"doc_id": n, "doc": doc, "filtered_resps": [reply]} for n, reply in enumerate(("B.", "A."))]
    source = write(tmp_path / "20261130_samples_mvbench_state_change.jsonl", samples)
    result = invoke("score", source, "--profile", "mvbench.lmms_main", "--json")
    (table,) = json.loads(result.stdout)["tables"]
    assert table["types"][0]["name"] == "state_change" and table["overall"]["score"] == 50 and table["partial"]
    write(source, [{"doc_id": 0, "doc": {"video": "a.mp4"}, "filtered_resps": ["B"]}])
    with pytest.raises(ManifestError, match="record 1: its doc is not what mvbench publishes: KeyError"):
        load_predictions(source, "mvbench")
