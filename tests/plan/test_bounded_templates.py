"""Templates that would never end, or take all memory, fail at once; ordinary ones are what Jinja2 makes of them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from jinja2 import StrictUndefined
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tests.fuzz.inputs import template_texts
from vidpipe.plan.bounded_templates import MAX_CHARS, MAX_STEPS, BoundedEnvironment, render

OURS = BoundedEnvironment()
PLAIN = ImmutableSandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True)
VALUES = {
    "question": "Why?",
    "n": 3,
    "options": ["A. left", "B. right"],
    "pairs": [{"k": "x"}, {"k": "y"}],
    "word": "a" * 1000,
}


@pytest.mark.parametrize(
    "source",
    [
        "{{ 9**(9**9) }}",
        "{{ n**(9**5) }}",
        "{{ 'a' * 10**10 }}",
        "{{ 10**8 * options }}",
        "{% for i in range(10**9) %}{% endfor %}",
        "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}",
        "{% macro m(k) %}{% if k %}{{ m(k - 1) }}{{ m(k - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
        "{% set s = namespace(t=word) %}{% for i in range(60) %}{% set s.t = s.t ~ s.t %}{% endfor %}",
        "{% set s = namespace(t=word) %}{% for i in range(60) %}{% set s.t = s.t + s.t %}{% endfor %}",
        "{% set s = namespace(t=word) %}{% for i in range(60) %}{% set s.t %}{{ s.t }}{{ s.t }}{% endset %}"
        "{% endfor %}",
        "{% set s = namespace(t=word) %}{% for i in range(60) %}{% set s.t = s.t.replace('a', word) %}{% endfor %}",
        "{% set s = namespace(t=word) %}{% for i in range(60) %}{% set s.t = s.t | replace('a', word) %}{% endfor %}",
        "{% set s = namespace(t=word) %}{% for i in range(60) %}{% set s.t = [s.t, s.t] | join(s.t) %}{% endfor %}",
        "{% set s = namespace(t=word) %}{% for i in range(60) %}{% set s.t = '{0}{0}'.format(s.t) %}{% endfor %}",
        "{% set s = namespace(t=3) %}{% for i in range(60) %}{% set s.t = s.t * s.t %}{% endfor %}",
        "{{ word | center(10**9) }}",
        "{{ word.ljust(10**9) }}",
        "{{ word.ljust(10**8) | length }}",
        "{{ n.to_bytes(length=10**8) | length }}",
        "{{ '%1000000000d' % n }}",
        "{{ '%*d' % (10**9, n) }}",
        "{{ '%1000000000d' | format(n) }}",
        "{{ '{:1000000000}'.format(n) }}",
        "{{ '{:{}}'.format(n, 10**9) }}",
        "{{ 1.5 | round(10**9) }}",
        "{{ options | batch(10**9, 'x') | list }}",
        "{{ options | map('center', 10**9) | list }}",
        "{{ pairs | tojson(indent=10**9) }}",
    ],
)  # fmt: skip
def test_unbounded_templates_fail_at_once(source: str) -> None:
    started = time.process_time()
    with pytest.raises((SecurityError, OverflowError)):
        render(OURS.from_string(source), VALUES)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "source",
    [
        "{{ question }}\n{% for o in options %}{{ loop.index }}. {{ o }}\n{% endfor %}",
        "{{ n ~ question ~ (n ~ 'x') }}{{ n ** 2 + 3 * n % 2 }}{{ 'ab' * 3 }}{{ options + options }}",
        "{{ options | join(', ') }}{{ pairs | join('-', attribute='k') }}"
        "{{ '-'.join(options) }}{{ options | join(d='+') }}",
        "{{ question | replace('W', 'Th') | upper | center(20) }}{{ question.replace('?', '!', 1) }}",
        "{{ '%s has %03d' % (question, n) }}{{ '%d %%' | format(n) }}"
        "{{ '{:,}'.format(5000000) }}{{ '{q}'.format(q=question) }}",
        "{% macro m(x) %}[{{ x }}]{% endmacro %}{{ m(n) }}{{ pairs | tojson(2) }}"
        "{{ 12345678 | tojson }}{{ 3.14159 | round(2) }}",
        "{% set a %}{{ n }}{% endset %}{{ a }}{{ none }}{{ true }}"
        "{{ word | truncate(20) }}{{ options | batch(1) | list }}",
        "{% for k, v in {'a': 1}.items() %}{{ k }}={{ v }}{% else %}none{% endfor %}{{ missing | default('d') }}",
    ],
)  # fmt: skip
def test_ordinary_templates_are_what_jinja2_makes_of_them(source: str) -> None:
    assert render(OURS.from_string(source), VALUES) == PLAIN.from_string(source).render(**VALUES)


@given(template_texts)
def test_any_template_that_both_render_gives_the_same(source: str) -> None:
    try:
        expected = PLAIN.from_string(source).render(**VALUES)
        found = render(OURS.from_string(source), VALUES)
    except Exception:  # what cannot be compiled or rendered; more of ours is refused
        return
    assert found == expected


def test_a_long_prompt_within_the_bound() -> None:
    assert len(render(OURS.from_string("{{ word * 1000 }}"), VALUES)) == MAX_CHARS


def test_the_last_step_within_the_bound() -> None:
    source = f"{{% for _ in range({MAX_STEPS}) %}}{{% endfor %}}"
    assert not render(OURS.from_string(source), VALUES)
    with pytest.raises(SecurityError, match="steps"):
        render(OURS.from_string(source + "{% for _ in [n] %}{% endfor %}"), VALUES)
