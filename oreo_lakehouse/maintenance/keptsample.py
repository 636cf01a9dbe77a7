"""A table's sample, kept from run to run: only files that are new since are drawn from.

To draw rows takes a scan of the columns in question, which on a large table is the dearest part of a run that changes
nothing. Rows that were drawn together are kept together, with the share of rows that they are and marks of their files;
they stay a fair draw for as long as all those files are live with the same number of rows. What came since is drawn at
the share that the whole table needs now, and all are thinned to the same share. When files leave, the rows that were
drawn together with theirs are drawn anew; but where a layout of ours only moves rows to other files, they stay.

The kept rows are values of the table, in the columns that queries filter by and no others, in the store: that is for
its owner to decide (`layout.keep_sample`).
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from oreo_lakehouse.errors import ConflictError
from oreo_lakehouse.store import parsed

if TYPE_CHECKING:
    from oreo_lakehouse.layouts.blocks import Blocks, Ints
    from oreo_lakehouse.store import Store
    from oreo_lakehouse.tables.contract import Table

FORMAT_VERSION = 1
_MOST = 64
"""Draws that are kept side by side; then they become one."""
_TOO_FEW = 0.5
"""A sample with less than this share of the rows that it should have is drawn anew."""
_Marks = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class _How:
    """How rows were drawn."""

    share: float
    seed: int
    columns: dict[str, str]
    version: int = FORMAT_VERSION


@dataclass(frozen=True)
class _Draw:
    """Rows that were drawn together, and from which files."""

    rows: pa.Table
    marks: _Marks
    how: _How

    def fits(self, seed: int, columns: Mapping[str, str]) -> bool:
        return self.how.seed == seed and columns.items() <= self.how.columns.items()

    @property
    def name(self) -> str:
        text = json.dumps(asdict(self.how), sort_keys=True).encode()
        return hashlib.sha256(self.marks.tobytes() + text).hexdigest()[:24] + ".parquet"


class KeptSample:
    """The kept sample of one table or shard."""

    def __init__(self, store: Store, table_uuid: str) -> None:
        self._store = store
        self._folder = f"{table_uuid}/sample"

    def draw(
        self, table: Table, blocks: Blocks, rows: int, seed: int, columns: Mapping[str, str], *, keep: bool
    ) -> pa.Table:
        """About `rows` rows of the table.

        Args:
            table: the table or shard.
            blocks: its present files.
            rows: how many.
            seed: of every draw.
            columns: which ones, each with a text that is another one when the column is.
            keep: whether they are kept for the next run; a dry run uses what is kept, and changes nothing.
        """
        how = _How(min(1.0, rows / max(1, blocks.total_rows)), seed, dict(columns))
        if not blocks.names:
            return table.sample(rows, seed, list(columns))
        marks = _marks(blocks)
        draws = [one for one in self._kept() if one.fits(seed, columns) and np.isin(one.marks, marks).all()]
        if any(one.how.share < _TOO_FEW * how.share for one in draws):
            draws = []
        new = np.flatnonzero(~np.isin(marks, _joined(draws)))
        try:
            if len(new):
                draws.append(_drawn(table, blocks, new, marks, how))
            if any(not _alike(one, draws[-1], columns) for one in draws):  # a column was widened
                draws = [_drawn(table, blocks, np.arange(len(blocks)), marks, how)]
        except ConflictError:  # files went while we looked: the present ones, and nothing is kept
            return table.sample(rows, seed, list(columns))
        if len(draws) > _MOST:
            draws = [_merged([replace(one, rows=one.rows.select(list(columns))) for one in draws], how)]
        if keep:
            self._keep(draws)
        return _merged([replace(one, rows=one.rows.select(list(columns))) for one in draws], how).rows

    def follow(self, before: Blocks, after: Blocks) -> None:
        """A layout of ours has put the very rows of some files into others: what was drawn stays fair."""
        draws, now = self._kept(), _marks(after)
        same = before.total_rows == after.total_rows and bool(draws)
        covered = same and set(_joined(draws).tolist()) == set(_marks(before).tolist())
        if covered and all(replace(one.how, share=draws[0].how.share) == draws[0].how for one in draws):
            self._keep([replace(_merged(draws, draws[0].how), marks=now)])

    def forget(self) -> None:
        """Keep nothing."""
        self._keep([])

    def _kept(self) -> list[_Draw]:
        """What can be read of what is kept."""
        names = [entry.name for entry in self._store.entries(self._folder)]
        read = [_read(self._store.read(f"{self._folder}/{name}") or b"") for name in names]
        return [one for one in read if one is not None]

    def _keep(self, draws: Sequence[_Draw]) -> None:
        """These and no others."""
        there = {entry.name for entry in self._store.entries(self._folder)}
        for one in draws:
            if one.name not in there:
                self._store.create(f"{self._folder}/{one.name}", _written(one))
        for name in there - {one.name for one in draws}:
            self._store.delete(f"{self._folder}/{name}")


def _drawn(table: Table, blocks: Blocks, new: Ints, marks: _Marks, how: _How) -> _Draw:
    total = int(blocks.rows[new].sum())
    asked = max(1, int(np.ceil(how.share * total)))
    only = None if len(new) == len(blocks) else [blocks.names[at] for at in new]
    rows = table.sample(asked, how.seed, list(how.columns), only)
    return _Draw(rows, marks[new], replace(how, share=min(1.0, asked / max(1, total))))


def _alike(one: _Draw, other: _Draw, columns: Mapping[str, str]) -> bool:
    return all(one.rows.schema.field(name).type == other.rows.schema.field(name).type for name in columns)


def _merged(draws: Sequence[_Draw], how: _How) -> _Draw:
    """All of them at the smallest share of any, or at the one that is wanted: every row has had the same chance."""
    share = min(how.share, *(one.how.share for one in draws))
    rows = pa.concat_tables([_thin(one, share) for one in draws], promote_options="default")
    return _Draw(rows, _joined(draws), replace(how, share=share))


def _thin(one: _Draw, share: float) -> pa.Table:
    """The same choice for the same draw, and for a smaller share a part of it."""
    if share >= one.how.share:
        return one.rows
    random = np.random.default_rng([one.how.seed, *one.marks[:1].tolist()]).random(one.rows.num_rows)
    return one.rows.filter(pa.array(random < share / one.how.share))


def _joined(draws: Sequence[_Draw]) -> _Marks:
    return np.concatenate([np.zeros(0, np.uint64), *(one.marks for one in draws)])


def _marks(blocks: Blocks) -> _Marks:
    """A number for each file, by its name and its rows: one that lost rows to a delete is another one."""
    pairs = zip(blocks.names, blocks.rows.tolist(), strict=True)
    digests = b"".join(hashlib.blake2b(f"{name}\n{rows}".encode(), digest_size=8).digest() for name, rows in pairs)
    return np.frombuffer(digests, np.uint64)


def _written(one: _Draw) -> bytes:
    out = io.BytesIO()
    meta = {"oreo": json.dumps(asdict(one.how)), "marks": one.marks.tobytes().hex()}
    pq.write_table(one.rows.replace_schema_metadata(meta), out, compression="zstd")
    return out.getvalue()


def _read(content: bytes) -> _Draw | None:
    """None for what is damaged, or was written by another release."""
    try:
        table = pq.read_table(io.BytesIO(content))
        meta = table.schema.metadata or {}
        how = _How(**parsed(meta[b"oreo"]))
        marks = np.frombuffer(bytes.fromhex(meta[b"marks"].decode()), np.uint64)
    except (pa.ArrowException, KeyError, ValueError, TypeError, OSError):
        return None
    return _Draw(table.replace_schema_metadata(None), marks, how) if how.version == FORMAT_VERSION else None
