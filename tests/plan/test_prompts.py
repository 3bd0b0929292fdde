import pytest

from vidpipe.errors import RecipeError, RowError
from vidpipe.manifest.row import Row
from vidpipe.plan.prompts import PromptTemplate, lettered, messages_for


def row(**values: object) -> Row:
    fields = {"index": 0, "line": 1, "id": "r", "video": "v", "values": values}
    return Row(**{**fields, **{k: v for k, v in values.items() if k in ("question", "text", "options", "system")}})  # type: ignore[arg-type]


def test_question_and_options_without_a_template() -> None:
    text = PromptTemplate(None).user_text(row(question="Where?", options=("left", "right")))
    assert text == "Where?\nA. left\nB. right"


def test_options_that_bring_letters_stay_as_they_are() -> None:
    assert lettered(["A. x", "B. y"]) == ["A. x", "B. y"]
    assert lettered(["(A) x", "(B) y"]) == ["(A) x", "(B) y"]
    assert lettered(["B. x", "A. y"]) == ["A. B. x", "B. A. y"], "not in order: they are texts"
    with pytest.raises(RowError) as caught:
        lettered([str(i) for i in range(27)])
    assert caught.value.kind == "bad_options"


def test_template_over_columns() -> None:
    template = PromptTemplate("{{ question }} Answer with {{ n }} words.\n")
    assert template.user_text(row(question="Why?", n=3)) == "Why? Answer with 3 words.\n"
    assert template.user_text(row(text="finished {{ x }}")) == "finished {{ x }}", "a prompt column is not a template"


def test_what_a_template_cannot_do() -> None:
    with pytest.raises(RecipeError, match="not a Jinja2 template"):
        PromptTemplate("{% if %}")
    with pytest.raises(RowError, match="'nothing' is undefined"):
        PromptTemplate("{{ nothing }}").user_text(row())
    with pytest.raises(RowError):
        PromptTemplate("{{ question.__class__.__mro__ }}").user_text(row(question="x"))
    with pytest.raises(RowError):
        PromptTemplate("{{ 1 / 0 }}").user_text(row())


def test_video_comes_before_the_text() -> None:
    system, user = messages_for(row(), "What?", "Be brief.")
    assert system == {"role": "system", "content": "Be brief."}
    assert [part["type"] for part in user["content"]] == ["video", "text"]
    assert messages_for(row(system="Own."), "What?", "Be brief.")[0]["content"] == "Own."
    assert len(messages_for(row(), "What?", None)) == 1
