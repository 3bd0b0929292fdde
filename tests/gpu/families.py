"""Every family of vLLM once through a whole run on this machine: file -> frames -> prompt -> answer -> result row.

    python -m tests.gpu.families [FAMILY...] [-o FOLDER]

Each family runs in a process of its own, so that a crash is a line of the table and no more. Weights are random
(Qwen3-VL's are the demo's), shapes are small but such that the kernels of a GPU take them; answers mean nothing.
What is shown is that the model loads, that the prompt and the vision tokens are what the family's rules
say, and how long it took. `tests/gpu/README.md` tells what the machine needs.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import av
import numpy as np

from vidpipe.engine import vllm_environment

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 900
QUESTIONS = ("What happens?", "What comes first?")
COLUMNS = (
    "family",
    "rows",
    "prompt tokens",
    "vision tokens",
    "by the rules",
    "tokens out",
    "characters",
    "s",
    "s a row",
)
"""`by the rules`: vision tokens that the family's rule predicts. `s`: the whole run, start of the engine included."""


def llava_onevision2(folder: Path) -> None:
    """The tiny one with heads of 64 channels, the least that FlashAttention 3 is built for."""
    from tests.checkpoints.llava_onevision2 import make

    make(folder)
    (folder / "model.safetensors").unlink()
    text = {"hidden_size": 256, "intermediate_size": 512, "head_dim": 64}
    vision = {"hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4, "out_hidden_size": 256}
    change_config(folder, text_config=text, vision_config=vision)


def ernie45_vl(folder: Path) -> None:
    """The tiny one with the published head size, and experts as wide as a Triton kernel's tile."""
    from tests.checkpoints.ernie45_vl import make

    make(folder)
    (folder / "model.safetensors").unlink()
    change_config(
        folder, hidden_size=512, intermediate_size=512, num_attention_heads=4, num_key_value_heads=2, head_dim=128,
        freq_allocation=20, moe_num_experts=[8, 8], moe_intermediate_size=[256, 128], pixel_hidden_size=256,
        vision_config={"embed_dim": 256, "hidden_size": 256, "num_heads": 4},
    )  # fmt: skip


def minimax_m3(folder: Path) -> None:
    """As it is: its sizes are those that the kernels ask for."""
    from tests.checkpoints.minimax_m3 import make

    make(folder)


def qwen3_vl(folder: Path) -> None:
    """The demo's model, with its weights."""
    shutil.copytree(ROOT / "data" / "tiny-qwen3vl", folder)


CHECKPOINTS: dict[str, Callable[[Path], None]] = {
    "qwen3_vl": qwen3_vl,
    "llava_onevision2": llava_onevision2,
    "ernie45_vl": ernie45_vl,
    "minimax_m3": minimax_m3,
}


def change_config(folder: Path, **changes: Any) -> None:
    """Change keys of a checkpoint's config.json; a dictionary changes keys of the section of its name."""
    file = folder / "config.json"
    config = json.loads(file.read_text())
    for key, value in changes.items():
        config[key] = {**config[key], **value} if isinstance(value, dict) else value
    file.write_text(json.dumps(config, indent=1))


def norms_without_flashinfer() -> None:
    """MiniMax-M3's norms in plain PyTorch, in this process: upstream has them in flashinfer only."""
    import torch
    from vllm.models.minimax_m3.nvidia.model import MiniMAXGemmaRMSNorm

    def forward(self: Any, x: Any, residual: Any = None) -> Any:
        total = x if residual is None else x + residual
        wide = total.to(torch.float32)
        scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.variance_epsilon)
        normed = (wide * scale * (1 + self.weight.to(torch.float32))).to(x.dtype)
        return normed if residual is None else (normed, total)

    MiniMAXGemmaRMSNorm.forward = forward


def answer(family: str, folder: Path) -> dict[str, Any]:
    """Run the family in this process; the figures of the table."""
    from vidpipe.cli.app import main

    checkpoint, run_dir = folder / "checkpoint", folder / "run"
    CHECKPOINTS[family](checkpoint)
    rows = write_rows(folder)
    args: dict[str, Any] = {"max_model_len": 8192, "max_num_seqs": 8, "enforce_eager": True}
    if not (checkpoint / "model.safetensors").exists():
        args["load_format"] = "dummy"
    if not vllm_environment.is_cpu_build():
        args["gpu_memory_utilization"] = 0.3
    recipe: dict[str, Any] = {
        "manifest": str(rows),
        "model": {"path": str(checkpoint), "trust_remote_code": family in ("llava_onevision2", "ernie45_vl")},
        "sampling": {"max_frames": 16, "max_pixels": 32 * 224 * 224 if family == "qwen3_vl" else 224 * 224},
        "generation": {"max_tokens": 16},
        "feed": {"workers": 2},
        "engine": {"args": args, "encoder_graphs": "off"},
    }
    if family == "ernie45_vl":
        recipe["sampling"]["min_pixels"] = 56 * 56  # its own lower bound lies above the upper one here
    (folder / "recipe.yaml").write_text(json.dumps(recipe, indent=1))
    if family == "minimax_m3" and importlib.util.find_spec("flashinfer") is None:
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # the norms are exchanged in this process only
        vllm_environment.prepare(str(checkpoint))
        norms_without_flashinfer()
    started = time.perf_counter()
    sys.argv = ["vidpipe", "run", str(folder / "recipe.yaml"), "-o", str(run_dir), "--fresh"]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
    return figures(run_dir, time.perf_counter() - started)


def write_rows(folder: Path) -> Path:
    """Two questions on each of two clips: one of the demo, one of 640x360 pixels."""
    clips = [ROOT / "data" / "demo" / "clip_00.mp4", write_clip(folder / "wide.mp4")]
    rows = [
        {"id": f"{clip.stem}-{number}", "video": str(clip), "question": question}
        for clip in clips
        for number, question in enumerate(QUESTIONS)
    ]
    file = folder / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def write_clip(path: Path) -> Path:
    """Eight seconds of 640x360 pixels that change all the time."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 640, 360, "yuv420p"
        rows, columns = np.mgrid[:360, :640]
        for number in range(200):
            pixels = np.stack([columns + number, rows + 2 * number, rows + columns], axis=-1).astype(np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())
    return path


def figures(run_dir: Path, seconds: float) -> dict[str, Any]:
    """What the result says."""
    import pyarrow.parquet as pq

    rows = pq.read_table(run_dir / "results.parquet").to_pylist()
    engine_s = [row["seconds"]["engine"] for row in rows]
    return {
        "rows": f"{sum(row['status'] in ('ok', 'length') for row in rows)} of {len(rows)}",
        "prompt tokens": sum(row["tokens_in"] for row in rows),
        "vision tokens": sum(row["vision_tokens"]["kept"] for row in rows),
        "by the rules": sum(row["vision_tokens"]["asked"] for row in rows),
        "tokens out": sum(row["tokens_out"] for row in rows),
        "characters": sum(len(row["text"] or "") for row in rows),
        "s": round(seconds, 1),
        "s a row": round(sum(engine_s) / len(engine_s), 3),
    }


def run_apart(family: str, folder: Path) -> dict[str, Any]:
    """Run the family in a process of its own; the figures, or why there are none."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    log = folder / "log"
    command = [sys.executable, "-m", "tests.gpu.families", "--one", family, "-o", str(folder)]
    environment = {"VLLM_USE_FLASHINFER_SAMPLER": "0", "HF_HUB_OFFLINE": "1", **os.environ}
    with log.open("w") as file:
        try:
            code = subprocess.run(
                command,
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env=environment,
                timeout=TIMEOUT_S,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            return {"rows": f"no end after {TIMEOUT_S} s; see {log}"}
    lines = log.read_text(errors="replace").splitlines()
    if code == 0 and lines:
        return dict(json.loads(lines[-1]))
    return {"rows": f"exit code {code}: {reason(lines)}; see {log}"}


def reason(lines: list[str]) -> str:
    """The log's last line from vidpipe itself, else the last that names an error."""
    ours = [line for line in lines if line.startswith("vidpipe: ")]
    others = [line for line in lines if "Error" in line]
    return (ours or others or lines or ["no output"])[-1].strip()[:200]


def device() -> str:
    """The first GPU's name, if there is one."""
    if shutil.which("nvidia-smi") is None:
        return "no GPU"
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True, check=False).stdout.partition("\n")[0]


def main() -> None:
    """The table; exit code 1 if a family failed."""
    parser = argparse.ArgumentParser(description="Run every family of vLLM once on this machine.")
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=f"of {', '.join(CHECKPOINTS)}; default: all")
    parser.add_argument("-o", "--output", type=Path, default=Path("runs/families"), metavar="FOLDER")
    parser.add_argument("--one", choices=CHECKPOINTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(answer(options.one, options.output.resolve())))
        return
    unknown = sorted(set(options.families) - CHECKPOINTS.keys())
    if unknown:
        parser.error(f"no such family: {', '.join(unknown)}")
    print(f"{' '.join(vllm_environment.installed())}, {device()}\n")
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS), flush=True)
    failed = False
    for family in options.families or CHECKPOINTS:
        found = run_apart(family, options.output.resolve() / family)
        failed |= "s" not in found
        print(f"| {family} | " + " | ".join(str(found.get(column, "")) for column in COLUMNS[1:]) + " |", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
