import pytest

from vidpipe.errors import RecipeError, RowError
from vidpipe.manifest.row import Medium, Row
from vidpipe.plan.prompts import PromptTemplate, lettered, messages_for

FIELDS = ("media", "question", "text", "options", "option_style", "system", "prefill", "messages")


def row(**values: object) -> Row:
    fields = {"index": 0, "line": 1, "id": "r", "media": (Medium("video", "v"),), "values": values}
    return Row(**{**fields, **{k: v for k, v in values.items() if k in FIELDS}})  # type: ignore[arg-type]


def test_question_and_options_without_a_template() -> None:
    text = PromptTemplate(None).user_text(row(question="Where?", options=("left", "right")))
    assert text == "Where?\nA. left\nB. right"


def test_options_that_bring_letters_stay_as_they_are() -> None:
    assert lettered(["A. x", "B. y"], "auto") == ["A. x", "B. y"]
    assert lettered(["(A) x", "(B) y"], "auto") == ["(A) x", "(B) y"]
    assert lettered(["B. x", "A. y"], "auto") == ["A. B. x", "B. A. y"], "not in order: they are texts"
    with pytest.raises(RowError) as caught:
        lettered([str(i) for i in range(27)], "auto")
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


@pytest.mark.parametrize(
    "source",
    [
        "{{ question }} {{ n }} {{ options | join }} {{ range(3) | list }}",
        "{% if hint is defined %}{{ hint }}{% endif %}",
        "{{ hint | default('none') }}",
        "{% set x = question %}{% for o in options %}{{ loop.index }}{{ o }}{{ x }}{% endfor %}",
    ],
)
def test_names_that_a_template_may_use(source: str) -> None:
    PromptTemplate(source).refuse_unknown_names(["id", "question", "n"])


def test_names_that_no_column_has_are_refused_before_any_row() -> None:
    with pytest.raises(RecipeError, match=r"asks for 'questoin'.*Did you mean 'question'.*It has 'id', 'options', "):
        PromptTemplate("{{ questoin }}").refuse_unknown_names(["id", "question"])
    with pytest.raises(RecipeError, match="asks for 'b'"):
        PromptTemplate("{% if question %}{{ b.c }}{% endif %}").refuse_unknown_names(["question"])
    PromptTemplate(None, "vsi.official").refuse_unknown_names(["id"])


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__base__.__subclasses__() }}",
        "{{ question.format.__globals__ }}",
        "{{ options.append('x') }}",
        "{{ cycler.__init__.__globals__.os.system('true') }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
        "{{ range(10 ** 9) | list }}",
    ],
)
def test_templates_stay_in_their_sandbox(source: str) -> None:
    with pytest.raises(RowError) as caught:
        PromptTemplate(source).user_text(row(question="x", options=("a",)))
    assert caught.value.kind == "bad_value"


def test_media_come_before_the_text() -> None:
    template = PromptTemplate("{{ question }}")
    system, user = messages_for(row(question="What?"), template, "Be brief.")
    assert system == {"role": "system", "content": "Be brief."}
    assert user["content"] == [{"type": "video"}, {"type": "text", "text": "What?"}]
    assert messages_for(row(question="What?", system="Own."), template, "Be brief.")[0]["content"] == "Own."
    assert len(messages_for(row(question="What?"), template, None)) == 1
    media = (Medium("image", "i"), Medium("frames", "f"), Medium("video", "v"))
    (user,) = messages_for(row(question="What?", media=media), template, None)
    assert [part["type"] for part in user["content"]] == ["image", "video", "video", "text"]
    (user,) = messages_for(row(question="What?", media=()), template, None)
    assert user["content"] == [{"type": "text", "text": "What?"}]


def test_a_prefill_is_the_assistants_open_turn() -> None:
    turns = messages_for(row(question="What?", prefill="Best option:("), PromptTemplate(None), None)
    assert turns[-1] == {"role": "assistant", "content": "Best option:("}


def test_a_chat_of_its_own_is_taken_as_it_is() -> None:
    own = ({"role": "user", "content": "Hi"},)
    assert messages_for(row(messages=own, question="not asked"), PromptTemplate("{{ absent }}"), "Be brief.") == own


@pytest.mark.parametrize(
    ("style", "without", "within"),
    [
        (None, "A. left\nB. right", "left|right"),
        ("auto", "A. left\nB. right", "A. left|B. right"),
        ("dot", "A. left\nB. right", "A. left|B. right"),
        ("paren", "(A) left\n(B) right", "(A) left|(B) right"),
        ("as_is", "left\nright", "left|right"),
    ],
)
def test_option_styles(style: str | None, without: str, within: str) -> None:
    asked = row(question="Where?", options=("left", "right"), option_style=style)
    assert PromptTemplate(None).user_text(asked) == f"Where?\n{without}", "without a template"
    assert PromptTemplate("{{ options | join('|') }}").user_text(asked) == within, "a template letters them itself"
