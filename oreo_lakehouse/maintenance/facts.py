"""The facts of the files that our runs wrote, one file a run, recorded before the run commits.

Facts of a commit that never landed speak of files that nobody reads, and do no harm. A document is three lines: a
header with the format's version and a hash of the rest, the files' names, and the facts in columns, so that names are
cheap to ask for and the Spark rule, in Java, reads the same bytes. A damaged or newer document is named and left out:
without facts a file is simply read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from oreo_lakehouse.errors import StoreError
from oreo_lakehouse.layouts.blocks import Blocks, ColumnStats, Distinct, Ints
from oreo_lakehouse.predicates.columns import columns_of
from oreo_lakehouse.predicates.jsonform import value_from_json, value_to_json
from oreo_lakehouse.predicates.tree import And, CompareColumns, Not, Or, Predicate
from oreo_lakehouse.predicates.values import Array, Kind, python_value
from oreo_lakehouse.store import parsed
from oreo_lakehouse.tables.filefacts import FileFacts, enriched, joined

if TYPE_CHECKING:
    from oreo_lakehouse.layouts.layout import Layout
    from oreo_lakehouse.store import Store

FORMAT_VERSION = 1
FOLDER = "files"


class FactStore:
    """The facts of one table's files."""

    def __init__(self, store: Store, table_uuid: str) -> None:
        self._store = store
        self._folder = f"{table_uuid}/{FOLDER}"

    def record(self, run_id: str, facts: FileFacts) -> None:
        """Keep what a run's verification showed."""
        self._store.create(f"{self._folder}/{run_id}.json", encode(facts))

    def names(self, runs: Collection[str] | None = None) -> set[str]:
        """The names of all files with facts, which are those that runs of ours wrote; or those of these runs."""
        found: set[str] = set()
        for path, content in self._documents():
            if runs is not None and path.rpartition("/")[2].removesuffix(".json") not in runs:
                continue
            try:
                found.update(_names(content))
            except ValueError:
                continue
        return found

    def load(self) -> tuple[FileFacts | None, list[str]]:
        """All facts, and a sentence for every document that cannot be used."""
        parts: list[FileFacts] = []
        notices: list[str] = []
        for path, content in self._documents():
            try:
                parts.append(decode(content))
            except ValueError as damage:
                notices.append(
                    f"file facts {path} in {self._store.root} cannot be used ({damage}): its files are read as if "
                    "there were none; delete it, or upgrade if a newer release wrote it"
                )
        return (joined(parts) if parts else None), notices

    def enrich(self, blocks: Blocks, keys: Mapping[str, str]) -> Blocks:
        """Blocks of a table's present files with all that `bid` mode skips by; `keys` are `Table.column_keys()`."""
        facts, _ = self.load()
        return blocks if facts is None else enriched(blocks, facts, keys)

    def tidy(self, live: Collection[str], kept_runs: Collection[str] = ()) -> int:
        """Forget runs of whose files none is live, unless they may come back; returns how many.

        Args:
            live: names of the table's present files.
            kept_runs: runs whose layout can still be returned to.
        """
        present = set(live)
        gone = 0
        for path, content in self._documents():
            if path.rpartition("/")[2].removesuffix(".json") in kept_runs:
                continue
            try:
                names = _names(content)
            except ValueError:
                continue  # not ours to judge
            if present.isdisjoint(names):
                self._store.delete(path)
                gone += 1
        return gone

    def _documents(self) -> Iterable[tuple[str, bytes]]:
        for entry in self._store.entries(self._folder):
            path = f"{self._folder}/{entry.name}"
            content = self._store.read(path)
            if content is not None:
                yield path, content


def wanted_facts(layout: Layout, predicates: Iterable[Predicate]) -> tuple[set[str], set[tuple[str, str]]]:
    """Which columns and pairs of columns deserve facts: what the layout cuts by and what queries ask.

    Without queries every column might be asked for, so a table's own default decides: see `Table.verify`.
    """
    columns, pairs = set(layout.columns), set[tuple[str, str]]()
    for predicate in predicates:
        columns |= columns_of(predicate)
        pairs |= _pairs(predicate)
    return columns, pairs


def encode(facts: FileFacts) -> bytes:
    """The document of a run's facts."""
    names = json.dumps(list(facts.names), separators=(",", ":"))
    body = json.dumps(
        {
            "rows": facts.rows.tolist(),
            "bids": facts.bids.tolist(),
            "columns": {key: _column_to_json(stats) for key, stats in facts.columns.items()},
            "comparisons": [[*pair, bits.tolist()] for pair, bits in facts.comparisons.items()],
        },
        separators=(",", ":"),
        allow_nan=False,
    )
    rest = f"{names}\n{body}".encode()
    header = {"version": FORMAT_VERSION, "sha256": hashlib.sha256(rest).hexdigest()}
    return json.dumps(header).encode() + b"\n" + rest


def decode(content: bytes) -> FileFacts:
    """The facts in a document.

    Raises:
        ValueError: it is damaged, or of another format version; the message says which.
    """
    header, _, rest = content.partition(b"\n")
    _check_version(header)
    if hashlib.sha256(rest).hexdigest() != parsed(header).get("sha256"):
        raise ValueError("its content does not match its checksum")
    names, _, body = rest.partition(b"\n")
    try:
        document = parsed(body)
        found = FileFacts(
            names=tuple(_texts(names)),
            rows=_ints(document["rows"]),
            bids=_ints(document["bids"]),
            columns={key: _column_from_json(column) for key, column in document["columns"].items()},
            comparisons={(left, right): _ints(bits) for left, right, bits in document["comparisons"]},
        )
    except (KeyError, TypeError, AttributeError, OverflowError, IndexError, StoreError) as error:
        raise ValueError("it does not hold what file facts should") from error
    parts = [found.rows, found.bids, *found.comparisons.values()]
    for stats in found.columns.values():
        parts += [stats.lower, stats.upper, stats.nulls, *([stats.distinct.known] if stats.distinct else [])]
    if any(part.shape != (len(found.names),) for part in parts):
        raise ValueError("it does not tell the same of every file")
    return found


def _names(content: bytes) -> list[str]:
    header, _, rest = content.partition(b"\n")
    _check_version(header)
    return _texts(rest.partition(b"\n")[0])


def _texts(content: bytes) -> list[str]:
    found = parsed(content)
    if not isinstance(found, list) or not all(isinstance(name, str) for name in cast("list[object]", found)):
        raise ValueError("its names are no list of names")
    return cast("list[str]", found)


def _check_version(header: bytes) -> None:
    try:
        version = parsed(header)["version"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError("it is not a document of file facts") from error
    if version != FORMAT_VERSION:
        raise ValueError(f"it has format {version}, this release reads {FORMAT_VERSION}")


def _pairs(predicate: Predicate) -> set[tuple[str, str]]:
    match predicate:
        case CompareColumns(left, _, right) if left != right:
            return {(min(left, right), max(left, right))}
        case And(children) | Or(children):
            return set[tuple[str, str]]().union(*map(_pairs, children))
        case Not(child):
            return _pairs(child)
        case _:
            return set()


def _column_to_json(stats: ColumnStats) -> dict[str, Any]:
    kind = stats.kind

    def bounds(values: Array, known: Array) -> list[Any]:
        return [value_to_json(kind, python_value(kind, v)) if ok else None for v, ok in zip(values, known, strict=True)]

    document: dict[str, Any] = {
        "kind": kind.value,
        "lower": bounds(stats.lower, stats.lower_known),
        "upper": bounds(stats.upper, stats.upper_known),
        "nulls": stats.nulls.tolist(),
    }
    if stats.distinct is not None:
        found = stats.distinct
        document["values"] = [value_to_json(kind, python_value(kind, value)) for value in found.values]
        # One hexadecimal number a file, its lowest bit the first value.
        packed = np.packbits(found.present, axis=1, bitorder="little")[:, ::-1]
        document["sets"] = [row.tobytes().hex() if ok else None for row, ok in zip(packed, found.known, strict=True)]
    return document


def _column_from_json(document: dict[str, Any]) -> ColumnStats:
    kind = Kind(document["kind"])
    lower, upper = (
        [None if value is None else value_from_json(kind, value) for value in document[side]]
        for side in ("lower", "upper")
    )
    stats = ColumnStats.of(kind, lower, upper, document["nulls"])
    if "values" not in document:
        return stats
    values = np.empty(len(document["values"]), kind.dtype)
    values[:] = [value_from_json(kind, value) for value in document["values"]]
    known = np.array([text is not None for text in document["sets"]], np.bool_)
    present = np.zeros((len(known), len(values)), np.bool_)
    for at, text in enumerate(document["sets"]):
        if text:
            raw = np.frombuffer(bytes.fromhex(text)[::-1], np.uint8)
            present[at] = np.unpackbits(raw, bitorder="little")[: len(values)]
    return ColumnStats(
        kind,
        stats.lower,
        stats.upper,
        stats.lower_known,
        stats.upper_known,
        stats.nulls,
        Distinct(values, present, known),
    )


def _ints(values: list[int]) -> Ints:
    return np.array(values, np.int64)
