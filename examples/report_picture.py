"""Look at a report as people do: light and dark, narrow and wide, by headless Chromium.

    uv run oreo report db.orders -o report.html
    uv run python examples/report_picture.py report.html pictures/

Writes four PNG files and checks that none of them is blank. Needs `chromium` (Debian's package) or Chrome on the path.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SIZES = {"wide": (1280, 3100), "narrow": (390, 5200)}
SCHEMES = {"light": "1", "dark": "0"}
LEAST_BYTES = 30_000
"""A blank page of these sizes takes a few kilobytes as PNG."""


def browser() -> str | None:
    """The first Chromium or Chrome on the path."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def take(report: Path, picture: Path, size: str, scheme: str) -> None:
    """One picture of the report."""
    command, (width, height) = browser(), SIZES[size]
    if command is None:
        raise SystemExit("no Chromium here: install it (Debian: apt-get install chromium)")
    with tempfile.TemporaryDirectory() as profile:
        # A window is never narrower than 500 pixels, a frame within it may be: the page sees the frame's width.
        frame = Path(profile, "frame.html")
        frame.write_text(
            f'<style>body{{margin:0}}</style><iframe src="{report.absolute().as_uri()}" width="{width}" '
            f'height="{height}" style="border:0;color-scheme:{scheme}"></iframe>'
        )
        subprocess.run(
            [
                command,
                "--headless",
                "--no-sandbox",
                "--hide-scrollbars",
                f"--user-data-dir={profile}",
                f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
                f"--window-size={width},{height}",
                f"--screenshot={picture}",
                frame.as_uri(),
            ],
            check=True,
            capture_output=True,
            timeout=300,
        )


def main(report: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for size in SIZES:
        for scheme in SCHEMES:
            picture = folder / f"report-{scheme}-{size}.png"
            take(report, picture, size, scheme)
            if picture.stat().st_size < LEAST_BYTES:
                raise SystemExit(f"{picture} is nearly blank: {picture.stat().st_size} bytes")
            print(picture)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else "."))
