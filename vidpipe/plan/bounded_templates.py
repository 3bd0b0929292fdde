"""Jinja2 templates that end: a sandbox that also bounds what a template may compute.

Jinja2's own sandbox keeps templates away from files and attributes, and bounds `range`, no more:
`{{ 9**9**9 }}` never ends, `{{ 'a' * 10**10 }}` takes all memory. Here sizes are looked at before anything is
computed, and loops and macros count their steps.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sized
from contextvars import ContextVar
from functools import wraps
from typing import Any

from jinja2 import Environment, StrictUndefined, Template, nodes, pass_context, pass_environment
from jinja2.exceptions import SecurityError
from jinja2.filters import make_attrgetter
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_CHARS = 1_000_000
"""Of a prompt, and of any text or list on the way to it."""
MAX_STEPS = 100_000
"""Passes through loops, and calls of macros, of one prompt."""
MAX_SECONDS = 10.0
MAX_BITS = 4096
"""Of a whole number."""
MAX_WIDTH = 10_000
"""Numbers that filters and methods take: widths, counts, digits."""

_TICK, _JOINED = "_vidpipe_tick", "_vidpipe_joined"
_WIDE = re.compile(r"[%{][^%{}]*\d{5,}|%[^a-zA-Z%]*\*|{[^{}]*:[^{}]*{")


class _Budget:
    """What is left for one prompt."""

    def __init__(self) -> None:
        self._steps = self._chars = 0
        self._end_s = time.monotonic() + MAX_SECONDS

    def step(self) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise SecurityError(f"its loops take more than {MAX_STEPS} steps")
        if time.monotonic() > self._end_s:
            raise SecurityError(f"it takes longer than {MAX_SECONDS:g} s")

    def write(self, chars: int) -> None:
        self._chars += chars
        _refuse_size(self._chars)


_budget: ContextVar[_Budget] = ContextVar("budget")


def _refuse_size(size: int) -> None:
    if size > MAX_CHARS:
        raise SecurityError(f"it makes a text or a list of more than {MAX_CHARS} characters or items")


def _refuse_number(value: Any) -> None:
    if isinstance(value, int) and abs(value) > MAX_WIDTH:
        raise SecurityError(f"a width or count above {MAX_WIDTH}")


def _written(value: Any) -> Any:
    """`value` as it goes into the prompt; constants do so while the template is compiled."""
    text = str(value)
    if (budget := _budget.get(None)) is not None:
        budget.write(len(text))
    return text


@pass_context
def _tick(_: Context, value: None) -> None:
    _budget.get().step()


@pass_context
def _joined(_: Context, values: tuple[Any, ...]) -> str:
    texts = [str(value) for value in values]
    _refuse_size(sum(map(len, texts)))
    return "".join(texts)


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * max(0, exponent) > MAX_BITS:
        raise SecurityError(f"{base:.6g} ** {exponent:.6g} is a number of more than {MAX_BITS} bits")
    return base**exponent


def _product(left: Any, right: Any) -> Any:
    for one, other in ((left, right), (right, left)):
        if isinstance(one, int) and isinstance(other, int):
            if one.bit_length() + other.bit_length() > MAX_BITS:
                raise SecurityError(f"a product of more than {MAX_BITS} bits")
        elif isinstance(one, Sized) and isinstance(other, int):
            _refuse_size(len(one) * other)
    return left * right


def _sum(left: Any, right: Any) -> Any:
    if isinstance(left, Sized) and isinstance(right, Sized):
        _refuse_size(len(left) + len(right))
    return left + right


def _remainder(left: Any, right: Any) -> Any:
    if isinstance(left, str):
        _refuse_format(left, tuple(right.values()) if isinstance(right, dict) else right)
    return left % right


def _refuse_format(form: str, values: Any) -> None:
    """Refuse a format that may give a long text: by its widths, or by its places for `values`."""
    if _WIDE.search(form):
        raise SecurityError(f"a format with a width above {MAX_WIDTH}, or one that is not written out")
    given = values if isinstance(values, tuple) else (values,)
    longest = max((len(value) for value in given if isinstance(value, Sized)), default=0)
    _refuse_size(max(form.count("{"), form.count("%")) * longest)


def _format(value: Any, *args: Any, **kwargs: Any) -> str:
    _refuse_format(str(value), (*args, *kwargs.values()))
    return str(value) % (kwargs or args)


def _replace(value: Any, old: Any, new: Any, count: int | None = None) -> str:
    text = str(value)
    _refuse_size(len(text) + text.count(str(old)) * len(str(new)))
    return text.replace(str(old), str(new), -1 if count is None else count)


@pass_environment
def _join(environment: Environment, value: Any, d: Any = "", attribute: Any = None) -> str:
    values = value if attribute is None else map(make_attrgetter(environment, attribute), value)
    texts = [str(one) for one in values]
    _refuse_size(sum(map(len, texts)) + len(str(d)) * len(texts))
    return str(d).join(texts)


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {"**": _power, "*": _product, "+": _sum, "%": _remainder}
_FILTERS_WITH_COUNTS = ("batch", "center", "indent", "round", "slice", "tojson", "truncate", "wordwrap")


def _counted(function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that refuses large counts."""
    before = 2 if hasattr(function, "jinja_pass_arg") else 1  # the context, and the value itself

    @wraps(function)  # with the marks that Jinja2 puts on filters
    def bounded(*arguments: Any, **options: Any) -> Any:
        for value in (*arguments[before:], *options.values()):
            _refuse_number(value)
        return function(*arguments, **options)

    return bounded


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """Compiles templates whose rendering by `render` is bounded."""

    intercepted_binops = frozenset(_OPERATORS)

    def __init__(self) -> None:
        super().__init__(undefined=StrictUndefined, keep_trailing_newline=True, finalize=_written)
        del self.globals["lipsum"]
        filters: dict[str, Any] = self.filters
        filters |= {name: _counted(filters[name]) for name in _FILTERS_WITH_COUNTS}
        filters |= {"format": _format, "replace": _replace, "join": _join, _TICK: _tick, _JOINED: _joined}

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """See `SandboxedEnvironment.call_binop`."""
        return _OPERATORS[operator](left, right)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        """See `SandboxedEnvironment.call`: names as there, so that a template's keywords cannot clash."""
        owner, name = getattr(__obj, "__self__", None), getattr(__obj, "__name__", "")
        if isinstance(owner, str) and name == "replace":
            return _replace(owner, *args)
        if isinstance(owner, str) and name == "join":
            return _join(__self, args[0], owner)
        if isinstance(owner, str | bytes | int | float | list | tuple | dict):
            for value in (*args, *kwargs.values()):
                _refuse_number(value)
        return super().call(__context, __obj, *args, **kwargs)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """See `SandboxedEnvironment.wrap_str_format`."""
        formatted = super().wrap_str_format(value)
        if formatted is None:
            return None

        def bounded(*args: Any, **kwargs: Any) -> str:
            _refuse_format(value.__self__, (*args, *kwargs.values()))
            return formatted(*args, **kwargs)

        return bounded

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        blocks: tuple[type[Any], ...] = (nodes.For, nodes.Macro, nodes.CallBlock)
        for block in tree.find_all(blocks):
            block.body.insert(0, nodes.ExprStmt(_filter(_TICK, nodes.Const(None))))
        for parent in reversed([tree, *tree.find_all(nodes.Node)]):  # the innermost first
            for field, value in list(parent.iter_fields()):
                setattr(parent, field, [_bounded(v) for v in value] if isinstance(value, list) else _bounded(value))
        tree.set_environment(self)
        return tree


def _bounded(node: Any) -> Any:
    """`a ~ b` is no operator to Jinja2's sandbox; here it is a filter."""
    return _filter(_JOINED, nodes.Tuple(node.nodes, "load")) if isinstance(node, nodes.Concat) else node


def _filter(name: str, value: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(value, name, [], [], None, None)


def render(template: Template, values: dict[str, Any]) -> str:
    """The text that `template`, of a `BoundedEnvironment`, makes of `values`.

    Raises:
        Exception: the template fails, or goes beyond its bounds (`SecurityError`).
    """
    token = _budget.set(_Budget())
    try:
        return template.render(**values)
    finally:
        _budget.reset(token)
