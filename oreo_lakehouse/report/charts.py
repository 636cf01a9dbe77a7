"""The report's drawings: SVG that stretches with the page, its words as HTML around it so that they never shrink.

Every drawing has a title and a description in words for those who do not see it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import count

import numpy as np
import numpy.typing as npt

Point = tuple[float, float]
_KEY = '<svg viewBox="0 0 26 10" aria-hidden="true"><line class="line {style}" x1="0" x2="26" y1="5" y2="5"/></svg>'
POINTS = 500
"""Of a line: more are not seen."""


@dataclass(frozen=True)
class Line:
    """One line of a plot; its name is also its style class."""

    style: str
    name: str
    points: Sequence[Point]


class Drawings:
    """Makes drawings whose ids are all different within one page."""

    def __init__(self) -> None:
        self._ids: Iterator[int] = count(1)

    def lines(
        self,
        title: str,
        description: str,
        x_title: str,
        lines: Sequence[Line],
        marks: Sequence[tuple[float, str]] = (),
        *,
        percent: bool = False,
        filled: bool = False,
        low: bool = False,
    ) -> str:
        """Lines over the same axis, with numbered marks on top."""
        drawn = [line for line in lines if line.points]
        right = max(x for line in drawn for x, _ in line.points) or 1.0
        highest = max(y for line in drawn for _, y in line.points)
        ticks = [0.0, 0.25, 0.5, 0.75, 1.0] if percent else nice_ticks(highest)
        top = ticks[-1]
        parts = [f'<line class="grid" x1="0" x2="100" y1="{_y(t, top)}" y2="{_y(t, top)}"/>' for t in ticks]
        parts += [f'<line class="move" y1="0" y2="100" x1="{_x(x, right)}" x2="{_x(x, right)}"/>' for x, _ in marks]
        if filled and len(drawn) > 1:
            ahead, behind = _thin(drawn[0].points), _thin(drawn[1].points)
            around = " ".join(f"{_x(x, right)},{_y(y, top)}" for x, y in [*ahead, *reversed(behind)])
            parts.append(f'<polygon class="area" points="{around}"/>')
        for line in reversed(drawn):  # the first one lies on top
            points = " ".join(f"{_x(x, right)},{_y(y, top)}" for x, y in _thin(line.points))
            parts.append(f'<polyline class="line {line.style}" points="{points}"/>')
        labels = _labels(ticks, top, right, x_title, marks, percent)
        legend = "".join(f"<li>{_KEY.format(style=line.style)}{escape(line.name)}</li>" for line in drawn)
        picture = self._svg(title, description, "0 0 100 100", "".join(parts))
        shape = "plot low" if low else "plot"
        return f'<ul class="legend">{legend}</ul><div class="{shape}">{picture}{labels}</div>'

    def band(self, title: str, description: str, widths: Sequence[tuple[float, int]]) -> str:
        """One bar cut into coloured stretches."""
        total = sum(width for width, _ in widths) or 1.0
        parts: list[str] = []
        at = 0.0
        for width, colour in widths:
            wide = 100 * width / total
            parts.append(
                f'<rect x="{at:.3f}" y="0" width="{wide:.3f}" height="10" style="fill:var(--l{colour % 8})"/>'
                f'<line x1="{at:.3f}" x2="{at:.3f}" y1="0" y2="10" style="stroke:var(--bg);stroke-width:2"/>'
            )
            at += wide
        return f'<div class="band">{self._svg(title, description, "0 0 100 10", "".join(parts))}</div>'

    def heat(self, title: str, description: str, shares: npt.NDArray[np.float64]) -> str:
        """A grid of cells, the stronger the more often read."""
        down, across = shares.shape
        cells = "".join(
            f'<rect x="{x}" y="{y}" width="1" height="1" fill-opacity="{0.04 + 0.96 * shares[y, x]:.3f}"/>'
            for y in range(down)
            for x in range(across)
        )
        return f'<div class="heat">{self._svg(title, description, f"0 0 {across} {down}", cells)}</div>'

    def _svg(self, title: str, description: str, box: str, content: str) -> str:
        number = next(self._ids)
        return (
            f'<svg role="img" aria-labelledby="t{number} d{number}" viewBox="{box}" preserveAspectRatio="none">'
            f'<title id="t{number}">{escape(title)}</title><desc id="d{number}">{escape(description)}</desc>'
            f"{content}</svg>"
        )


def _labels(
    ticks: Sequence[float], top: float, right: float, x_title: str, marks: Sequence[tuple[float, str]], percent: bool
) -> str:
    """The words around a plot, each at its place in percent."""
    out: list[str] = []
    for tick in ticks:
        words = f"{tick:.0%}" if percent else short(tick)
        out.append(f'<span class="y" style="bottom:{100 * tick / top:.2f}%">{words}</span>')
    for tick in [*(t for t in nice_ticks(right) if t < 0.93 * right), right]:
        end = " first" if tick == 0 else " last" if tick == right else ""
        out.append(f'<span class="x{end}" style="left:{100 * tick / right:.2f}%">{short(tick)}</span>')
    out.append(f'<span class="x title">{escape(x_title)}</span>')
    out += [f'<span class="mark" style="left:{100 * x / right:.2f}%">{escape(name)}</span>' for x, name in marks]
    return "".join(out)


def nice_ticks(top: float) -> list[float]:
    """0 to at least `top` in 3 to 6 steps of 1, 2 or 5 times a power of ten.

    >>> nice_ticks(430)
    [0.0, 100.0, 200.0, 300.0, 400.0, 500.0]
    """
    if top <= 0:
        return [0.0, 1.0]
    rough = top / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * 0.999)
    return [step * i for i in range(math.ceil(top / step - 1e-9) + 1)]


def short(value: float) -> str:
    """A number that fits beside an axis.

    >>> short(0.25), short(1500), short(12_000), short(3_400_000)
    ('0.25', '1,500', '12k', '3.4M')
    """
    for limit, unit in ((1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (1e6 if unit == 'M' else 1e3):,.1f}".rstrip("0").rstrip(".") + unit
    return f"{value:,.0f}" if value == round(value) else f"{value:,.3g}"


def _thin(points: Sequence[Point]) -> Sequence[Point]:
    if len(points) <= POINTS:
        return points
    picked = np.unique(np.linspace(0, len(points) - 1, POINTS).astype(int))
    return [points[int(i)] for i in picked]


def _x(value: float, right: float) -> str:
    return f"{100 * value / right:.3f}"


def _y(value: float, top: float) -> str:
    return f"{100 * (1 - value / top):.3f}"
