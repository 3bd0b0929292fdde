"""What is a secret, and what is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidpipe import redact as module
from vidpipe.redact import is_secret_name, redact, secret_values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://u:p%40ss@host/a.mp4", "https://***@host/a.mp4"),
        ("see s3://AKIA:x@b/c and ftp://me@h", "see s3://***@b/c and ftp://***@h"),
        ("https://h/a?v=7&X-Amz-Signature=ab12&X-Amz-Date=3", "https://h/a?v=7&X-Amz-Signature=***&X-Amz-Date=3"),
        ("https://h/a?X-Amz-Credential=AK%2F1&X-Amz-Security-Token=x/y", "https://h/a?X-Amz-Credential=***&X-Amz-Security-Token=***"),
        ("https://h/a?AWSAccessKeyId=A&Signature=b%3D&Expires=9", "https://h/a?AWSAccessKeyId=***&Signature=***&Expires=9"),
        ("https://x.blob.core.windows.net/c/a?sv=2&sig=q%2B1&se=3", "https://x.blob.core.windows.net/c/a?sv=2&sig=***&se=3"),
        ("('http://h/?TOKEN=abc', 3)", "('http://h/?TOKEN=***', 3)"),
        ("http://h/p#access_token=abc&x=1", "http://h/p#access_token=***&x=1"),
        ("hf_abcdefghijklmnopqrstuvwxyz is mine", "*** is mine"),
        ("Authorization: Bearer abc.def-123", "Authorization: Bearer ***"),
    ],
)  # fmt: skip
def test_secrets_go(text: str, expected: str) -> None:
    assert redact(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "https://host/watch?v=abc&t=3&max_tokens=9", "a@b.c", "mail me: x@y", "dir/a?token=1.mp4", "key: value",
        "hf_short", "file:///data/a b.mp4", "https://host/@user/video.mp4", "Is the password 1234 on the screen?", "",
    ],
)  # fmt: skip
def test_other_texts_stay(text: str) -> None:
    assert redact(text) == text


@given(st.text())
def test_twice_is_once(text: str) -> None:
    assert redact(redact(text)) == redact(text)


def test_names_of_secrets() -> None:
    assert all(map(is_secret_name, ["HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "VLLM_API_KEY", "hf_token", "DB_PASSWORD"]))
    assert not any(map(is_secret_name, ["max_tokens", "TOKENIZERS_PARALLELISM", "KEYBOARD", "OMP_NUM_THREADS", "PATH"]))
    given_values = {"A_TOKEN": "longenough", "B_KEY": "short", "C_CREDENTIALS": "/etc/gcp.json", "D": "something else"}
    assert secret_values(given_values) == ["longenough"]


def test_the_filter_passes_everything_else_on_as_it_is() -> None:
    content = b"a\r50%\rb\xff\xfe\nhttps://u:pw@h/x\n" + b"x" * 3_000_000 + b"\nno end https://h/?sig=abc"
    command = [sys.executable, "-I", "-S", module.__file__]
    filtered = subprocess.run(command, input=content, capture_output=True, check=True).stdout
    assert filtered == content.replace(b"u:pw", b"***").replace(b"abc", b"***")
    assert Path(module.__file__).read_text().count("import vidpipe") == 0
