"""The layout contract: an immutable mapping from rows to block ids (BIDs).

A layout exists three times and means the same each time: over Arrow rows (`assign`, for samples and tests), as a Spark
SQL expression (`sql`, for the rewrite; no Python runs on the cluster), and as JSON (`to_json`, for the state and the
commit). Its id is a hash of that JSON, so equal layouts have equal ids on every machine.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from oreo_lakehouse.errors import StoreError
from oreo_lakehouse.predicates.encoded import EncodedRows

Bids = npt.NDArray[np.int32]
FORMAT_VERSION = 1


class Layout(ABC):
    """Row -> BID in `range(blocks)`. NULL compares as false, so a row with NULLs always has a block."""

    kind: ClassVar[str]
    blocks: int
    columns: tuple[str, ...]
    """The columns that decide a row's block, most important first."""

    @property
    def order(self) -> tuple[str, ...]:
        """The columns that rows are sorted by inside a block, so that engines skip parts of a file too.

        Only the first one, whose order is the only one that pages of a file show: each more is a dearer comparison.
        """
        return self.columns[:1]

    @abstractmethod
    def assign(self, rows: pa.Table) -> Bids:
        """The BID of every row."""

    def assign_encoded(self, rows: EncodedRows) -> Bids:
        """The same on rows that are encoded already; layouts that can use the encoding override this."""
        return self.assign(rows.table)

    @abstractmethod
    def sql(self) -> str:
        """A Spark SQL expression of type INT that gives every row the same BID as `assign`."""

    @abstractmethod
    def describe(self) -> str:
        """One line for people, such as `qd-tree on o_orderdate, p_type: 40 blocks`."""

    @abstractmethod
    def _content(self) -> dict[str, Any]:
        """What defines the layout, as JSON values; the constructor registered for `kind` takes it back."""

    def to_json(self) -> dict[str, Any]:
        return {"version": FORMAT_VERSION, "kind": self.kind, **self._content()}

    @cached_property
    def id(self) -> str:
        """Content hash: equal layouts have equal ids."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return f"{self.kind}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


_READERS: dict[str, Callable[[dict[str, Any]], Layout]] = {}


def register_layout(kind: str, reader: Callable[[dict[str, Any]], Layout]) -> None:
    """Make `layout_from_json` understand a kind of layout."""
    _READERS[kind] = reader


def layout_from_json(document: dict[str, Any]) -> Layout:
    """The layout that `to_json` described.

    Raises:
        StoreError: the document is of a newer format or an unknown kind.
    """
    version, kind = document.get("version"), document.get("kind")
    if version != FORMAT_VERSION:
        raise StoreError(f"layout format {version!r} is not supported (this release reads {FORMAT_VERSION}); upgrade")
    if kind not in _READERS:
        raise StoreError(f"layout kind {kind!r} is not known here; install the package that provides it")
    return _READERS[kind](document)
