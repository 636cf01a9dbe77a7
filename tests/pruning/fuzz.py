"""Random queries on a maintained table, with pruning and without, while DML runs in between: the answers must agree.

    uv run python tests/pruning/fuzz.py --queries 2000

runs as many on each format; the suite runs a share of them. The same seed asks the same queries.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from maintained import BID, Maintained

from oreo_lakehouse.predicates.tree import CompareColumns, IsNull, Op

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = (
    "id long, n int, f double, s string, u string, d date, t timestamp, z timestamp_ntz, e decimal(10,2), b boolean, "
    "x int, y int, o string"
)
NAMES = [part.split()[0] for part in COLUMNS.replace("decimal(10,2)", "decimal").split(", ")]
SELECT = """select id, if(id % 13 = 0, null, cast(id % 50 as int)),
 case id % 17 when 0 then double('NaN') when 1 then -0.0d when 2 then null when 3 then double('-Infinity')
   else id % 9 / 4 end,
 if(id % 11 = 0, null, element_at(array('', 'a', 'ab', 'abc', 'b', 'ärger', 'zebra', 'A', 'x%y', 'x_y'),
   cast(id % 10 + 1 as int))),
 concat('https://www.example.com/some/long/prefix/', lpad(cast(id % 977 as string), 5, '0')),
 date_add(date'1999-12-20', cast(id % 60 as int)),
 timestamp'2024-03-31 00:30:00' + make_dt_interval(0, 0, cast(id % 300 as int)),
 cast(timestamp'2024-03-31 00:30:00' + make_dt_interval(0, 0, cast(id % 300 as int)) as timestamp_ntz),
 cast(id % 400 as decimal(10,2)) / 8, if(id % 7 = 0, null, id % 8 < 3), cast(id % 23 as int),
 if(id % 19 = 0, null, cast(id % 23 + if(id % 8 = 5, 1, -1) as int)), cast(null as string) from range({start}, {end})"""
MERGE = (
    "when matched then update set t.n = v.n, t.d = date'2031-01-01' "
    "when not matched then insert (id, n) values (v.id, v.n)"
)
LAYOUTS = ["cast(id % 8 as int)", "cast(pmod(hash(s, d), 8) as int)", "coalesce(cast(n / 7 as int), 7)"]
QUERIES = [*map(IsNull, NAMES), CompareColumns("x", Op.LT, "y")]


class Fuzz:
    """One table, one sequence of queries and changes."""

    def __init__(self, table: Maintained, seed: int, rows: int = 1200) -> None:
        self.table, self.random, self.rows = table, random.Random(seed), rows
        self.session = table.spark.newSession()
        self.asked = 0
        table.create(COLUMNS, "tblproperties('delta.columnMapping.mode' = 'name')" if table.format == "delta" else "")
        table.insert(", ".join(NAMES), SELECT.format(start=0, end=rows))
        self.lay_out()
        self.session.sql(
            f"create or replace temp view fuzzed as select id i, n + 1 m, s, d from {table.name} where x < 20"
        )
        self.versions = [self.version()]

    def lay_out(self) -> None:
        self.table.lay_out(self.random.choice(LAYOUTS), 8, queries=QUERIES)

    def version(self) -> int:
        return self.table.dossier().table.version()

    def run(self, batches: int, size: int) -> None:
        """`batches` statements of `size` queries each, every time after a change."""
        for _ in range(batches):
            self.change()
            zone = self.random.choice(["UTC", "Europe/Berlin", "America/Los_Angeles"])
            self.compare([self.query() for _ in range(size)], zone)

    def compare(self, queries: list[str], zone: str) -> None:
        text = " union all ".join(f"select {at} q, * from ({query})" for at, query in enumerate(queries))
        self.session.conf.set("spark.sql.session.timeZone", zone)
        answers = [self.answer(text, pruning) for pruning in ("false", "true")]
        self.asked += len(queries)
        if answers[0] != answers[1]:
            for query in queries:
                want, got = (self.answer(query, pruning) for pruning in ("false", "true"))
                assert want == got, f"{query}\n zone {zone}\n without {want}\n with    {got}"
            raise AssertionError(f"the statement as a whole differs: {text}")

    def answer(self, text: str, pruning: str) -> list[str]:
        self.session.conf.set("spark.oreo.pruning", pruning)
        return sorted(map(str, self.session.sql(text).collect()))

    def query(self) -> str:
        r, name = self.random, self.table.name
        if r.random() < 0.15 and len(self.versions) > 1:
            name = f"(select * from {name} version as of {r.choice(self.versions)})"
        what = "count(*) c, sum(id) a, max(u) b"
        match r.randrange(8):
            case 0:
                return (
                    f"select count(*) c, sum(l.id) a, max(r.u) b from {name} l join {name} r on l.id = r.id "
                    f"where {self.condition('l.')} and {self.condition('r.')}"
                )
            case 1:
                inner = f"select n from {name} where {self.condition()}"
                return f"select {what} from {name} where {self.condition()} and n in ({inner})"
            case 2:
                inner = f"select min(n) from {name} where {self.condition()}"
                return f"select {what} from {name} where n >= ({inner}) and {self.condition()}"
            case 3:
                either = f"s {r.choice(['=', '<', '>'])} 'abc' or m = {r.randint(0, 50)}"
                return f"select count(*) c, sum(i) a, max(s) b from fuzzed where {either}"
            case 4:
                return (
                    f"select count(*) c, sum(l.id) a, max(r.u) b from {name} l left join "
                    f"(select * from {name} where {self.condition()}) r on l.id = r.id where {self.condition('l.')}"
                )
            case _:
                return f"select {what} from {name} where {self.condition()}"

    def condition(self, prefix: str = "", depth: int = 0) -> str:
        r = self.random
        if depth < 3 and r.random() < 0.55:
            left, right = (self.condition(prefix, depth + 1) for _ in range(2))
            return f"({left} {r.choice(['and', 'and', 'or'])} {right})"
        if depth < 4 and r.random() < 0.15:
            return f"not ({self.condition(prefix, depth + 1)})"
        return self.leaf(prefix)

    def leaf(self, p: str) -> str:
        r = self.random
        compare = r.choice(["=", "=", "<", "<=", ">", ">=", "<>", "<=>"])
        text = r.choice(["''", "'a'", "'ab'", "'ärger'", "'zzz'", "'A'", "'b'", "null"])
        pattern = r.choice(["'a%'", "'%a'", "'%b%'", "'a_c'", "'x\\\\%y'", "'%'", "''", "'ärg%'", "'A%'"])
        url = f"'https://www.example.com/some/long/prefix/{r.randrange(1100):05d}'"
        day = f"date'{r.choice([1999, 2000])}-{r.choice(['01', '12'])}-{r.randint(1, 31):02d}'"
        time = f"timestamp'2024-03-31 0{r.randint(0, 6)}:{r.randint(0, 59):02d}:00'"
        number = r.choice(["0", "1", "7", "49", "50", "-3", "2.5", "cast(null as int)", "20L"])
        real = r.choice(["0.0d", "-0.0d", "1.5d", "double('NaN')", "double('-Infinity')", "2", "0.25"])
        forms = [
            f"{p}n {compare} {number}",
            f"{p}n {r.choice(['in', 'not in'])} ({r.randrange(50)}, {r.randrange(60)}{r.choice(['', ', null'])})",
            f"{p}n in ({', '.join(str(r.randrange(0, 90, 3)) for _ in range(14))})",
            f"{p}n between {r.randrange(40)} and {r.randrange(60)}",
            f"{p}f {compare} {real}",
            f"{p}f in (0.25d, double('NaN'))",
            f"{p}s {compare} {text}",
            f"{p}s {r.choice(['like', 'not like'])} {pattern}",
            f"{p}s in ('a', 'zebra', 'nope')",
            f"upper({p}s) = 'AB'",
            f"coalesce({p}s, 'b') = 'b'",
            f"length({p}s) > 2",
            f"{p}u {compare} {url}",
            f"{p}u like 'https://www.example.com/some/long/prefix/0{r.randrange(10)}%'",
            f"{p}d {compare} {day}" if "02" not in day else f"{p}d {compare} date'2000-01-03'",
            f"month({p}d) = {r.choice([1, 2, 12])}",
            f"{p}d {compare} {time}",
            f"{p}t {compare} {time}",
            f"hour({p}t) = {r.randint(0, 5)}",
            f"{p}t {compare} {day}",
            f"{p}z {compare} timestamp_ntz'2024-03-31 0{r.randint(0, 6)}:10:00'",
            f"{p}e {compare} {r.choice(['0.125', '12.5', '49.88', '50', '3'])}",
            f"{p}b",
            f"{p}b {compare} {r.choice(['true', 'false', 'null'])}",
            f"{p}x {compare} {p}y",
            f"{p}n {compare} {p}x",
            f"{p}{r.choice(NAMES)} is {r.choice(['', 'not '])}null",
            f"{p}id {compare} {r.randrange(1500)}",
            f"{p}id % 3 = 1",
            f"{p}x + {p}y > 30",
            f"cast({p}n as string) like '1%'",
            r.choice(["true", "false", "null"]),
        ]
        return r.choice(forms)

    def change(self) -> None:
        """One change of the table; the rows change, the answers with and without pruning must not differ."""
        r, name = self.random, self.table.name
        some = r.randrange(self.rows)
        columns = ", ".join(NAMES)
        moved = columns.replace(" n,", " n + 7,")
        statements = [
            f"insert into {name} ({columns}) {SELECT.format(start=5000 + some, end=5040 + some)}",
            f"insert into {name} ({columns}, {BID}) select {moved}, {BID} from {name} where id % 40 = {some % 40}",
            f"update {name} set n = n + 1, s = 'zebra', y = x where id % 50 = {some % 50}",
            f"delete from {name} where id between {some} and {some + 9}",
            f"merge into {name} t using (select {some} id, 3 n) v on t.id = v.id {MERGE}",
        ]
        chosen = r.randrange(len(statements) + 2)
        if chosen < len(statements):
            self.session.sql(statements[chosen])
        elif chosen == len(statements):
            self.lay_out()
        elif self.table.format == "delta":
            self.session.sql(f"optimize {name}")
        else:
            self.session.sql(f"call iceberg.system.rewrite_data_files(table => '{name.removeprefix('iceberg.')}')")
        self.versions.append(self.version())
        self.versions = self.versions[-6:]


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
        "spark.conf": {"spark.sql.catalogImplementation": "in-memory", "spark.sql.shuffle.partitions": "2"},
    }
    spark: SparkSession = spark_session(load_config(flags=flags, environ={}))
    attach(spark, load_config(flags={"store": str(folder / "store")}, environ={}), capture=False)
    for name in given.formats:
        schema = "fuzz" if name == "delta" else "iceberg.fuzz"
        spark.sql(f"create {'database' if name == 'delta' else 'namespace'} {schema}")
        fuzz = Fuzz(Maintained(spark, name, schema, folder), given.seed)
        started, before = time.monotonic(), control(spark).scans()
        while fuzz.asked < given.queries:
            fuzz.run(1, given.size)
        print(
            f"{name}: {fuzz.asked} queries agree, {control(spark).scans() - before} scans were pruned, "
            f"{time.monotonic() - started:.0f} s; warnings: {control(spark).warnings() or 'none'}",
            flush=True,
        )
    spark.stop()


if __name__ == "__main__":
    main()
