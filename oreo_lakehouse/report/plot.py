"""Line plots as SVG, alone or in a page that opens offline; no script, no font, nothing fetched."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path

import numpy as np
import numpy.typing as npt

from oreo_lakehouse.errors import ConfigError

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 900, 480, 70, 150, 40, 50
POINTS = 400
"""Of a line: more are not seen."""
COLOURS = ("#c0392b", "#2471a3", "#7f8c8d", "#d68910", "#1e8449", "#8e44ad", "#117a65", "#5d6d7e", "#2c3e50")


def write_costs(file: Path, lines: Mapping[str, npt.NDArray[np.float64]]) -> None:
    """Draw cumulative cost over the queries, a line a policy.

    Raises:
        ConfigError: the file's name ends in neither .html nor .svg, or it cannot be written.
    """
    picture = line_plot("Cost of queries and rewrites, in full scans of the table", "queries", lines)
    if file.suffix == ".html":
        style = "body{margin:2rem;font-family:sans-serif;background:#fff;color:#222}"
        picture = f"<!doctype html><meta charset=utf-8><title>oreo backtest</title><style>{style}</style>{picture}\n"
    elif file.suffix != ".svg":
        raise ConfigError(f"--plot {file}: write a .html or a .svg file")
    try:
        file.write_text(picture)
    except OSError as error:
        raise ConfigError(f"cannot write {file}: {error.strerror}") from error


def line_plot(title: str, x_title: str, lines: Mapping[str, npt.NDArray[np.float64]]) -> str:
    """An SVG of lines over 0, 1, 2, … with their names at their ends."""
    longest = max((len(line) for line in lines.values()), default=1)
    top = max((float(line.max()) for line in lines.values() if len(line)), default=1.0) or 1.0
    across, down = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x(i: float) -> float:
        return LEFT + across * i / max(1, longest - 1)

    def y(value: float) -> float:
        return TOP + down * (1 - value / top)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{LEFT}" y="24" font-size="15">{escape(title)}</text>',
        f'<text x="{LEFT + across / 2}" y="{HEIGHT - 10}" text-anchor="middle">{escape(x_title)}</text>',
    ]
    for tick in np.linspace(0, 1, 6):
        query = tick * (longest - 1)
        parts += [
            f'<line x1="{LEFT}" x2="{LEFT + across}" y1="{y(tick * top):.1f}" y2="{y(tick * top):.1f}" stroke="#ddd"/>',
            f'<text x="{LEFT - 8}" y="{y(tick * top) + 4:.1f}" text-anchor="end">{tick * top:,.0f}</text>',
            f'<text x="{x(query):.1f}" y="{HEIGHT - 30}" text-anchor="middle">{query:,.0f}</text>',
        ]
    ends: list[float] = []
    for number, (name, line) in enumerate(sorted(lines.items(), key=lambda item: -float(item[1][-1]))):
        picked = np.unique(np.linspace(0, len(line) - 1, POINTS).astype(int))
        points = " ".join(f"{x(int(i)):.1f},{y(float(line[i])):.1f}" for i in picked)
        colour = COLOURS[number % len(COLOURS)]
        label = max([y(float(line[-1])), *(end + 15 for end in ends[-1:])])
        ends.append(label)
        parts += [
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>',
            f'<text x="{LEFT + across + 8}" y="{label + 4:.1f}" fill="{colour}">{escape(name)}</text>',
        ]
    return "\n".join([*parts, "</svg>"])
