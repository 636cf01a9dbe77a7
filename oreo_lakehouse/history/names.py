"""Whether a table's name in a statement means the table whose history is kept."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp
from sqlglot.errors import SqlglotError

from oreo_lakehouse.errors import HistoryError
from oreo_lakehouse.history.paths import looks_like_path


class TableNames:
    """The names that one table goes by: `t`, `db.t`, `catalog.db.t`, a path or ``delta.`path` ``.

    A name in a statement matches if it agrees with one of them as far as both go; `other.t` does not match a table
    known as `db.t` and `t`.

    >>> names = TableNames(["lake.sales.orders", "/data/orders"])
    >>> [names.match(exp.to_table(n, dialect="spark")) for n in ("Orders", "hr.orders", "delta.`/data/orders/`")]
    [True, False, True]
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._paths: set[str] = set()
        self._names: set[tuple[str, ...]] = set()
        for name in names:
            if looks_like_path(name):
                self._paths.add(_path(name))
                continue
            try:
                parts = _parts(exp.to_table(name, dialect="spark"))
            except (SqlglotError, RecursionError) as error:
                raise HistoryError(f"{name!r} is not the name of a table") from error
            if "/" in parts[-1]:
                self._paths.add(_path(parts[-1]))
            else:
                self._names.add(parts)
        self._longest = max(map(len, self._names), default=0)

    def match(self, table: exp.Table, namespace: tuple[str, ...] = ()) -> bool:
        """Whether `table` means this table, unqualified names being relative to `namespace` (catalog, schema)."""
        parts = _parts(table)
        if not parts:
            return False
        if "/" in parts[-1]:
            return _path(parts[-1]) in self._paths
        missing = 3 - len(parts)
        if missing > 0 and namespace:
            parts = (*(part.lower() for part in namespace[-missing:]), *parts)
        candidates = {name for name in self._names if len(name) >= len(parts)}
        if not candidates:  # the statement says more than we know: compare with the longest names
            candidates = {name for name in self._names if len(name) == self._longest}
        return any(_agree(name, parts) for name in candidates)

    def match_text(self, name: str) -> bool:
        """Whether a name or path, as plans and people write it, means this table."""
        if looks_like_path(name):
            return _path(name) in self._paths
        try:
            return self.match(exp.to_table(name, dialect="spark"))
        except (SqlglotError, RecursionError):
            return False


def _agree(name: tuple[str, ...], other: tuple[str, ...]) -> bool:
    both = min(len(name), len(other))
    return name[-both:] == other[-both:]


def _parts(table: exp.Table) -> tuple[str, ...]:
    return tuple(part.name.lower() if "/" not in part.name else part.name for part in table.parts if part.name)


def _path(text: str) -> str:
    path = text.removeprefix("file:")
    return "/" + path.strip("/") if path.startswith("/") else path.rstrip("/")
