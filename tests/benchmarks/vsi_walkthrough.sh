#!/usr/bin/env bash
# A benchmark from its published files to a comparison of two runs, with a real model on any laptop (about a minute):
#   tests/benchmarks/vsi_walkthrough.sh [WORK_FOLDER]
# The data set has VSI-Bench's form and the demo's clips; put the published files and your model in for the real one.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${PYTHON:-.venv/bin/python}
work=$(realpath "${1:-$(mktemp -d)}")
vidpipe() { "$python" -m vidpipe "$@"; }

# 1. What the benchmark publishes: a Parquet file of questions and three zip files of videos, unpacked side by side.
"$python" -m tests.benchmarks.vsi_shaped "$work/published"
for zip in "$work"/published/*.zip; do
  "$python" -m zipfile -e "$zip" "$work/media"
done

# 2. Published file to manifest and recipe: prompt, budget of tokens and scorer are the benchmark's.
vidpipe import vsi --src "$work/published/test.parquet" --media-root "$work/media" -o "$work/vsi"

# 3. The same questions twice: at two frames a second, and at one.
settings=(--set model.path="$PWD/data/tiny-qwen3vl"
          --set engine.args="{max_model_len: 4096, max_num_seqs: 16}")
vidpipe run "$work/vsi/recipe.yaml" "${settings[@]}" --set sampling.fps=2 -o "$work/two_fps"
vidpipe run "$work/vsi/recipe.yaml" "${settings[@]}" --set sampling.fps=1 -o "$work/one_fps"

# 4. Scores by the official rules and by kinder ones: the gap tells a failed format from a failed model.
vidpipe score "$work/two_fps" --profile vsi.official --profile vsi.lenient --rows "$work/rows.jsonl"

# 5. What did half the frames cost, and what did it bring?
vidpipe compare "$work/two_fps" "$work/one_fps"
