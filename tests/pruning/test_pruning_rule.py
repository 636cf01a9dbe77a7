"""The rule skips what facts rule out and never changes an answer, whatever happens to the table meanwhile."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from maintained import BID
from watching import ASKED, Watched, rows

from oreo_lakehouse.errors import HistoryError, TableError
from oreo_lakehouse.predicates.tree import CompareColumns, Op
from oreo_lakehouse.pruning.attach import control, detach
from oreo_lakehouse.pruning.bidfilter import bid_filter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_facts_skip_what_bounds_do_not(watched: Watched) -> None:
    watched.make()
    assert watched.same("few = 3") == 1
    assert watched.same("few in (3, 11)") == 1
    assert watched.same("few in (1, 4, 9, 12, 17, 20, 25, 28, 33, 36, 41, 44)") == 1  # more than ten: Spark's InSet
    assert watched.same("x < y") == 1
    assert watched.same("y > x and not (few <> 3 or s = 'x')") == 1
    assert watched.same("s like '%7'") == 1
    assert watched.same("s like 's17%'") == 1
    assert watched.same("few = 3 or s = 's4'") == 1
    assert watched.same("few <=> 3") == 1
    assert watched.same("v is null") == 0  # engines skip by NULL counts themselves
    assert watched.same("id < 100") == 0  # every file has such rows
    assert watched.same("few <> 3") == 0  # little to gain
    assert watched.same("few + id = 3") == watched.same("rand() < 0.5 and few < 0", "count(*)") == 0
    # Two scans of one table, pruned differently, in one plan; and scans that share nothing but the table.
    assert (
        watched.same_query(
            f"select count(*), sum(id) from {watched.name} where few = 3 and id + v > 3 union all "
            f"select count(*), sum(id) from {watched.name} where few = 4 and id + v > 3"
        )
        == 2
    )
    assert (
        watched.same_query(
            f"select a.id, b.s from {watched.name} a join {watched.name} b on a.id = b.id + 1 "
            f"where a.few = 4 and b.few = 3 and a.v in (select v from {watched.name} where few = 12)"
        )
        >= 2
    )
    for session in (watched.table.spark, watched.table.spark.newSession()):
        text = session.sql(f"explain select * from {watched.name} where few in (3, 11)").collect()[0][0]
        assert "oreo skips 7 of 8 files, 87.5% of the rows" in text
    watched.session.conf.set("spark.oreo.pruning", "false")
    plain = watched.session.sql(f"explain select * from {watched.name} where few in (3, 11)").collect()[0][0]
    assert "oreo skips" not in plain
    detach(watched.session)
    assert watched.same("few = 3") == 0


def test_answers_stay_the_same_whatever_happens_to_the_table(watched: Watched) -> None:
    delta = watched.table.format == "delta"
    watched.make("tblproperties('delta.columnMapping.mode' = 'name')" if delta else "")
    first = watched.table.dossier().table.version()
    # A second writer in the middle of a query: planned before, run after.
    query = f"select count(*), sum(id), max(s) from {watched.name} where few in (3, 11)"
    planned, plain = watched.ask(query), watched.ask(query, pruning=False)
    watched.do("update {} set few = 3, s = 's3', y = x where id = 4")
    assert rows(planned) == rows(plain)
    assert watched.same("few = 3") == 1
    assert watched.same("few = 3", source=f"{watched.name} version as of {first}") == 1
    columns = f"v, 11, 's11', x, y, {BID}"
    watched.do(f"insert into {{}} (id, v, few, s, x, y, {BID}) select id + 1000, {columns} from {{}} where few = 5")
    watched.do("merge into {} t using (select 5L id) u on t.id = u.id when matched then update set few = 11, s = 's11'")
    watched.do("delete from {} where id = 11")
    assert watched.same("few = 11") == 1
    assert watched.same("s = 's11' and x < y") == 1
    # Another layout, and the table as it was under the first one.
    watched.table.lay_out("cast(few / 10 as int)", 4, queries=ASKED)
    assert watched.same("s = 's15'") == 1
    assert watched.same("few = 3", source=f"{watched.name} version as of {first}") == 1
    # Strangers rewrite the files: nothing is known of theirs.
    if delta:
        watched.do("optimize {}")
    else:
        name = watched.name.removeprefix("iceberg.")
        watched.do(f"call iceberg.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))")
    assert watched.same("few = 3") == 0
    # Back to files of ours.
    if delta:
        watched.do(f"restore table {{}} to version as of {first}")
    else:
        watched.do(f"call iceberg.system.rollback_to_snapshot('{watched.name.removeprefix('iceberg.')}', {first})")
    assert watched.same("few = 3") == 1
    # A name that moves from one column to another.
    watched.do("alter table {} rename column few to many")
    watched.do("alter table {} add column few int")
    watched.do("insert into {} (id, many, few) values (5000, 1, 3)")
    assert watched.same("many = 3") == 1
    assert watched.same("few = 3") == 0
    assert watched.same("few is null and id < 9") == 0
    watched.do("alter table {} drop column s")
    watched.do("alter table {} add column s string")
    assert watched.same("s is null or s = 's3'") == 0
    watched.do("delete from {} where many = 3")
    assert watched.same("many in (3, 11)") == 1


def test_what_goes_wrong_costs_the_pruning_and_never_the_query(watched: Watched, caplog: Any) -> None:
    watched.make()
    rule = control(watched.session)
    rule.breakWith("broken on purpose")
    try:
        assert watched.same("few = 3") == watched.same("few = 11") == 0
    finally:
        rule.breakWith(None)
    assert rule.warnings().count("broken on purpose") == 1
    assert watched.same("few = 3") == 1
    (document,) = (watched.table.folder / "store").glob("*/files/*.json")
    good = document.read_bytes()
    header, _, rest = good.partition(b"\n")
    newer = json.dumps({**json.loads(header), "version": 99}).encode() + b"\n" + rest
    for content, said in ((good[:-9], "checksum"), (newer, "upgrade"), (b"", "not a document")):
        document.write_bytes(content)
        rule.refresh()
        assert watched.same("few = 3") == 0
        assert said in rule.warnings()
        assert str(document.name) in rule.warnings()
    document.unlink()
    rule.refresh()
    assert watched.same("few = 3") == 0
    document.write_bytes(good)
    rule.refresh()
    assert watched.same("few = 3") == 1


def test_an_engine_that_we_do_not_know_is_left_alone(spark: SparkSession, monkeypatch: Any, caplog: Any) -> None:
    from oreo_lakehouse.pruning import attach as module
    from oreo_lakehouse.pruning import units

    monkeypatch.setattr(units, "FORMATS", {"Delta": ("DeltaFormat", "3.9"), "Iceberg": ("IcebergFormat", "1.11")})
    monkeypatch.setattr(module, "FORMATS", units.FORMATS)
    compiled = module._compiled(spark)
    assert compiled is not None
    assert len(compiled.formats) == 1
    assert "Delta is 4." in caplog.text
    assert "upgrade" in caplog.text


def test_a_bid_filter_is_given_only_where_no_bid_can_be_stale(watched: Watched) -> None:
    watched.make()

    def of(predicate: Any) -> Any:
        return bid_filter(watched.name, predicate, watched.table.spark, watched.config)

    delta = watched.table.format == "delta"
    far = of("few in (3, 12)")
    assert far == (f"({BID} BETWEEN 3 AND 4 OR {BID} IS NULL)" if delta else f"({BID} IN (3, 4) OR {BID} IS NULL)")
    assert far.version == watched.table.dossier().table.version()
    apart = of("few = 1 or few = 6")
    assert apart == (f"({BID} = 1 OR {BID} = 6 OR {BID} IS NULL)" if delta else f"({BID} IN (1, 6) OR {BID} IS NULL)")
    only = f"{BID} = 3" if delta else f"{BID} IN (3)"
    assert of(CompareColumns("x", Op.LT, "y")) == f"({only} OR {BID} IS NULL)"
    assert of("upper(s) = 'S3'") == of("id >= 0") == "TRUE"
    assert of("few = 99") == f"({BID} IS NULL)"
    for broken in (
        "few =",
        "few = 1 group by x",
        "few = 1) union select 1 from t where (few = 2",
        "few = 1; drop table t",
    ):
        with pytest.raises(HistoryError, match="condition"):
            of(broken)
    watched.do("insert into {} (id, few) values (9000, 3)")  # a NULL BID is always kept
    for where in ("few in (3, 12)", "few = 1 or few = 6", "few = 99", "x < y"):
        watched.same(f"({where}) and {of(where)}")
        query = "select count(*), sum(id) from {} where {}"
        assert rows(watched.ask(query.format(watched.name, where))) == rows(
            watched.ask(query.format(watched.name, f"({where}) and {of(where)}"), pruning=False)
        )
    watched.do("update {} set few = 12 where id = 6")
    with pytest.raises(TableError, match="not written by a layout of ours"):
        of("few = 12")
