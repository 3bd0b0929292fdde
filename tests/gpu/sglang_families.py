"""The families of SGLang once through a whole run on this machine: file -> frames -> prompt -> answer -> result row.

    python -m tests.gpu.sglang_families [FAMILY...] [-o FOLDER] [--cpu]

Moss-VL has random weights and shapes that a GPU's kernels take; its answers mean nothing. Qwen3-VL is the demo's model,
whose answers are known. Each family runs in a process of its own. `--cpu` shows the same without a GPU, Moss-VL with a
stand-in for flashinfer's kernel. `tests/gpu/README.md` tells what the machine needs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.checkpoints import moss_vl as moss_vl_checkpoint
from tests.engine.sglang_cpu_kernels import write_plugin
from tests.gpu.families import ROOT, change_config, device, figures, reason, write_rows
from vidpipe.engine import sglang_environment

TIMEOUT_S = 900
COLUMNS = ("family", "rows", "prompt tokens", "vision tokens", "by the rules", "tokens out", "as known", "s", "s a row")
"""`by the rules`: vision tokens that the family's rule predicts. `as known`: answers of the demo that are right."""
CPU = {"device": "cpu", "sampling_backend": "pytorch", "disable_cuda_graph": True, "max_total_tokens": 65536}
CPU_BACKENDS = {
    "moss_vl": {"prefill_attention_backend": "flashinfer", "decode_attention_backend": "torch_native"},
    "qwen3_vl": {"attention_backend": "torch_native"},
}


def moss_vl(folder: Path, *, on_cpu: bool) -> None:
    """The tiny one; on a GPU with heads of 64 channels, the least that flashinfer is built for, and dummy weights."""
    moss_vl_checkpoint.make(folder, head=32 if on_cpu else 64)
    if not on_cpu:
        (folder / "model.safetensors").unlink()
        change_config(
            folder,
            text_config={"hidden_size": 256, "intermediate_size": 512},
            vision_config={"hidden_size": 128, "num_heads": 2, "intermediate_size": 256, "out_hidden_size": 256},
        )


def qwen3_vl(folder: Path, *, on_cpu: bool) -> None:
    """The demo's model, with its weights."""
    shutil.copytree(ROOT / "data" / "tiny-qwen3vl", folder)


CHECKPOINTS: dict[str, Callable[..., None]] = {"moss_vl": moss_vl, "qwen3_vl": qwen3_vl}


def run(family: str, folder: Path, *, on_cpu: bool) -> dict[str, Any]:
    """Run the family; the figures of the table, or why there are none."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    checkpoint, log = folder / "checkpoint", folder / "log"
    CHECKPOINTS[family](checkpoint, on_cpu=on_cpu)
    demo = family == "qwen3_vl"
    args: dict[str, Any] = {"context_length": 8192, "max_running_requests": 8, "mem_fraction_static": 0.3}
    if on_cpu:
        args |= CPU | CPU_BACKENDS[family]
        write_plugin(folder / "plugin")
    if not (checkpoint / "model.safetensors").exists():
        args["load_format"] = "dummy"
    recipe = {
        "manifest": str(ROOT / "data" / "demo" / "rows.jsonl" if demo else write_rows(folder)),
        "model": {"path": str(checkpoint), "trust_remote_code": family == "moss_vl"},
        "sampling": {"fps": 2, "min_frames": 2} if demo else {"max_frames": 16, "max_pixels": 224 * 224},
        "generation": {"max_tokens": 8 if demo else 16},
        "feed": {"workers": 2},
        "engine": {"name": "sglang", "args": args},
    }
    (folder / "recipe.yaml").write_text(json.dumps(recipe, indent=1))
    recipe_file, run_dir = str(folder / "recipe.yaml"), str(folder / "run")
    command = [sys.executable, "-m", "vidpipe", "run", recipe_file, "-o", run_dir, "--fresh"]
    paths = os.pathsep.join(filter(None, [str(ROOT), str(folder / "plugin"), os.environ.get("PYTHONPATH")]))
    environment = {"HF_HUB_OFFLINE": "1", **os.environ, "PYTHONPATH": paths}
    started = time.perf_counter()
    with log.open("w") as file:
        try:
            code = subprocess.run(
                command, stdout=file, stderr=subprocess.STDOUT, env=environment, timeout=TIMEOUT_S, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            return {"rows": f"no end after {TIMEOUT_S} s; see {log}"}
    if code:
        return {"rows": f"exit code {code}: {reason(log.read_text(errors='replace').splitlines())}; see {log}"}
    return {**figures(folder / "run", time.perf_counter() - started), "as known": as_known(folder / "run")}


def as_known(run_dir: Path) -> str:
    """Right answers, where rows bring them."""
    import pyarrow.parquet as pq

    rows = [row for row in pq.read_table(run_dir / "results.parquet").to_pylist() if row.get("answer")]
    right = sum(row["text"] == json.loads(row["answer"]) for row in rows)
    return f"{right} of {len(rows)}" if rows else "-"


def main() -> None:
    """The table; exit code 1 if a family failed."""
    parser = argparse.ArgumentParser(description="Run the families of SGLang once on this machine.")
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=f"of {', '.join(CHECKPOINTS)}; default: all")
    parser.add_argument("-o", "--output", type=Path, default=Path("runs/sglang_families"), metavar="FOLDER")
    parser.add_argument("--cpu", action="store_true", help="without a GPU")
    options = parser.parse_args()
    unknown = sorted(set(options.families) - CHECKPOINTS.keys())
    if unknown:
        parser.error(f"no such family: {', '.join(unknown)}")
    print(f"sglang {sglang_environment.installed()}, {'CPU' if options.cpu else device()}\n")
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS), flush=True)
    failed = False
    for family in options.families or CHECKPOINTS:
        found = run(family, options.output.resolve() / family, on_cpu=options.cpu)
        failed |= "s" not in found
        print(f"| {family} | " + " | ".join(str(found.get(column, "")) for column in COLUMNS[1:]) + " |", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
