"""Layouts that are binary decision trees: a cut at every inner node, a block at every leaf.

A row goes left where the cut is TRUE and right otherwise, so NULLs go right. Leaves are numbered from left to right:
blocks that are cut from the same region, and so are read together, are neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from oreo_lakehouse.errors import StoreError
from oreo_lakehouse.layouts.layout import Bids, Layout
from oreo_lakehouse.layouts.sqltext import predicate_sql
from oreo_lakehouse.predicates.encoded import EncodedRows
from oreo_lakehouse.predicates.jsonform import from_json, to_json
from oreo_lakehouse.predicates.rowtest import holds
from oreo_lakehouse.predicates.tree import Predicate

MAX_DEPTH = 64


@dataclass(frozen=True)
class Branch:
    """Rows for which `cut` is TRUE go left; the others, NULL included, right."""

    cut: Predicate
    left: Tree
    right: Tree


Tree: TypeAlias = Branch | None
"""A branch, or a leaf: None."""


def leaves(tree: Tree) -> int:
    """How many blocks the tree makes."""
    return 1 if tree is None else leaves(tree.left) + leaves(tree.right)


class TreeLayout(Layout):
    """A layout that routes rows through a decision tree; subclasses differ in how the tree came about."""

    title: ClassVar[str]

    def __init__(self, columns: tuple[str, ...], tree: Tree) -> None:
        self.columns = columns
        self.tree = tree
        self.blocks = leaves(tree)

    def assign(self, rows: pa.Table) -> Bids:
        return self.assign_encoded(EncodedRows(rows))

    def assign_encoded(self, rows: EncodedRows) -> Bids:
        bids = np.zeros(len(rows), np.int32)
        for bid, at in enumerate(_route(self.tree, rows, np.arange(len(rows)))):
            bids[at] = bid
        return bids

    def sql(self) -> str:
        numbers = iter(range(self.blocks))
        return _sql(self.tree, numbers)

    def describe(self) -> str:
        where = f"{self.title} {', '.join(self.columns)}" if self.columns else "one block"
        return f"{where}: {self.blocks} blocks"

    def _content(self) -> dict[str, Any]:
        return {"columns": list(self.columns), "tree": _tree_to_json(self.tree)}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        """The layout that `to_json` described.

        Raises:
            StoreError: the document is not one of ours.
        """
        columns = document.get("columns")
        if not isinstance(columns, list) or not all(isinstance(c, str) for c in cast("list[object]", columns)):
            raise StoreError("malformed layout: its columns are not a list of names")
        return cls(tuple(cast("list[str]", columns)), _tree_from_json(document.get("tree"), 0))


def _route(tree: Tree, rows: EncodedRows, at: npt.NDArray[np.intp]) -> Iterator[npt.NDArray[np.intp]]:
    if tree is None:
        yield at
        return
    left = holds(tree.cut, rows, at)
    yield from _route(tree.left, rows, at[left])
    yield from _route(tree.right, rows, at[~left])


def _sql(tree: Tree, numbers: Iterator[int]) -> str:
    if tree is None:
        return str(next(numbers))
    left = _sql(tree.left, numbers)
    return f"CASE WHEN {predicate_sql(tree.cut)} THEN {left} ELSE {_sql(tree.right, numbers)} END"


def _tree_to_json(tree: Tree) -> dict[str, Any] | None:
    if tree is None:
        return None
    return {"cut": to_json(tree.cut), "left": _tree_to_json(tree.left), "right": _tree_to_json(tree.right)}


def _tree_from_json(document: object, depth: int) -> Tree:
    if document is None:
        return None
    if not isinstance(document, dict) or set(cast("dict[str, Any]", document)) != {"cut", "left", "right"}:
        raise StoreError("malformed layout: a branch needs a cut, a left and a right side")
    if depth > MAX_DEPTH:
        raise StoreError(f"malformed layout: its tree is deeper than {MAX_DEPTH}")
    fields = cast("dict[str, Any]", document)
    return Branch(
        from_json(fields["cut"]),
        _tree_from_json(fields["left"], depth + 1),
        _tree_from_json(fields["right"], depth + 1),
    )
