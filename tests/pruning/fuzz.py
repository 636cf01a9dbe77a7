"""Random queries on a maintained table, with pruning and without, while DML runs in between: the answers must agree.

    uv run python tests/pruning/fuzz.py --queries 2000

runs as many on each format; the suite runs a share of them. The same seed asks the same queries. What a query must
answer is asked of a copy of the version's rows in memory, which no skipping of anybody's touches; where the answers
differ, the table is asked again with pruning off: what the engine alone answers, pruning must answer too. (Iceberg
leaves out files for `f > 2` by bounds that do not count NaN, which to Spark is larger; `engine` counts such queries.)
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from maintained import BID, Maintained
from questions import COLUMNS, NAMES, SELECT, Questions

from oreo_lakehouse.predicates.tree import CompareColumns, IsNull, Op

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROPERTIES = {
    "delta": "'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true'",
    "iceberg": "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read'",
}
"""Rows are deleted from files that stay, so that their facts go on being used; MERGE rewrites Iceberg's files."""
MERGE = (
    "when matched then update set t.n = v.n, t.d = date'2031-01-01' "
    "when not matched then insert (id, n) values (v.id, v.n)"
)
VIEW = "select id i, n + 1 m, s, d from {} where x < 20"
LAYOUTS = [
    "cast(id % 8 as int)",  # x < y holds in one block only
    *(
        f"coalesce(cast(pmod({value}, 8) as int), 0)"
        for value in (
            *("coalesce(n, 3)", "hash(s)", "hash(u)", "datediff(d, date'1999-12-20')", "minute(t)", "hash(s, b)"),
            *("hash(e)", "coalesce(x, 1) + coalesce(y, 2)", "hash(f)"),
        )
    ),
    "coalesce(cast(n / 7 as int), 7)",
]
"""Most scatter neighbouring values over blocks, so that bounds help little and sets much."""
QUICK = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.files.openCostInBytes": "0",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Tables are small: compiling code for a query would take most of its time."""
JAVA = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
QUERIES = [*map(IsNull, NAMES), CompareColumns("x", Op.LT, "y")]


class Fuzz:
    """One table, one sequence of queries and changes."""

    def __init__(self, table: Maintained, seed: int, rows: int = 1200) -> None:
        self.table, self.random, self.rows = table, random.Random(seed), rows
        self.questions = Questions(self.random)
        self.session = table.spark.newSession()
        for name, value in QUICK.items():
            self.session.conf.set(name, value)
        self.asked, self.engine, self.strange = 0, 0, False
        table.create(COLUMNS, f"tblproperties({PROPERTIES[table.format]})")
        table.insert(", ".join(NAMES), SELECT.format(start=0, end=rows))
        self.lay_out()
        self.session.sql(f"create or replace temp view fuzzed as {VIEW.format(table.name)}")
        self.versions: list[int] = []
        self.note()

    def lay_out(self) -> None:
        self.table.lay_out(self.random.choice(LAYOUTS), 8, queries=QUERIES)
        self.session.catalog.refreshTable(self.table.name)  # Iceberg's catalogs cache by session

    def note(self) -> None:
        """Copy the table's rows into memory, where nobody skips anything."""
        version = self.table.dossier().table.version()
        self.session.conf.set("spark.oreo.pruning", "false")
        copy = self.session.table(self.table.name).coalesce(1).localCheckpoint()
        copy.createOrReplaceTempView(f"copy_{version}")
        self.session.sql(f"create or replace temp view fuzzed_copy as {VIEW.format(f'copy_{version}')}")
        self.versions = [*self.versions, version][-6:]

    def in_memory(self, text: str) -> str:
        """The same question to the copies."""
        for version in self.versions:
            text = text.replace(f"{self.table.name} version as of {version})", f"copy_{version})")
        return text.replace(self.table.name, f"copy_{self.versions[-1]}").replace("from fuzzed ", "from fuzzed_copy ")

    def run(self, batches: int, size: int, changes: int = 1) -> None:
        """`batches` statements of `size` queries each, every time after so many changes."""
        for _ in range(batches):
            for _ in range(changes):
                self.change()
            zone = self.random.choice(["UTC", "Europe/Berlin", "America/Los_Angeles"])
            self.session.conf.set("spark.sql.adaptive.enabled", str(self.random.random() < 0.1).lower())
            self.compare([self.query() for _ in range(size)], zone)

    def query(self) -> str:
        """A random query, of an older version now and then."""
        name = self.table.name
        if self.random.random() < 0.15:
            name = f"(select * from {name} version as of {self.random.choice(self.versions)})"
        return self.questions.query(name)

    def compare(self, queries: list[str], zone: str) -> None:
        text = " union all ".join(f"select {at} q, * from ({query})" for at, query in enumerate(queries))
        self.session.conf.set("spark.sql.session.timeZone", zone)
        self.asked += len(queries)
        got = self.answer(text)
        if self.answer(self.in_memory(text)) == got:
            return
        plain = self.answer(text, "false")
        if plain == got:
            for query in queries:
                self.blame(query)
            return
        for query in queries:
            alone, pruned = self.answer(query, "false"), self.answer(query)
            assert alone == pruned, f"{query}\n zone {zone}\n without pruning {alone}\n with            {pruned}"
        only = f"without pruning only {sorted({*plain} - {*got})[:9]}, with it only {sorted({*got} - {*plain})[:9]}"
        raise AssertionError(f"the statement as a whole differs ({only}): {text}")

    def blame(self, query: str) -> None:
        """Count and show a query that the engine itself answers unlike the copy, and whether its skipping is why."""
        memory, engine = self.answer(self.in_memory(query), "false"), self.answer(query, "false")
        if memory == engine:
            return
        self.engine += 1
        self.session.conf.set("spark.databricks.delta.stats.skipping", "false")
        scanned = self.answer(query, "false")
        self.session.conf.set("spark.databricks.delta.stats.skipping", "true")
        why = "as scanned whole" if scanned == engine else "by skipping files"
        print(f"engine, {why}: {query}\n in memory {memory[:5]}\n engine    {engine[:5]}", flush=True)

    def answer(self, text: str, pruning: str = "true") -> list[str]:
        self.session.conf.set("spark.oreo.pruning", pruning)
        return sorted(map(str, self.session.sql(text).collect()))

    def change(self) -> None:
        """One change of the table; the rows change, the answers with and without pruning must not differ."""
        r, name = self.random, self.table.name
        some = r.randrange(self.rows)
        columns = ", ".join(NAMES)
        moved = columns.replace(" n,", " n + 7,")
        statements = [
            f"insert into {name} ({columns}) {SELECT.format(start=5000 + some, end=5040 + some)}",
            f"insert into {name} ({columns}, {BID}) select {moved}, {BID} from {name} where id % 40 = {some % 40}",
            f"update {name} set n = n + 1, s = 'zebra', y = x where id in ({some}, {some + 8}, {some + 16})",
            f"delete from {name} where id in ({some}, {some + 24})",
            f"merge into {name} t using (select {some} id, 3 n) v on t.id = v.id {MERGE}",
        ]
        chosen = len(statements) + 1 if self.strange else r.randrange(len(statements) + 3)
        self.strange = chosen == len(statements)
        if chosen < len(statements):
            self.session.sql(statements[chosen])
        elif not self.strange:  # after strangers, whose files have no facts, a layout of ours
            self.lay_out()
        elif self.table.format == "delta":
            self.session.sql(f"optimize {name}")
        else:
            self.session.sql(f"call iceberg.system.rewrite_data_files(table => '{name.removeprefix('iceberg.')}')")
        self.note()


def main() -> None:
    """The long run."""
    import argparse
    import tempfile
    import time
    from pathlib import Path

    from oreo_lakehouse.config import load_config
    from oreo_lakehouse.pruning.attach import attach, control
    from oreo_lakehouse.session import spark_session

    parser = argparse.ArgumentParser()
    parser.add_argument("--queries", type=int, default=2000, help="on each format")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--size", type=int, default=10, help="queries in one statement")
    parser.add_argument("--formats", nargs="*", default=["delta", "iceberg"])
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    flags: dict[str, Any] = {
        "spark.warehouse": str(folder),
        "spark.driver_memory": "3g",
        "spark.conf": {
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.shuffle.partitions": "1",
            "spark.databricks.delta.snapshotPartitions": "1",
            **JAVA,
        },
    }
    spark: SparkSession = spark_session(load_config(flags=flags, environ={}))
    attach(spark, load_config(flags={"store": str(folder / "store")}, environ={}), capture=False)
    for name in given.formats:
        schema = "fuzz" if name == "delta" else "iceberg.fuzz"
        spark.sql(f"create {'database' if name == 'delta' else 'namespace'} {schema}")
        fuzz = Fuzz(Maintained(spark, name, schema, folder), given.seed)
        started, before = time.monotonic(), control(spark).scans()
        while fuzz.asked < given.queries:
            fuzz.run(1, given.size, changes=1 if fuzz.asked % 20 < given.size else 0)
            print(f"{fuzz.asked} asked, {control(spark).scans() - before} pruned", end="\r", flush=True)
        scans = control(spark).scans() - before
        assert scans > fuzz.asked / 10, f"only {scans} scans were pruned, so that nothing was tested"
        print(
            f"{name}: {fuzz.asked} queries agree, {scans} scans were pruned, {fuzz.engine} were answered unlike in "
            f"memory by the engine itself, "
            f"{time.monotonic() - started:.0f} s; warnings: {control(spark).warnings() or 'none'}",
            flush=True,
        )
    spark.stop()


if __name__ == "__main__":
    main()
