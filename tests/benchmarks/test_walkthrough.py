"""The documented way from published files to a comparison: the data set in its parts, the script as it stands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.benchmarks import vsi_shaped
from tests.conftest import ROOT, vidpipe
from vidpipe.benchmarks.vsi import CHOICE_TYPES, NUMBER_TYPES

SCRIPT = Path(__file__).with_name("vsi_walkthrough.sh")


def test_the_made_up_files_have_the_published_form_and_import(tmp_path: Path) -> None:
    vsi_shaped.write(tmp_path / "published")
    table = pq.read_table(tmp_path / "published" / "test.parquet")
    assert set(table["question_type"].to_pylist()) == {*NUMBER_TYPES, *CHOICE_TYPES}
    for record in table.to_pylist():
        choice = record["question_type"] in CHOICE_TYPES
        assert choice == (record["options"] is not None)
        assert not choice or record["ground_truth"] in [option[0] for option in record["options"]]
    for dataset in vsi_shaped.DATASETS:
        with zipfile.ZipFile(tmp_path / "published" / f"{dataset}.zip") as archive:
            archive.extractall(tmp_path / "media")
    result = vidpipe(
        "import", "vsi", "--src", tmp_path / "published" / "test.parquet", "--media-root", tmp_path / "media",
        "-o", tmp_path / "vsi", "--json",
    )  # fmt: skip
    document = json.loads(result.stdout)
    assert document["missing_videos"] == [] and document["rows"] == table.num_rows
    result = vidpipe(
        "check", tmp_path / "vsi" / "recipe.yaml", "--set", f"model.path={ROOT / 'data/tiny-qwen3vl'}", "--json"
    )
    assert json.loads(result.stdout)["faults"] == []


@pytest.mark.engine
def test_the_script_runs_as_documented(tmp_path: Path) -> None:
    assert SCRIPT.name in (ROOT / "docs" / "benchmarks.md").read_text()
    environment = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [SCRIPT, tmp_path], capture_output=True, text=True, env=environment, timeout=900, check=False
    )
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    assert "vsi.official version 1, percent, 95 % intervals over clips" in result.stdout
    assert re.search(r"^  obj_appearance_order +\d", result.stdout, re.MULTILINE)
    compared = result.stdout.partition("B - A")[2]
    assert re.search(r"^overall .*62 rows, 12 clips", compared, re.MULTILINE) and "McNemar p =" in compared
    assert "changed: sampling.fps: 2.0 -> 1.0" in compared
    fewer = re.search(r"^vision kept +([\d.]+) -> ([\d.]+)", compared, re.MULTILINE)
    assert fewer and float(fewer[2]) < 0.6 * float(fewer[1])
    scored = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert len(scored) == 2 * 62 and {row["profile"] for row in scored} == {"vsi.official@1", "vsi.lenient@2"}
