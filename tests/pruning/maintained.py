"""A table that OReO maintains: created by SQL, laid out by plan, stage, verify, record, commit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from oreo_lakehouse.config import load_config
from oreo_lakehouse.layouts.layout import Bids, Layout
from oreo_lakehouse.maintenance.dossier import Dossier, open_dossier
from oreo_lakehouse.maintenance.progress import silent
from oreo_lakehouse.maintenance.rewrite import rewrite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from oreo_lakehouse.predicates.tree import Predicate
    from oreo_lakehouse.tables.filefacts import FileFacts

FORMATS = ("delta", "iceberg")
BID = "_oreo_bid"


class ByExpression(Layout):
    """Any SQL expression as a layout; Spark alone computes it."""

    kind = "expression"

    def __init__(self, expression: str, blocks: int) -> None:
        self.blocks, self.columns, self._expression = blocks, (), expression

    def assign(self, rows: pa.Table) -> Bids:
        raise NotImplementedError  # a table is laid out by Spark; nobody samples here

    def sql(self) -> str:
        return self._expression

    def describe(self) -> str:
        return self._expression

    def _content(self) -> dict[str, Any]:
        return {"expression": self._expression, "blocks": self.blocks}


@dataclass
class Maintained:
    """One table of one format, in a schema and a store of its own."""

    spark: SparkSession
    format: str
    schema: str
    folder: Path

    @property
    def name(self) -> str:
        return f"{self.schema}.t"

    def dossier(self) -> Dossier:
        flags = {"store": str(self.folder / "store")}
        return open_dossier(self.spark, self.name, load_config(flags=flags, environ={}))

    def create(self, columns: str, clause: str = "") -> None:
        self.spark.sql(f"create table {self.name} ({columns}) using {self.format} {clause}")

    def insert(self, names: str, select: str) -> None:
        self.spark.sql(f"insert into {self.name} ({names}) {select}")

    def lay_out(self, expression: str, blocks: int, bid_column: str = BID, queries: Sequence[Predicate] = ()) -> str:
        """A layout through the run's own steps; its run id."""
        dossier = self.dossier()
        plan = dossier.table.plan(ByExpression(expression, blocks), bid_column)
        done = rewrite(dossier, plan, dossier.table.blocks(), silent, queries)
        dossier.pending.remove(done.run_id)
        return done.run_id

    def facts(self) -> FileFacts:
        facts, notices = self.dossier().facts.load()
        assert facts is not None
        assert notices == []
        return facts
