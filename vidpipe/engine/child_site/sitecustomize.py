"""Runs at the start of every Python process that vLLM starts; see `vidpipe.engine.torchvision_on_cpu`.

Python runs only the first `sitecustomize` on its path, so the one that this file
hides (Debian and some clusters have one) is run from here.
"""

import importlib.util
import sys
from importlib.machinery import PathFinder
from pathlib import Path

_here = str(Path(__file__).resolve().parent)
_hidden = PathFinder.find_spec("sitecustomize", [entry for entry in sys.path if str(Path(entry).resolve()) != _here])
if _hidden is not None and _hidden.loader is not None:
    _hidden.loader.exec_module(importlib.util.module_from_spec(_hidden))

# Loaded from its file: importing the package would need vidpipe on this process's path.
_cure = importlib.util.spec_from_file_location("_vidpipe_torchvision", Path(_here).parent / "torchvision_on_cpu.py")
if _cure is not None and _cure.loader is not None:
    _module = importlib.util.module_from_spec(_cure)
    _cure.loader.exec_module(_module)
    _module.install()
