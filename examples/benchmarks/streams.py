"""Streams of queries: one template at a time (the paper's), or several mixed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from oreo_lakehouse.predicates.tree import Predicate

Templates = Mapping[str, Callable[[np.random.Generator], Predicate]]


def segments(
    templates: Templates, count: int, seed: int, pieces: int = 20, lengths: tuple[int, int] | None = None, of: int = 0
) -> list[Predicate]:
    """One random template after the other.

    Args:
        templates: to draw from.
        count: queries in all.
        seed: of everything.
        pieces: how many segments, cut at random; or
        lengths: the shortest and longest segment.
        of: use only so many templates, chosen at random, which then recur.
    """
    random = np.random.default_rng(seed)
    names = sorted(templates)
    if of:
        names = sorted(random.choice(names, of, replace=False))
    if lengths is None:
        cuts = np.sort(random.choice(np.arange(1, count), pieces - 1, replace=False))
        sizes = np.diff([0, *cuts, count]).tolist()
    else:
        sizes = random.integers(lengths[0], lengths[1] + 1, count // lengths[0] + 1).tolist()
    out: list[Predicate] = []
    last = ""
    for size in sizes:
        last = str(random.choice([name for name in names if name != last]))
        out += [templates[last](random) for _ in range(size)]
    return out[:count]


def mixtures(templates: Templates, count: int, seed: int, lengths: tuple[int, int] = (1000, 4000)) -> list[Predicate]:
    """Six templates at a time, mixed in random shares that change now and then."""
    random = np.random.default_rng(seed)
    names = sorted(templates)
    out: list[Predicate] = []
    while len(out) < count:
        chosen = random.choice(names, 6, replace=False)
        shares = random.dirichlet(np.ones(6))
        size = int(random.integers(*lengths))
        out += [templates[str(name)](random) for name in random.choice(chosen, size, p=shares)]
    return out[:count]
