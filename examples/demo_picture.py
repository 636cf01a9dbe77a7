"""Run the demo and draw what it prints: `uv run python examples/demo_picture.py` makes the README's picture."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

from oreo_lakehouse.cli.demo import demo
from oreo_lakehouse.report import console

PICTURE = Path(__file__).with_name("demo.svg")
WIDTH = 165


def main() -> None:
    console.out = Console(record=True, width=WIDTH, highlight=False)
    with tempfile.TemporaryDirectory() as folder:
        demo(Path(folder, "oreo-demo"), 2_000_000)
        drawn = console.out.export_svg(title="oreo demo", theme=MONOKAI).replace(f"{folder}/", "")
    # rich asks the reader's browser to fetch a font; any monospaced one will do.
    PICTURE.write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL))


if __name__ == "__main__":
    main()
