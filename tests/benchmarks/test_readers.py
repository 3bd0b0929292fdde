"""Corners of the readers of numbers and letters that the vectors of upstream's functions do not reach."""

from __future__ import annotations

import pytest

from vidpipe.benchmarks.choices import before_bracket, ranked
from vidpipe.benchmarks.letters import lenient_letter, tail_letter
from vidpipe.benchmarks.numbers import after_thinking, first_number_or_word, last_number, lenient_number


def test_a_run_of_number_words_ends_at_any_other_word() -> None:
    assert first_number_or_word("one hundred and five") == 105
    assert first_number_or_word("twenty, all five rows of four") == 20


@pytest.mark.parametrize(
    "reply",
    ["[three chairs]", "[3 chairs]", "[chairs]", "[{[]: 3}]", pytest.param("[" + "-" * 100_000 + "3]", id="deep")],
)
def test_brackets_that_hold_no_list_hold_no_number(reply: str) -> None:
    assert last_number(reply) is None


def test_brackets_around_a_part_of_the_reply_are_no_list() -> None:
    assert [last_number(text) for text in ("[3] chairs", "it is [3]", "[3, 4]")] == [3, 3, 3]


def test_the_reasoning_ends_at_its_last_closing_tag_or_begins_at_the_last_opening_one() -> None:
    replies = ("a</think> b</think> c", "<think>a<think> b", "<think>a</think> b <think> c", "a")
    assert [after_thinking(text) for text in replies] == ["c", "b", "b <think> c", "a"]


def test_of_a_number_in_words_and_one_in_digits_the_first_counts() -> None:
    assert lenient_number("3 chairs, two sofas") == 3
    assert lenient_number("two sofas, 3 chairs") == 2
    assert lenient_number("two sofas, one table, 3 chairs") == 2
    assert lenient_number("two sofas, 3 chairs, one table") == 2


def test_of_several_announced_answers_the_last_counts() -> None:
    assert lenient_letter("The answer is A. No, the answer is B.") == "B"
    assert lenient_number("1 + 2 = 3, then 3 * 2 = 6") == 6
    assert lenient_number("The answer is 3. No, the answer is 5.") == 5


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("B rather than A", "B"),  # the start before the end
        ("An apple, see (B) here", "B"),  # the first letter of a word is no letter at the start
        ("(B) was seen by NASA", "B"),  # nor the last one of a word one at the end
        ("the answer is A or B, see (A) here", "B"),  # behind `answer is`, each at its first mention, before brackets
        ("(A) is dark, so the answer is B here", "B"),
        ("see (A) or B. yes", "A"),
        ("it is A. or B: yes", "A"),
        ("it is A: or B) yes", "A"),
        ("it is A) or B yes", "A"),
        ("it is A or By then", "A"),
    ],
)
def test_the_form_that_says_most_goes_first(reply: str, expected: str) -> None:
    assert ranked(reply, "AB") == expected


def test_nothing_stands_before_a_bracket_that_is_first() -> None:
    assert [before_bracket(text) for text in (") A", "(A) b) c", "A")] == ["", "A", "A"]


def test_a_closing_tag_is_looked_for_in_the_last_800_characters() -> None:
    tagged = "B/A</answer>"  # two letters: without the tag the reply settles on none
    behind = 800 - len("A</answer>")
    assert tail_letter(tagged + "." * behind) == "A"
    assert tail_letter(tagged + "." * (behind + 1)) is None


def test_a_letter_on_a_line_of_its_own_is_looked_for_in_the_last_six_lines() -> None:
    lettered = "A or B?\nB"  # two letters: without the line the reply settles on none
    assert tail_letter(lettered + "\nso" * 5) == "B"
    assert tail_letter(lettered + "\nso" * 6) is None


def test_an_answer_tag_has_any_case_any_number_of_lines_and_letters_up_to_j() -> None:
    assert tail_letter("<Answer>g: it\nturns left</ANSWER>") == "G"


def test_where_the_answer_stands_before_the_reasoning_ends_the_last_800_characters_of_all_count() -> None:
    last = "B\nso</think>"
    assert tail_letter("A or B?\n" + last + "." * (800 - len(last))) == "B"
    assert tail_letter("A or B?\n" + last + "." * (801 - len(last))) is None
