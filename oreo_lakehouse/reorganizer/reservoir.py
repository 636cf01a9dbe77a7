"""R-TBS: a bounded sample of a stream in which an item's chance to be present decays exponentially with its age.

Hentschel, Haas and Tian, "General Temporally Biased Sampling Schemes for Data Streams" (TODS 2019), Algorithms 2 and 3,
for batches of one item. The paper behind this package uses it without saying how fast it decays; here that is an
argument. A **latent** sample of real-valued weight C holds floor(C) full items and, if C is not whole, one partial
item.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oreo_lakehouse.errors import StoreError
from oreo_lakehouse.reorganizer.randomness import generator_from_json, generator_to_json, new_generator


class Reservoir:
    """A time-biased sample of at most `capacity` item numbers.

    Args:
        capacity: most items kept.
        decay: an item's chance falls by the factor exp(-decay) with each later item; 0 is plain reservoir sampling.
        seed: of the generator that draws.

    >>> sample = Reservoir(3, decay=0.1, seed=1)
    >>> for item in range(100):
    ...     sample.add(item)
    >>> len(sample.items)
    3
    """

    def __init__(self, capacity: int, decay: float, seed: int) -> None:
        self.capacity, self.decay = capacity, decay
        self.items: list[int] = []
        self._partial: int | None = None
        self._weight = 0.0
        self._sample_weight = 0.0
        self._random = new_generator(seed)

    def add(self, item: int) -> None:
        """Algorithm 2 for one item."""
        saturated = self._weight >= self.capacity
        self._weight *= math.exp(-self.decay)
        if saturated and self._weight + 1 >= self.capacity:
            self._weight += 1
            if self._random.random() < self.capacity / self._weight:
                self.items[int(self._random.integers(len(self.items)))] = item
            return
        # Not full, or full no longer: decay what is there, then take the new item whole.
        self._downsample(self._weight)
        self.items.append(item)
        self._weight += 1
        self._sample_weight += 1
        if self._weight > self.capacity:
            self._downsample(float(self.capacity))

    def renumber(self, numbers: dict[int, int]) -> None:
        """Replace item numbers, when the stream that they point into is cut."""
        self.items = [numbers[item] for item in self.items]
        self._partial = None if self._partial is None else numbers[self._partial]

    @property
    def all_items(self) -> list[int]:
        """Every item that may still be drawn, the partial one included."""
        return self.items if self._partial is None else [*self.items, self._partial]

    def _downsample(self, target: float) -> None:
        """Algorithm 3: scale the latent sample's weight down to `target`."""
        weight = self._sample_weight
        if target >= weight or weight <= 0:
            return
        share, kept = target / weight, math.floor(target)
        part, part_after = weight - math.floor(weight), target - kept
        draw = self._random.random()
        if kept == 0:
            if draw > part / weight:
                self._swap()
            self.items = []
        elif kept == math.floor(weight):
            if draw > (1 - share * part) / (1 - part_after):
                self._swap()
        elif draw <= share * part:
            self._keep(kept)
            self._swap()
        else:
            self._keep(kept + 1)
            self._partial = self._take()
        if part_after == 0:
            self._partial = None
        self._sample_weight = target

    def _take(self) -> int:
        return self.items.pop(int(self._random.integers(len(self.items))))

    def _swap(self) -> None:
        before, self._partial = self._partial, self._take()
        if before is not None:
            self.items.append(before)

    def _keep(self, count: int) -> None:
        chosen = self._random.permutation(len(self.items))[:count]
        self.items = [self.items[i] for i in np.sort(chosen)]

    def to_json(self) -> dict[str, Any]:
        return {
            "capacity": self.capacity,
            "decay": self.decay,
            "items": list(self.items),
            "partial": self._partial,
            "weight": self._weight,
            "sample_weight": self._sample_weight,
            "random": generator_to_json(self._random),
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Reservoir:
        """The reservoir that `to_json` described.

        Raises:
            StoreError: the document is not one of ours.
        """
        try:
            out = cls(int(document["capacity"]), float(document["decay"]), 0)
            out.items = [int(item) for item in document["items"]]
            out._partial = None if document["partial"] is None else int(document["partial"])
            out._weight, out._sample_weight = float(document["weight"]), float(document["sample_weight"])
            out._random = generator_from_json(document["random"])
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(f"malformed state: a query sample cannot be read ({error})") from error
        return out
