"""A maintained table whose queries are asked with pruning and without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oreo_lakehouse.config import Config, load_config
from oreo_lakehouse.predicates.tree import CompareColumns, IsNull, Op
from oreo_lakehouse.pruning.attach import control

if TYPE_CHECKING:
    from maintained import Maintained
    from pyspark.sql import DataFrame

COLUMNS = "id long, v int, few int, s string, x int, y int"
SELECT = (
    "select id, cast(id % 10 as int), cast(id % 40 as int), concat('s', id % 40), cast(id % 9 as int), "
    "cast(id % 9 + if(id % 8 = 3, 1, -1) as int) from range(800)"
)
ASKED = [*(IsNull(name) for name in ("id", "v", "few", "s")), CompareColumns("x", Op.LT, "y")]


class Watched:
    """A maintained table, asked with pruning and without, in one session: Iceberg's catalogs cache by session."""

    def __init__(self, table: Maintained) -> None:
        self.table, self.name = table, table.name
        self.session = table.spark.newSession()

    @property
    def config(self) -> Config:
        return load_config(flags={"store": str(self.table.folder / "store")}, environ={})

    def ask(self, query: str, pruning: bool = True) -> DataFrame:
        """The query, planned."""
        self.session.conf.set("spark.oreo.pruning", str(pruning).lower())
        found = self.session.sql(query)
        found._jdf.queryExecution().executedPlan()
        return found

    def make(self, clause: str = "", where: str = "true") -> None:
        self.table.create(COLUMNS, clause)
        self.table.insert("id, v, few, s, x, y", f"{SELECT} where {where}")
        self.table.lay_out("cast(id % 8 as int)", 8, queries=ASKED)

    def same(self, where: str, select: str = "count(*), sum(id), max(s)", source: str = "") -> int:
        """How many scans were pruned for a query that gives the same with and without."""
        return self.same_query(f"select {select} from {source or self.name} where {where}")

    def same_query(self, query: str) -> int:
        before = control(self.session).scans()
        pruned = rows(self.ask(query))
        count = control(self.session).scans() - before
        assert pruned == rows(self.ask(query, pruning=False)), query
        return count

    def do(self, statement: str) -> None:
        self.session.catalog.refreshTable(self.name)  # layouts come from another session
        self.session.sql(statement.replace("{}", self.name))


def rows(found: DataFrame) -> list[str]:
    return sorted(map(str, found.collect()))
