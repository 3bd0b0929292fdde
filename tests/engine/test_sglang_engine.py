"""SGLang behind the common interface, with a stand-in for its `Engine`; the real one: `test_sglang_real.py`."""

from __future__ import annotations

import hashlib
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.engine import sglang_stand_in as stand_in
from tests.engine.sglang_stand_in import TooBusyError, answer
from vidpipe.engine import sglang_environment
from vidpipe.engine.group import EngineGroup
from vidpipe.engine.interface import NO_DEMANDS, Demands, EngineInput, Refusal, Reply
from vidpipe.engine.registry import make_engine
from vidpipe.engine.sglang_engine import SglangEngine
from vidpipe.engine.sglang_prepare import SglangPrompt
from vidpipe.engine.sglang_sampling import SEEDED, one_of
from vidpipe.errors import CapabilityError, EngineError
from vidpipe.recipe.schema import EngineSection, Generation, Model

MOSS = Demands(architectures=("MossVLForConditionalGeneration",))
IMAGE = 7


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sglang_environment, "installed", lambda: "0.5.23")
    monkeypatch.setattr(sglang_environment, "prepare", lambda checkpoint: None)
    monkeypatch.setitem(sys.modules, "sglang", None)
    stand_in.put_in_place()
    for name, value in (("script", {}), ("seconds", {}), ("made", []), ("start_error", None)):
        monkeypatch.setattr(stand_in.Engine, name, value)
    before = signal.getsignal(signal.SIGQUIT)
    yield
    signal.signal(signal.SIGQUIT, before)


@pytest.fixture
def engine() -> Iterator[SglangEngine]:
    made = started()
    yield made
    made.stop()
    made.stop()
    assert stand_in.Engine.made[-1].stopped == 1


def started(demands: Demands = MOSS, **args: Any) -> SglangEngine:
    engine = SglangEngine(Model(path="x"), EngineSection(name="sglang", args=args), "x", demands)
    if demands is MOSS:
        engine._refuse_other_processor = lambda: None  # type: ignore[method-assign]
    engine.start()
    return engine


def row(name: str, first: int, slots: int = 5, **generation: Any) -> EngineInput:
    ids = (first, IMAGE, IMAGE, 3)
    prompt = SglangPrompt(ids, {"image_data": [{"format": "processor_output"}]} if slots else {}, slots)
    return EngineInput(name, Generation(**generation), len(ids) + slots, prompt, (IMAGE,), name)


def all_of(engine: SglangEngine, count: int) -> dict[str, Reply | Refusal]:
    found: dict[str, Reply | Refusal] = {}
    until_s = time.monotonic() + 10
    while len(found) < count:
        assert time.monotonic() < until_s, found
        found |= {reply.id: reply for reply in engine.poll()}
    return found


def refused(engine: SglangEngine, asked: EngineInput) -> tuple[str, str]:
    engine.submit(asked)
    (found,) = all_of(engine, 1).values()
    assert isinstance(found, Refusal)
    return found.error.kind, str(found.error)


def test_answers_come_by_id_as_they_are_done(engine: SglangEngine) -> None:
    stand_in.Engine.script = {1: answer("first"), 2: answer("a b", "length")}
    stand_in.Engine.seconds = {1: 0.4}
    assert (engine.version, engine.kv_tokens, engine.batch_rows) == ("sglang 0.5.23", 1000, 64)
    for asked in (row("slow", 1), row("quick", 2, slots=0)):
        engine.submit(asked)
    order: list[str] = []
    while len(order) < 2:
        order += all_of(engine, 1)
    assert order == ["quick", "slow"] and engine.steps >= 2
    engine.submit(row("again", 2))
    found = all_of(engine, 1)["again"]
    sha = hashlib.sha256(np.array([2, IMAGE, IMAGE, 3], "<i4").tobytes()).hexdigest()
    assert found == Reply("again", "a b", "length", sha, 4, 2, 5, None, 0.5)
    assert engine.poll() == []


def test_vision_tokens_are_slots_of_the_encoder_or_stand_in_the_prompt(engine: SglangEngine) -> None:
    for asked in (row("across", 1, slots=9), row("within", 1, slots=0)):
        engine.submit(asked)
    found = all_of(engine, 2)
    kept = {name: reply.vision_tokens_kept for name, reply in found.items() if isinstance(reply, Reply)}
    assert kept == {"across": 9, "within": 2}


def test_signs_of_life_are_steps_while_there_is_work(engine: SglangEngine) -> None:
    """A step without work would be a message of a member of a group that has nothing to say."""
    manager = stand_in.Engine.made[-1].tokenizer_manager
    manager.last_receive_tstamp = 1.0
    assert engine.poll() == [] and engine.steps == 0
    stand_in.Engine.seconds = {1: 0.5}
    engine.submit(row("long", 1))
    assert engine.poll() == [] and engine.steps == 1
    assert engine.poll() == [] and engine.steps == 1
    manager.last_receive_tstamp = 2.0
    assert engine.poll() == [] and engine.steps == 2
    assert set(all_of(engine, 1)) == {"long"}


def test_one_request_fails_alone(engine: SglangEngine) -> None:
    long = "The input (99 tokens) is longer than the model's context length (50 tokens)."
    stand_in.Engine.script = {
        1: ValueError(long),
        2: ValueError("Multimodal prompt is too long after expanding multimodal tokens. [...] => 4376 >= 2042."),
        3: ValueError("json_schema is wrong"),
        4: TooBusyError(503, "Retracted under decode memory pressure"),
        5: KeyError("grid"),
    }
    for number in range(1, 7):
        engine.submit(row(f"r{number}", number))
    found = all_of(engine, 6)
    kinds = {name: reply.error.kind for name, reply in found.items() if isinstance(reply, Refusal)}
    assert kinds == {
        "r1": "prompt_too_long",
        "r2": "prompt_too_long",
        "r3": "bad_value",
        "r4": "no_completion",
        "r5": "bad_value",
    }
    assert isinstance(found["r6"], Reply) and found["r6"].text == "yes"
    errors = {name: str(reply.error) for name, reply in found.items() if isinstance(reply, Refusal)}
    assert "engine.args.context_length" in errors["r1"] and "503" in errors["r4"]


def test_an_aborted_request_has_no_answer(engine: SglangEngine) -> None:
    stand_in.Engine.script = {1: answer("half an ans", "abort")}
    engine.submit(row("r", 1))
    (found,) = all_of(engine, 1).values()
    assert isinstance(found, Reply) and found.text is None and found.finish_reason is None


def test_a_request_that_was_taken_back_is_no_answer_where_frames_are_let_go(engine: SglangEngine) -> None:
    stand_in.Engine.script = {1: answer("nonsense", retractions=1)}
    kind, message = refused(engine, row("moss", 1))
    assert kind == "no_completion" and "max_running_requests" in message
    engine.submit(row("qwen", 1, slots=0))  # its tokens stand in the prompt, and are computed again
    (found,) = all_of(engine, 1).values()
    assert isinstance(found, Reply) and found.text == "nonsense"


def test_a_dying_scheduler_is_a_dead_engine(engine: SglangEngine) -> None:
    stand_in.Engine.script = {1: "die"}
    for asked in (row("good", 2), row("bad", 1)):  # the last one, for nothing can be submitted once it has died
        engine.submit(asked)
    found: list[Reply | Refusal] = []
    with pytest.raises(EngineError, match="a process of SGLang's failed") as caught:
        while True:
            found += engine.poll()
    assert caught.value.kind == "engine_dead" and {reply.id for reply in found} <= {"good"}
    with pytest.raises(EngineError):
        engine.submit(row("more", 2))


def test_a_new_engine_does_not_inherit_the_death_of_the_last() -> None:
    stand_in.Engine.script = {1: "die"}
    first = started()
    first.submit(row("bad", 1))
    with pytest.raises(EngineError):
        while True:
            first.poll()
    first.stop()
    second = started()
    second.submit(row("good", 2))
    assert set(all_of(second, 1)) == {"good"}
    second.stop()


@pytest.mark.parametrize("error", [RuntimeError("no GPU"), SystemExit(1), EOFError()])
def test_one_that_does_not_start(error: BaseException) -> None:
    stand_in.Engine.start_error = error
    with pytest.raises(EngineError, match="SGLang cannot start") as caught:
        started()
    assert caught.value.kind == "engine_start"


def test_another_processor_than_ours_does_not_start() -> None:
    engine = SglangEngine(Model(path="x"), EngineSection(name="sglang"), "x", MOSS)
    with pytest.raises(EngineError, match=r"took builtins\.object for Moss-VL"):
        engine.start()
    engine = SglangEngine(Model(path="x"), EngineSection(name="sglang"), "x")  # other families go through SGLang's own
    engine.start()
    engine.stop()


def test_what_is_asked(engine: SglangEngine) -> None:
    schema = {"type": "object"}
    asked = [
        row("plain", 1, max_tokens=5, stop=["\n"], top_p=0.5, temperature=0.7),
        row("schema", 2, json_schema=schema),
        row("choice", 3, choice=['say "A"', "B"]),
        row("regex", 4, regex="[0-9]+"),
        row("cold", 5, seed=3),
    ]
    for each in asked:
        engine.submit(each)
    all_of(engine, 5)
    calls = {call["ids"][0]: call for call in stand_in.Engine.made[-1].asked}
    assert calls[1]["ids"] == [1, IMAGE, IMAGE, 3] and calls[1]["image"] == [{"format": "processor_output"}]
    base = {"max_new_tokens": 64, "temperature": 0.0, "top_p": 1.0}
    assert calls[1]["params"] == {"max_new_tokens": 5, "temperature": 0.7, "top_p": 0.5, "stop": ["\n"]}
    assert calls[2]["params"] == {**base, "json_schema": '{"type": "object"}'}
    assert calls[3]["params"] == {**base, "ebnf": 'root ::= "say \\"A\\"" | "B"'}
    assert calls[4]["params"] == {**base, "regex": "[0-9]+"}
    assert calls[5]["params"] == base  # at temperature 0 a seed changes nothing


def test_a_grammar_of_choices_takes_them_and_nothing_else() -> None:
    xgrammar = pytest.importorskip("xgrammar")
    choices = ['say "A"', "B\\n", "ä", "(a|b)"]
    grammar = xgrammar.Grammar.from_ebnf(one_of(choices))
    info = xgrammar.TokenizerInfo([*map(chr, range(32, 127)), "</s>"], stop_token_ids=[95])
    compiled = xgrammar.GrammarCompiler(info).compile_grammar(grammar)
    for text in [*choices, "B", "a", ""]:
        matcher = xgrammar.GrammarMatcher(compiled, terminate_without_stop_token=True)
        assert (matcher.accept_string(text) and matcher.is_terminated()) == (text in choices), text


def test_a_seed_must_be_heeded(engine: SglangEngine) -> None:
    kind, message = refused(engine, row("seeded", 1, seed=3, temperature=0.5))
    assert kind == "bad_value" and f"engine.args.{SEEDED}: true" in message
    heeding = started(**{SEEDED: True})
    heeding.submit(row("seeded", 1, seed=3, temperature=0.5))
    all_of(heeding, 1)
    assert stand_in.Engine.made[-1].asked[-1]["params"]["sampling_seed"] == 3
    heeding.stop()


@pytest.mark.parametrize("key", ["model_path", "mm_process_config", "allow_auto_truncate", "dp_size"])
def test_arguments_that_contradict_the_recipe(key: str) -> None:
    with pytest.raises(CapabilityError, match=rf"engine\.args\.{key} would contradict"):
        started(**{key: 1})


def test_arguments_reach_sglang() -> None:
    engine = started(max_running_requests=8, tp_size=2)
    given = stand_in.Engine.made[-1].arguments
    assert (given["model_path"], given["trust_remote_code"], given["tp_size"]) == ("x", False, 2)
    assert engine.batch_rows == 8
    engine.stop()


@pytest.mark.parametrize(
    ("demands", "args", "disabled"),
    [(MOSS, {}, True), (MOSS, {"disable_cuda_graph": False}, False), (NO_DEMANDS, {}, False)],
)
def test_moss_vl_decodes_without_cuda_graphs_unless_asked(
    demands: Demands, args: dict[str, Any], disabled: bool
) -> None:
    started(demands, **args).stop()
    assert stand_in.Engine.made[-1].arguments["disable_cuda_graph"] is disabled


def test_a_version_that_was_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sglang_environment, "installed", lambda: "0.6.1")
    with pytest.raises(CapabilityError, match=r"sglang 0\.6\.1 is installed.*sglang==0\.5\.23.*unknown_version: warn"):
        started()
    settings = EngineSection(name="sglang", unknown_version="warn")
    assert SglangEngine(Model(path="x"), settings, "x").version == "sglang 0.6.1"


def test_without_sglang_the_line_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    if sglang_environment.DISTRIBUTION in sys.modules or _is_installed():
        pytest.skip("SGLang is installed here")
    with pytest.raises(EngineError, match=r"pip install -e '.*\[sglang\]'"):
        make_engine(Model(path="x"), EngineSection(name="sglang"), "x")


def _is_installed() -> bool:
    try:
        sglang_environment.installed()
    except EngineError:
        return False
    return True


def test_it_never_runs_in_the_process_of_a_run() -> None:
    engine = make_engine(Model(path="x"), EngineSection(name="sglang"), "x")
    assert isinstance(engine, EngineGroup) and len(engine._environments) == 1
    two_each = EngineSection(name="sglang", data_parallel=2, args={"tp_size": 2})
    group = make_engine(Model(path="x"), two_each, "x")
    assert isinstance(group, EngineGroup)
    assert [environment["CUDA_VISIBLE_DEVICES"] for environment in group._environments] == ["0,1", "2,3"]
