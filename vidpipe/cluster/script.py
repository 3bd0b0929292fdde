"""The sbatch scripts: templates that a user can read, and bring one of their own."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

from jinja2 import Environment, StrictUndefined, TemplateError

from vidpipe.cluster.submission import Submission
from vidpipe.errors import RecipeError

_OWN = Path(__file__).parent
_OF_THE_SITE = frozenset({"account", "clusters", "constraint", "qos", "reservation", "wckey"})
"""Keys of `--sbatch` that a job without tasks needs too: who pays, and where."""


def array_script(submission: Submission) -> str:
    """The script of an array whose tasks join the run.

    Raises:
        RecipeError: the user's template cannot be read or rendered.
    """
    task = ["-m", "vidpipe", "slurm", "task", submission.recipe, "-o", submission.run_dir]
    for assignment in submission.assignments:
        task += ["--set", assignment]
    template = Path(submission.template) if submission.template else _OWN / "array.sbatch.j2"
    return _render(template, submission, command=shlex.join([submission.python, *task]))


def merge_script(submission: Submission) -> str:
    """The script of the job that merges and scores when the tasks are over."""
    of_the_site = tuple(option for option in submission.sbatch if option.partition("=")[0] in _OF_THE_SITE)
    vidpipe = shlex.join([submission.python, "-m", "vidpipe"])
    return _render(_OWN / "merge.sbatch.j2", replace(submission, sbatch=of_the_site), vidpipe=vidpipe)


def _render(path: Path, submission: Submission, **values: str) -> str:
    environment = Environment(trim_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined)
    environment.filters |= {"quoted": shlex.quote, "word": _one_word, "pattern": _pattern, "directive": _directive}
    try:
        text = path.read_text(encoding="utf-8")
        return environment.from_string(text).render(submission.stored() | {"folder": submission.folder} | values)
    except (OSError, UnicodeDecodeError, TemplateError) as error:
        raise RecipeError(
            f"--template {path}: {error}. Start from vidpipe's own, {_OWN / 'array.sbatch.j2'}; "
            f"names that it may use: command, {', '.join(submission.stored())}, folder."
        ) from None


def _directive(option: str) -> str:
    """A user's `KEY=VALUE` or `KEY`."""
    key, equals, value = option.partition("=")
    return key + equals + _one_word(value)


def _pattern(path: Path) -> str:
    """A path where Slurm reads `%` as the beginning of a pattern."""
    return _one_word(str(path).replace("%", "%%"))


def _one_word(text: str) -> str:
    """A value in a line of `#SBATCH` options, quoted where sbatch would end it early."""
    return '"' + text.replace('"', '\\"') + '"' if any(character in text for character in " '\"#\t") else text
