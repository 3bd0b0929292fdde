"""The README's picture of a report: python -m tests.report.screenshot runs/demo/report.html docs/pictures/report.png

Needs Debian's chromium. The picture is reduced to 256 colours, so that it stays small.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from PIL import Image

from tests.report.browser import Browser

WIDTH, HEIGHT = 1180, 900


def main(page: Path, picture: Path) -> None:
    with Browser() as browser:
        browser.open(page, WIDTH, HEIGHT)
        whole = Image.open(io.BytesIO(browser.picture()))
        browser.value("document.querySelectorAll('#body .open')[0].click()")
        browser.value(
            "Promise.all([...document.querySelectorAll('.frames img')].map(image => image.decode())).then(() => 1)"
        )
        row = Image.open(io.BytesIO(browser.picture()))
    both = Image.new("RGB", (2 * WIDTH + 20, HEIGHT), "white")
    both.paste(whole, (0, 0))
    both.paste(row, (WIDTH + 20, 0))
    small = both.resize((1600, round(HEIGHT * 1600 / both.width)), Image.Resampling.LANCZOS)
    small.quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(picture, optimize=True)
    print(f"{picture}: {picture.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
