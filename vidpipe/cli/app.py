"""The `vidpipe` program: finds the command, runs it, turns our errors into exit codes.

Command modules import only typer; whatever a command needs is imported when it
runs, so that `vidpipe --help` answers in well under half a second.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import sys
import traceback
from collections.abc import Callable
from typing import Annotated, Any, NoReturn

import typer

from vidpipe import __version__
from vidpipe.cli import exit_codes
from vidpipe.cli.check import check
from vidpipe.cli.compare import compare
from vidpipe.cli.doctor import doctor
from vidpipe.cli.frames import frames
from vidpipe.cli.import_benchmark import import_benchmark
from vidpipe.cli.merge import merge
from vidpipe.cli.models import models
from vidpipe.cli.plan import plan
from vidpipe.cli.probe import probe
from vidpipe.cli.report import report
from vidpipe.cli.run import run
from vidpipe.cli.safe_output import make_output_safe, nobody_reads, open_closed_streams
from vidpipe.cli.score import score
from vidpipe.cli.slurm import slurm
from vidpipe.cli.status import status
from vidpipe.cli.trace import trace
from vidpipe.errors import EngineError, VidpipeError

_WRONG_PATH = frozenset(
    (
        *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP),
        *(errno.EACCES, errno.EPERM, errno.EROFS),
    )
)
"""What a path that somebody typed, or its folder's rights, can be the reason of."""

app = typer.Typer(
    name="vidpipe",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"vidpipe {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Answer questions about videos in bulk: exact frames in, one recorded answer a row out."""


def _with_exit_codes(command: Callable[..., None]) -> Callable[..., None]:
    """`command`, whose exceptions end the program with the exit code of the contract."""

    @functools.wraps(command)
    def run_command(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
        except EngineError as error:
            _fail(f"vidpipe: {error}", exit_codes.ENGINE_FAILED)
        except VidpipeError as error:
            _fail(f"vidpipe: {error}", exit_codes.WRONG_INPUT)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                told = f"the disk is full: {error}\nMake room and type the same command."
                _fail(f"vidpipe: {told}", exit_codes.INTERRUPTED)
            if error.errno == errno.EPIPE and nobody_reads():  # of which click would make 1
                sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115  (what is buffered goes there)
                sys.exit(exit_codes.READER_GONE)
            if error.errno not in _WRONG_PATH or error.filename is None:
                _fail_unforeseen()
            told = f"{error.filename}: {error.strerror}. Give another path, or the right to write there."
            _fail(f"vidpipe: {told}", exit_codes.WRONG_INPUT)
        except KeyboardInterrupt:
            _fail(exit_codes.MEANING[exit_codes.INTERRUPTED], exit_codes.INTERRUPTED)
        except Exception:
            _fail_unforeseen()

    return run_command


def _fail_unforeseen() -> NoReturn:
    """For the exception that is being handled; not with Python's 1, which says that the run is complete."""
    told = (
        "vidpipe: an error that it does not know. If the lines above do not say what is wrong with this machine, "
        "please report them. What was recorded is kept: the same command goes on."
    )
    _fail(f"{traceback.format_exc()}{told}", exit_codes.UNFORESEEN)


def _fail(message: str, code: int) -> NoReturn:
    with contextlib.suppress(OSError):  # where nobody can be told the code says it all the same
        print(message, file=sys.stderr)  # noqa: T201
    sys.exit(code)


for _command in (run, check, plan, probe, frames, models, status, merge, score, compare, report, doctor):
    app.command()(_with_exit_codes(_command))
app.command(name="import")(_with_exit_codes(import_benchmark))
app.command(hidden=True)(_with_exit_codes(trace))  # for comparison with upstream, not for users

app.add_typer(slurm(_with_exit_codes), name="slurm")


def main() -> None:
    """Run the command line; exit with one of `vidpipe.cli.exit_codes`."""
    open_closed_streams()
    make_output_safe()
    app()
