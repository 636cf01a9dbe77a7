"""Line plots as SVG, in a page that opens offline, or as PNG; no script, no font, nothing fetched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
import numpy.typing as npt

from oreo_lakehouse.errors import ConfigError
from oreo_lakehouse.report.raster import Canvas

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 900, 480, 70, 150, 40, 50
POINTS = 400
"""Of a line: more are not seen."""
COLOURS = ("#c0392b", "#2471a3", "#7f8c8d", "#d68910", "#1e8449", "#8e44ad", "#117a65", "#5d6d7e", "#2c3e50")
_SHARP = 2
"""Pixels of a PNG for each unit of the plot."""


@dataclass(frozen=True)
class _Line:
    points: list[tuple[float, float]]
    colour: str
    width: int


@dataclass(frozen=True)
class _Words:
    x: float
    y: float
    words: str
    anchor: str = "start"
    colour: str = "#222222"


def write_costs(file: Path, lines: Mapping[str, npt.NDArray[np.float64]]) -> None:
    """Draw cumulative cost over the queries, a line a policy.

    Raises:
        ConfigError: the file's name does not end in .html, .svg or .png, or it cannot be written.
    """
    write_lines(file, "Cost of queries and rewrites, in full scans of the table", "queries", lines)


def write_lines(
    file: Path,
    title: str,
    x_title: str,
    lines: Mapping[str, npt.NDArray[np.float64]],
    ticks: Sequence[str] | None = None,
) -> None:
    """Draw lines over 0, 1, 2, … with their names at their ends.

    Args:
        file: .html, .svg or .png.
        title: above the plot.
        x_title: below it.
        lines: by name.
        ticks: what to call 0, 1, 2, …; by default their numbers.

    Raises:
        ConfigError: the file's name ends in something else, or it cannot be written.
    """
    check_name(file)
    parts = _parts(title, x_title, lines, ticks)
    try:
        if file.suffix == ".png":
            file.write_bytes(_png(parts))
            return
        picture = _svg(parts)
        if file.suffix == ".html":
            style = "body{margin:2rem;font-family:sans-serif;background:#fff;color:#222}"
            head = f"<!doctype html><meta charset=utf-8><title>{escape(title)}</title><style>{style}</style>"
            picture = f"{head}{picture}\n"
        file.write_text(picture)
    except OSError as error:
        raise ConfigError(f"cannot write {file}: {error.strerror}") from error


def check_name(file: Path) -> None:
    """Before an hour's work is done for a plot that cannot be written.

    Raises:
        ConfigError: the file's name does not end in .html, .svg or .png.
    """
    if file.suffix not in (".html", ".svg", ".png"):
        raise ConfigError(f"--plot {file}: write a .html, a .svg or a .png file")


def _parts(
    title: str, x_title: str, lines: Mapping[str, npt.NDArray[np.float64]], ticks: Sequence[str] | None
) -> list[_Line | _Words]:
    longest = max((len(line) for line in lines.values()), default=1)
    top = max((float(line.max()) for line in lines.values() if len(line)), default=1.0) or 1.0
    across, down = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x(i: float) -> float:
        return LEFT + across * i / max(1, longest - 1)

    def y(value: float) -> float:
        return TOP + down * (1 - value / top)

    out: list[_Line | _Words] = [
        _Words(LEFT, 24, title),
        _Words(LEFT + across / 2, HEIGHT - 10, x_title, "middle"),
    ]
    named = [(share * (longest - 1), f"{share * (longest - 1):,.0f}") for share in np.linspace(0, 1, 6)]
    for at, name in named if ticks is None else enumerate(ticks):
        out.append(_Words(x(at), HEIGHT - 30, name, "middle"))
    for share in np.linspace(0, 1, 6):
        height = y(float(share) * top)
        out.append(_Line([(LEFT, height), (LEFT + across, height)], "#dddddd", 1))
        out.append(_Words(LEFT - 8, height + 4, f"{share * top:,.0f}", "end"))
    ends: list[float] = []
    drawn = sorted(((name, line) for name, line in lines.items() if len(line)), key=lambda item: -float(item[1][-1]))
    for number, (name, line) in enumerate(drawn):
        picked = np.unique(np.linspace(0, len(line) - 1, POINTS).astype(int)).tolist()
        colour = COLOURS[number % len(COLOURS)]
        label = max([y(float(line[-1])), *(end + 15 for end in ends[-1:])])
        ends.append(label)
        out.append(_Line([(x(i), y(float(line[i]))) for i in picked], colour, 2))
        out.append(_Words(LEFT + across + 8, label + 4, name, "start", colour))
    return out


def _svg(parts: Sequence[_Line | _Words]) -> str:
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for part in parts:
        if isinstance(part, _Line):
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in part.points)
            tag = "polyline" if part.width > 1 else "polygon"
            out.append(f'<{tag} points="{points}" fill="none" stroke="{part.colour}" stroke-width="{part.width}"/>')
        else:
            where = f'x="{part.x:.1f}" y="{part.y:.1f}" text-anchor="{part.anchor}" fill="{part.colour}"'
            out.append(f"<text {where}>{escape(part.words)}</text>")
    return "\n".join([*out, "</svg>"])


def _png(parts: Sequence[_Line | _Words]) -> bytes:
    canvas = Canvas(WIDTH * _SHARP, HEIGHT * _SHARP)
    for part in parts:
        if isinstance(part, _Line):
            canvas.line([(x * _SHARP, y * _SHARP) for x, y in part.points], part.colour, part.width * _SHARP)
        else:
            canvas.text(part.x * _SHARP, part.y * _SHARP, part.words, part.colour, _SHARP, part.anchor)
    return canvas.png()
