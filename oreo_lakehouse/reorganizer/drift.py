"""Literals that slide with time: build for where they will be, not for where they were.

Dashboards ask for the last day, the last week, the last month: the same query with bounds that move. Per query shape
and column, each bound of the range is regressed on the query's position in the stream; a slope of more than six
standard errors is a drift, and queries to come are drawn by moving recent ones along it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.predicates.shape import Place, Shape
from oreo_lakehouse.predicates.values import Array, Kind
from oreo_lakehouse.predicates.workload import Workload
from oreo_lakehouse.reorganizer.augment import slot_families

_ERRORS = 6.0
_LEAST_OF_A_SHAPE = 4
_NUMBERS = (Kind.INTEGER, Kind.FLOAT, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ)


@dataclass(frozen=True)
class Drift:
    """How fast the slots of each shape slide, in units of their column a query."""

    slopes: dict[Shape, dict[int, float]]

    def __bool__(self) -> bool:
        return bool(self.slopes)


def find_drift(window: Workload) -> Drift:
    """The drifts of a stretch of the stream."""
    slopes: dict[Shape, dict[int, float]] = {}
    of_place: dict[Place, float] = {}
    for group in window.groups:
        if len(group.queries) < _LEAST_OF_A_SHAPE:
            continue
        time = group.queries.astype(np.float64)
        values = window.values(group)
        for place, ranged, numbers in slot_families(group.shape):
            if ranged and place[1] in _NUMBERS:
                # The bound with the least noise tells how fast the whole range moves: "until now" is exact.
                slope, significance = max((_slope(time, values[n].astype(np.float64)) for n in numbers), key=_certainty)
                if significance > _ERRORS * math.exp(10 / (len(time) - 2)):
                    slopes.setdefault(group.shape, {}).update(dict.fromkeys(numbers, slope))
                    of_place[place] = slope
    # Too few queries of a shape say nothing: what slides elsewhere slides in them.
    for group in window.groups if of_place else ():
        if len(group.queries) < _LEAST_OF_A_SHAPE:
            for place, ranged, numbers in slot_families(group.shape):
                if ranged and place in of_place:
                    slopes.setdefault(group.shape, {}).update(dict.fromkeys(numbers, of_place[place]))
    return Drift(slopes)


def room(window: Workload, drift: Drift, sample: Sample) -> float:
    """In how many queries sliding ranges will have reached the end of their column's values.

    What is asked for after that is not in the table yet.
    """
    ends: list[float] = [0.0]
    for group in window.groups:
        for place, _, numbers in slot_families(group.shape):
            slope = drift.slopes.get(group.shape, {}).get(numbers[0], 0.0)
            column = sample.rows.column(place[0])
            if slope and column is not None and column.kind is place[1] and len(column.values):
                end = float(column.values[-1 if slope > 0 else 0])
                values = window.values(group)
                ends.append(min((end - float(values[number][-1])) / slope for number in numbers))
    return max(ends)


def project(window: Workload, drift: Drift, horizon: float, count: int, random: np.random.Generator) -> Workload:
    """`count` queries like those of the window, as they may look up to `horizon` queries after its end."""
    chosen = random.integers(len(window), size=count)
    ahead = random.uniform(0, horizon, count) + (len(window) - chosen)
    picked = window.take(chosen)
    made: dict[Shape, list[Array]] = {}
    for group in picked.groups:
        values = picked.values(group)
        for number, slope in drift.slopes.get(group.shape, {}).items():
            moved = values[number].astype(np.float64) + slope * ahead[group.queries]
            values[number] = moved.astype(values[number].dtype) if values[number].dtype.kind == "f" else _whole(moved)
        if values:
            made[group.shape] = values
    return Workload.of_slots(made)


def _slope(time: npt.NDArray[np.float64], bound: npt.NDArray[np.float64]) -> tuple[float, float]:
    """The slope of a bound over time, and how many standard errors it is away from 0."""
    centred = time - time.mean()
    spread = float(centred @ centred)
    if spread <= 0 or not np.isfinite(bound).all():
        return 0.0, 0.0
    slope = float(centred @ (bound - bound.mean())) / spread
    rest = bound - bound.mean() - slope * centred
    error = float(np.sqrt((rest @ rest) / max(1, len(time) - 2) / spread))
    return slope, abs(slope) / max(error, 1e-12 * abs(slope)) if slope else 0.0


def _certainty(found: tuple[float, float]) -> float:
    return found[1]


def _whole(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    return np.round(np.clip(values, -(2.0**62), 2.0**62)).astype(np.int64)
