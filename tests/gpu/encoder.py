"""How fast the vision encoder is with and without CUDA graphs, with and without pruning.

    python -m tests.gpu.encoder [--arms ARM,...] [--shapes SHAPE,...] [-o FOLDER] [--small]

Every arm is an engine in a process of its own, and every figure stands beside a control without
graphs from the same engine. What has run is kept in FOLDER and not run again; a crash is an entry of
the table. `tests/gpu/README.md` tells what the arms and columns are.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.gpu.encoder_arm import ARMS
from tests.gpu.encoder_shapes import ROOT, SHAPES

TIMEOUT_S = 420
DEFAULT_ARMS = "auto,pruning_0.5_auto,default,on,pruning_0.75_auto,default_frames"
HEAD = (
    "arm",
    "workload",
    "encoder s: none",
    "graphs",
    "ratio",
    "rows/s: none",
    "graphs",
    "in graphs",
    "padded",
    "differ",
)


def main() -> int:
    """Run what has not been run, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arms", default=DEFAULT_ARMS, help=f"of {', '.join(ARMS)} [{DEFAULT_ARMS}]")
    parser.add_argument("--shapes", default="qwen3_vl_2b", help=f"of {', '.join(SHAPES)} [qwen3_vl_2b]")
    parser.add_argument("-o", "--out", type=Path, default=Path("/tmp/vidpipe-encoder"))
    parser.add_argument("--small", action="store_true", help="few and small videos, to try the script")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    for shape in given.shapes.split(","):
        folder = given.out / shape
        if not (folder / "config.json").exists():
            SHAPES[shape].make(folder)
        results = []
        for arm in given.arms.split(","):
            if ARMS[arm].pruning_rate and SHAPES[shape].family != "qwen3_vl":
                continue
            results.append(_result(arm, shape, folder, given.out, given.small))
            print(f"{arm} {shape}: done {time.monotonic() - began:.0f} s after the begin", flush=True)
        print(_table(shape, results), flush=True)
    return 0


def _result(arm: str, shape: str, folder: Path, out: Path, small: bool) -> dict[str, Any]:
    """What an arm found, now or earlier."""
    result, log = out / f"{shape}.{arm}.json", out / f"{shape}.{arm}.log"
    if result.exists():
        found: dict[str, Any] = json.loads(result.read_text())
        if "encoder" in found:
            print(f"{arm} {shape}: kept from {result}", flush=True)
            return found
    command = [sys.executable, "-m", "tests.gpu.encoder_arm", arm, shape, str(folder), str(result)]
    environment = os.environ | {"PYTHONPATH": _python_path(out), "VLLM_LOGGING_LEVEL": "INFO"}
    environment.setdefault("VLLM_USE_FLASHINFER_SAMPLER", "0")
    with log.open("w") as file:
        process = subprocess.Popen(
            command + ["small"] * small, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=file, text=True
        )
        assert process.stdout is not None
        too_long = threading.Timer(TIMEOUT_S, process.kill)
        too_long.start()
        try:
            for line in process.stdout:
                if line.startswith(arm):
                    print(line, end="", flush=True)
                else:
                    file.write(line)
            process.wait()
        finally:
            too_long.cancel()
            process.kill()
    found = json.loads(result.read_text()) if result.exists() else {"arm": arm, "shape": shape, "workloads": {}}
    if "encoder" not in found:
        found |= {"encoder": None, "crash": f"exit {process.returncode}: {_last_words(log)}"}
        result.write_text(json.dumps(found))
    return found


def _python_path(out: Path) -> str:
    """This checkout, and an entry point for a machine where vidpipe is not installed: vLLM loads the repairs by it."""
    info = out / "entry" / "vidpipe-0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vidpipe\nVersion: 0\n")
    (info / "entry_points.txt").write_text("[vllm.general_plugins]\nvidpipe = vidpipe.engine.vllm_plugin.plugin:load\n")
    return os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", ""), str(info.parent)]))


def _last_words(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if "Error" in line]
    return lines[-1][-300:] if lines else "no error in the log"


def _table(shape: str, results: list[dict[str, Any]]) -> str:
    rows = [HEAD, tuple("-" * 3 for _ in HEAD)]
    notes = []
    for found in results:
        for load, both in found["workloads"].items():
            rows.append((found["arm"], load, *_cells(both)))
        if "crash" in found:
            notes.append(f"{found['arm']}: crashed after {len(found['workloads'])} workloads: {found['crash']}")
        if found.get("capture_s"):
            budgets = [graph["tokens"] for graph in (found["plan"] or {"graphs": {"graphs": []}})["graphs"]["graphs"]]
            size = f"{found['capture_gib']:.2f} GiB"
            notes.append(
                f"{found['arm']}: captured in {found['capture_s']:.1f} s, {size}, budgets {budgets or 'default'}"
            )
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join([f"\n{shape}", table, *notes])


def _cells(both: dict[str, Any]) -> list[str]:
    control = both["control"]
    cells = [f"{control['encoder_s']:.3f}"]
    if "graphs" not in both:
        return [*cells, "", "", f"{control['rows_per_s']:.2f}", "", "", "", str(both["control_differs_from_itself"])]
    graphs = both["graphs"]
    captured, used = graphs["captured_tokens"], graphs["used_tokens"]
    return [
        *cells,
        f"{graphs['encoder_s']:.3f}",
        f"{graphs['encoder_s'] / control['encoder_s']:.2f}",
        f"{control['rows_per_s']:.2f}",
        f"{graphs['rows_per_s']:.2f}",
        f"{graphs['hits']} of {graphs['rows']}",
        f"{1 - used / captured:.1%}" if captured else "",
        f"{both['rows_that_differ']} ({both['control_differs_from_itself']})",
    ]


if __name__ == "__main__":
    sys.exit(main())
