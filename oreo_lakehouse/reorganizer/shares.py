"""How much each kind of query will count in the long run; its share so far tells that only roughly.

Where queries of a kind come in runs, a thousand queries are few draws: of ten runs of many kinds, one kind may well
have had three by chance, and a layout built for these shares would serve it too well and the others too badly. How much
the shares vary from one stretch of the past to the next says how uncertain their means are (batch means, as simulation
does with correlated observations); by as much as they are not further apart than that, they are drawn to be equal
(James and Stein, 1961). A steady mix, however uneven, keeps its shares; kinds that had a run or two each count alike.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oreo_lakehouse.predicates.shape import Shape, signature
from oreo_lakehouse.predicates.workload import Weights, Workload

_STRETCHES = 10
"""Few and long: runs that last longer than a stretch would make the shares look more certain than they are."""


def kind_of(shape: Shape) -> str:
    """The kind of a query, as the change detector sees it.

    >>> from oreo_lakehouse.predicates.shape import Junction, Test
    >>> from oreo_lakehouse.predicates.tree import Op
    >>> from oreo_lakehouse.predicates.values import Kind
    >>> kind_of(Junction(True, (Test(Op.EQ, ("shop", Kind.STRING)), Test(Op.GE, ("day", Kind.DATE)))))
    'day >,shop ='
    """
    return ",".join(sorted(signature(shape)))


def long_run(workload: Workload) -> dict[str, float]:
    """By kind, what a query of a sample of the past counts, for the kinds to have the shares expected in the long run.

    Args:
        workload: the sample, in order of arrival.
    """
    numbers: dict[str, int] = {}
    kinds = np.zeros(len(workload), np.intp)
    for group in workload.groups:
        kinds[group.queries] = numbers.setdefault(kind_of(group.shape), len(numbers))
    stretches = min(_STRETCHES, len(workload))
    if stretches < 2 or len(numbers) < 2:
        return dict.fromkeys(numbers, 1.0)
    found = np.zeros((len(numbers), stretches))
    np.add.at(found, (kinds, np.arange(len(workload)) * stretches // len(workload)), 1.0)
    mean = found.sum(axis=1) / len(workload)
    chance = float((found / found.sum(axis=0)).var(axis=1, ddof=1).sum()) / stretches
    apart = float(((mean - 1 / len(mean)) ** 2).sum())
    drawn = 1.0 if chance >= apart else chance / apart
    counts = 1 - drawn + drawn / (len(mean) * mean)
    return dict(zip(numbers, counts.tolist(), strict=True))


def weighed(workload: Workload, counts: Mapping[str, float]) -> Weights:
    """What each query counts, by its kind."""
    out = np.ones(len(workload))
    for group in workload.groups:
        out[group.queries] = counts.get(kind_of(group.shape), 1.0)
    return out
