"""Asked to stop at the worst moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

ASKED = """
import ctypes, os, sys
from vidpipe.job.signals import interrupted_by_signals
run = ctypes.pythonapi.PyRun_String
run.restype = ctypes.py_object
run.argtypes = ctypes.c_char_p, ctypes.c_int, ctypes.py_object, ctypes.py_object
try:
    with interrupted_by_signals():
        run(b"import os; os.kill(os.getpid(), NUMBER)", 257, {}, {})
except KeyboardInterrupt:
    sys.exit(75)
"""
"""257 is `Py_file_input`."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
def test_a_signal_while_an_extension_module_runs_python_leaves_the_exit_code(tmp_path: Path, number: int) -> None:
    (tmp_path / "asked.py").write_text(ASKED.replace("NUMBER", str(int(number))))
    paths = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = subprocess.run([sys.executable, "-m", "asked"], check=False, env={**os.environ, **paths})
    assert done.returncode == 75
