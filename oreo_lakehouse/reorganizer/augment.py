"""More queries of the same kind: a window of ten says little about which literals the next hundred will have.

New queries copy a seen one and redraw its literals. For a column whose literals are mostly seen once, there must be
many unseen ones (Good and Turing: the chance that the next one is new is the share of those seen once), so it is
redrawn with that chance: a category from the column's values, a range by moving it, width kept, within what has been
seen and a little beyond. People ask for round figures: where all bounds seen lie a multiple of some step apart (whole
days, hundreds, calendar months), so do those of the new ranges.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.predicates.encoded import EncodedColumn
from oreo_lakehouse.predicates.shape import Junction, Member, Place, Shape, Test
from oreo_lakehouse.predicates.tree import Op
from oreo_lakehouse.predicates.values import Array
from oreo_lakehouse.predicates.workload import Workload
from oreo_lakehouse.reorganizer.lattice import lattice

_RANGES = (Op.LT, Op.LE, Op.GE, Op.GT)


def augmented(
    workload: Workload,
    sample: Sample,
    count: int,
    random: np.random.Generator,
    spread: bool = False,
    move: bool = True,
) -> Workload:
    """`count` queries like those of the workload.

    Args:
        workload: seen queries.
        sample: says which values a column has.
        count: how many to make.
        random: draws them.
        spread: draw ranges from the whole column instead of the region seen.
        move: whether ranges are redrawn at all.
    """
    if not len(workload) or count <= 0:
        return workload.take(np.zeros(0, np.intp))
    shares = np.array([len(group.queries) for group in workload.groups]) / len(workload)
    made: dict[Shape, list[Array]] = {}
    for group, wanted in zip(workload.groups, random.multinomial(count, shares), strict=True):
        slots = workload.values(group)
        if not wanted or not slots:
            continue
        chosen = random.integers(len(group.queries), size=wanted)
        values = [slot[chosen] for slot in slots]
        for place, ranged, numbers in slot_families(group.shape):
            column = sample.rows.column(place[0])
            if column is None or column.kind is not place[1] or len(column.values) < 2 or (ranged and not move):
                continue
            seen = [slots[number] for number in numbers]
            redraw = random.random(wanted) < _unseen(seen[0])
            if not redraw.any():
                continue
            drawn = (_moved if ranged else _picked)(column, seen, chosen[redraw], random, spread)
            for number, new in zip(numbers, drawn, strict=True):
                values[number] = values[number].copy()
                values[number][redraw] = new
        made[group.shape] = values
    return Workload.of_slots(made)


def _unseen(values: Array) -> float:
    """Good and Turing's estimate of the chance that the next value is a new one."""
    first = values if values.ndim == 1 else values[:, 0]
    counts = np.unique(first, return_counts=True)[1]
    return float((counts == 1).sum() / max(1, len(first)))


def slot_families(shape: Shape) -> list[tuple[Place, bool, list[int]]]:
    """Slots that move together: the bounds of one conjunction on one column; any other slot alone."""
    out: list[tuple[Place, bool, list[int]]] = []
    number = 0

    def visit(node: Shape) -> None:
        nonlocal number
        ranges: dict[Place, list[int]] = {}
        for child in node.children if isinstance(node, Junction) else (node,):
            if isinstance(child, Junction):
                visit(child)
            elif (
                isinstance(child, Test) and child.op in _RANGES and (not isinstance(node, Junction) or node.conjunction)
            ):
                ranges.setdefault(child.place, []).append(number)
                number += 1
            elif isinstance(child, Test | Member):
                out.append((child.place, False, [number]))
                number += 1
        out.extend((place, True, numbers) for place, numbers in ranges.items())

    visit(shape)
    return out


def _picked(
    column: EncodedColumn, seen: list[Array], chosen: npt.NDArray[np.int64], random: np.random.Generator, spread: bool
) -> list[Array]:
    del spread
    shape = (len(chosen), *seen[0].shape[1:])
    return [np.sort(column.values[random.integers(len(column.values), size=shape)], axis=-1)]


def _moved(
    column: EncodedColumn, seen: list[Array], chosen: npt.NDArray[np.int64], random: np.random.Generator, spread: bool
) -> list[Array]:
    """Ranges moved along the column's values, their width in values kept."""
    steps = lattice(column.kind, seen)
    if steps is not None:
        ends = steps.of(column.values[[0, -1]].astype(np.int64)) if spread else None
        return steps.values(_shifted(steps.coordinates, chosen, random, ends))
    last = len(column.values) - 1
    at = [np.minimum(np.searchsorted(column.values, slot), last) for slot in seen]
    middle = np.mean(at, axis=0)
    low, high = (0.0, float(last)) if spread else _reach(middle, last)
    shift = np.round(random.uniform(low, high, len(chosen)) - middle[chosen]).astype(np.intp)
    return [column.values[np.clip(ranks[chosen] + shift, 0, last)] for ranks in at]


def _shifted(
    at: npt.NDArray[np.float64], chosen: npt.NDArray[np.int64], random: np.random.Generator, ends: Array | None
) -> npt.NDArray[np.float64]:
    """Ranges moved by whole steps; `at` is (bounds x queries)."""
    middle = at.mean(axis=0)
    low, high = _reach(middle, np.inf, -np.inf) if ends is None else (float(ends[0]), float(ends[1]))
    return at[:, chosen] + np.round(random.uniform(low, high, len(chosen)) - middle[chosen])


def _reach(middle: npt.NDArray[np.float64], last: float, first: float = 0.0) -> tuple[float, float]:
    """Where the next middle may lie: n of them leave a gap of about 1/n of their span at either end."""
    low, high = float(middle.min()), float(middle.max())
    gap = (high - low) / max(1, len(middle))
    return max(first, low - gap), min(float(last), high + gap)
