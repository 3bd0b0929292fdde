"""Secrets planted wherever a user may put them, and looked for in everything that a run writes and prints."""

from __future__ import annotations

import base64
import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.conftest import vidpipe

Make = Callable[..., Path]
SECRETS = {"user": "carol77", "password": "pa55w0rd77", "query": "s1gn4ture77", "environment": "t0ken-of-mine-77"}
USER, PASSWORD, QUERY, ENVIRONMENT = SECRETS.values()


class Handler(SimpleHTTPRequestHandler):
    """Remembers what it was asked with."""

    asked: list[tuple[str, str]] = []  # noqa: RUF012

    def do_GET(self) -> None:
        """Serve a file of the folder to those who are allowed to have it."""
        self.asked.append((self.path, self.headers.get("Authorization", "")))
        super().do_GET()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[str]:
    """A web server of the test's folder: its host and port."""
    Handler.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=tmp_path)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def holders(texts: dict[str, str]) -> list[tuple[str, str]]:
    return [(where, name) for where, text in texts.items() for name, secret in SECRETS.items() if secret in text]


def everything_in(folder: Path) -> dict[str, str]:
    """Text of all files, also of compressed ones."""
    texts = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            texts[path.name] = f"{table.to_pylist()} {table.schema.metadata} {table.schema}"
        elif path.is_file():
            texts[path.name] = path.read_bytes().decode("utf-8", "replace")
    return texts


def test_no_secret_is_recorded_or_printed(make_run: Make, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("aiohttp")
    signed = f"a.mp4?v=1&X-Amz-Signature={QUERY}"
    at_home, nowhere = f"http://{USER}:{PASSWORD}@{host}/", f"http://{USER}:{PASSWORD}@127.0.0.1:9/"
    rows: list[dict[str, Any]] = [
        {"id": "good", "video": at_home + signed, "question": f"Is it {ENVIRONMENT}?", "meta": {"from": at_home}},
        {"id": "gone", "video": at_home + f"none.mp4?sig={QUERY}", "question": "?"},
        {"id": "down", "video": nowhere + signed, "question": "?"},
        {"id": "odd", "video": {"url": at_home + signed}, "question": "?"},
        {"id": "list", "video": [at_home + signed, f"ftp://{USER}:{PASSWORD}@h/x"], "question": "?"},
        {"id": "page", "video": at_home + f"rows.jsonl?token={QUERY}", "question": "?"},
        {"id": at_home + signed, "video": "a.mp4", "question": "?"},
        {"id": "undefined", "video": "a.mp4", "question": "?", "generation": {"stop": at_home}},
    ]
    monkeypatch.setenv("HF_TOKEN", ENVIRONMENT)
    monkeypatch.setenv("VLLM_PROXY", f"http://{USER}:{PASSWORD}@proxy")
    recipe = make_run(
        rows,
        script={"texts": {"good": "yes"}},
        description=f"from {at_home} with {ENVIRONMENT}",
        media={"schemes": ["http"]},
        output={"tolerance": 8},
        retry={"rules": [{"when": ["not_openable"]}]},
    )
    run_dir = recipe.parent / "run"
    printed: dict[str, str] = {}
    for name, *arguments in (
        ("check", recipe), ("plan", recipe), ("plan", recipe, "--json"),
        ("run", recipe, "-o", run_dir), ("merge", run_dir, "-o", run_dir / "all.parquet"),
        ("run", recipe, "-o", run_dir, "--set", f"media_root={at_home}"),
        ("check", recipe, "--set", f"engine.args.hf_token={ENVIRONMENT}"),
    ):  # fmt: skip
        done: subprocess.CompletedProcess[str] = vidpipe(name, *arguments)
        assert "Traceback" not in done.stderr, done.stderr
        printed[f"{len(printed)} {name}"] = done.stdout + done.stderr
    found = {row["id"]: row for row in pq.read_table(run_dir / "results.parquet").to_pylist()}
    assert (
        found["good"]["status"] == "ok"
        and found["good"]["clip_id"] == f"http://***@{host}/a.mp4?v=1&X-Amz-Signature=***"
    )
    assert found["gone"]["error_kind"] == "not_found" and found["down"]["error_kind"] == "not_openable"
    assert found["down"]["attempt"] == 2 and found["(line 7)"]["error_kind"] == "bad_id"
    assert "secret has no place" in printed["6 check"]
    basic = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    assert (f"/{signed}", basic) in Handler.asked, "the server must still get them"
    texts = everything_in(run_dir)
    assert {"run.json", "recipe.yaml", "results.parquet", "all.parquet"} <= texts.keys()
    assert "HF_TOKEN" not in json.loads(texts["run.json"])["environment"]
    assert holders(texts | printed) == []
