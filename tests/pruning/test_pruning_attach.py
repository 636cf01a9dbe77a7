"""One call turns capture and pruning on, another both off; what was pruned is on record, and what is wrong is said."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fuzz import Fuzz
from maintained import Maintained
from watching import Watched

import oreo_lakehouse
from oreo_lakehouse.config import load_config
from oreo_lakehouse.history.capture import capture
from oreo_lakehouse.history.querybatch import QueryBatch
from oreo_lakehouse.maintenance.facts import decode, encode
from oreo_lakehouse.maintenance.pruned import PruningEffect, pruning_effect
from oreo_lakehouse.pruning.attach import control
from oreo_lakehouse.report.standing import health_rows

if TYPE_CHECKING:
    from oreo_lakehouse.config import Config

ASK = "few in (3, 11)"


def _recorded(watched: Watched, config: Config, *wheres: str, pruning: bool = True) -> QueryBatch:
    """The records of some queries, asked while `config` is attached."""
    running = capture(watched.session, config)
    before = len(watched.table.dossier().history.read_since({})[0])
    for where in wheres:
        watched.ask(f"select count(v) from {watched.name} where {where}", pruning).collect()
    running.flush()
    return watched.table.dossier().history.read_since({})[0][before:]


def test_one_call_turns_capture_and_pruning_on_and_one_call_off(table: Maintained) -> None:
    watched = Watched(table)
    watched.make()
    config = watched.config
    assert watched.session.sql(f"select count(*) from {watched.name} where {ASK}").collect()[0][0] == 40
    assert oreo_lakehouse.attach(table.spark, config) is table.spark
    try:
        first = capture(table.spark, config)
        assert oreo_lakehouse.attach(watched.session, config) is watched.session
        assert capture(watched.session, config) is first
        found = {record.files_pruned: record for record in _recorded(watched, config, ASK, "id >= 0")}
        assert set(found) == {0, 7}
        assert (found[7].files_read, found[7].rows_pruned) == (1, 700)
        assert found[0].files_read == 8
        optimizations = watched.session._jsparkSession.experimental().extraOptimizations()
        names = [optimizations.apply(at).getClass().getSimpleName() for at in range(optimizations.size())]
        assert names.count("PruneRule") == 1

        stands = oreo_lakehouse.status(table.spark, watched.name, config)
        assert stands.pruning == PruningEffect(2, 1, 700 / 1600, 700 / 1600)
        assert ("pruning", str(stands.pruning)) in health_rows(stands)
        assert stands.to_json()["pruning"]["predicted_rows"] == 700 / 1600
        effect = pruning_effect(watched.table.dossier().history.read_since({})[0], 800)
        assert effect == replace(stands.pruning, predicted=None)
        assert pruning_effect(QueryBatch.of([]), 800) is None

        (left_out,) = _recorded(watched, config, ASK, pruning=False)
        assert (left_out.files_pruned, left_out.files_read) == (None, 8)

        oreo_lakehouse.detach(table.spark)
        assert watched.same(ASK) == 0
        oreo_lakehouse.attach(table.spark, config, prune=False)
        (alone,) = _recorded(watched, config, ASK)
        assert (alone.files_pruned, alone.files_read) == (None, 8)
        oreo_lakehouse.detach(table.spark)
        oreo_lakehouse.attach(table.spark, config, capture=False)
        assert watched.same(ASK) == 1
    finally:
        oreo_lakehouse.detach(table.spark)
    oreo_lakehouse.detach(table.spark)  # twice does no harm


def test_facts_that_are_elsewhere_or_of_another_place_are_told(watched: Watched) -> None:
    watched.make()
    rule = control(watched.session)
    elsewhere = load_config(flags={"store": str(watched.table.folder / "another")}, environ={})
    oreo_lakehouse.attach(watched.session, elsewhere, capture=False)  # the call that comes last counts
    assert watched.same(ASK) == watched.same("few = 3") == 0
    assert rule.warnings().count(str(watched.table.folder / "another")) == 1
    assert "Check the setting `store`" in rule.warnings()
    oreo_lakehouse.attach(watched.session, watched.config, capture=False)
    assert watched.same(ASK) == 1
    # A table that was moved since: Delta's facts go by names below the table's folder, Iceberg's by whole names.
    (document,) = (watched.table.folder / "store").glob("*/files/*.json")
    if watched.table.format == "iceberg":
        facts = decode(document.read_bytes())
        document.write_bytes(encode(replace(facts, names=tuple(f"/old{name}" for name in facts.names))))
        rule.refresh()
        assert watched.same(ASK) == watched.same("few = 3") == 0
        assert rule.warnings().count(f"the table {watched.name} is at ") == 1
        assert "oreo-maintain" in rule.warnings()
    else:
        place = watched.table.dossier().table.identity.location.removeprefix("file:")
        watched.session.sql(f"drop table if exists {watched.name}_moved")
        copy = watched.table.folder / "moved"
        shutil.copytree(place, copy)
        assert watched.same(ASK, source=f"delta.`{copy}`") == 1


def test_partitions_deletion_vectors_and_joins(watched: Watched) -> None:
    delta = watched.table.format == "delta"
    properties = "'delta.enableDeletionVectors' = 'true'" if delta else "'write.delete.mode' = 'merge-on-read'"
    watched.make(f"partitioned by (v) tblproperties({properties})", "id % 10 in (3, 4)")
    watched.do("delete from {} where id % 3 = 0 and v = 3")
    assert watched.same("few = 3") == 0  # within its partition, a file has one value: bounds do it
    assert watched.same("few in (3, 33)") == (1 if delta else 0)  # a list is but a range to Delta
    dim = f"spark_catalog.{watched.table.schema.removeprefix('iceberg.')}.dim"
    watched.table.spark.sql(f"create table {dim} using parquet as select 3 w")
    assert watched.same("x < y", source=f"{watched.name} join {dim} on v = w") == 1
    watched.do("update {} set few = 12, y = x + 1 where id = 13")
    assert watched.same("x < y") == 1
    assert watched.same("x < y", "id, row_number() over (order by id) r") == 1


def test_what_a_row_compares_as_may_depend_on_who_reads_it(watched: Watched) -> None:
    """CHAR is padded, collations fold, time zones shift a day: such columns are judged by Spark, or not at all."""
    delta = watched.table.format == "delta"
    odd = ", c char(4), k string" if delta else ", c string, k string"
    watched.table.create(f"id long, t timestamp, p timestamp, f double{odd}", "partitioned by (p)" if delta else "")
    watched.table.insert(
        "id, t, p, f, c, k",
        "select id, timestamp'2024-03-30 20:00:00' + make_dt_interval(0, id % 8), timestamp'2024-03-31 00:30:00', "
        "case id % 8 when 1 then double('NaN') when 2 then -0.0d else id % 8 end, substr('abcdefgh', id % 8 + 1, 2), "
        "if(id % 8 = 3, 'Ab', 'zz') from range(160)",
    )
    watched.table.lay_out("cast(id % 8 as int)", 8)
    pruned = 0
    times = ("cast(t as date) = date'2024-03-31'", "hour(t) in (1, 22)", "p = timestamp'2024-03-31 00:30:00'")
    for zone in ("UTC", "America/Los_Angeles"):
        watched.session.conf.set("spark.sql.session.timeZone", zone)
        pruned += sum(watched.same(where, "count(*), sum(id)") for where in times)
    for where in (
        *("f = double('NaN')", "f > 6", "f = 0", "not (f < 5)", "f <=> double('NaN')", "c = 'ab'", "c like 'ab%'"),
        *("k collate utf8_lcase = 'aB'", "k collate utf8_lcase < 'b'", "substr(c, 2, 1) = 'b'", "c in ('ab', 'gh')"),
    ):
        pruned += watched.same(where, "count(*), sum(id)")
    assert pruned >= 4  # a function of the time, in two zones; the engine itself skips by most of the others


def test_random_queries_agree_while_the_table_changes(watched: Watched) -> None:
    """A share of `fuzz.py`, which says how to ask thousands."""
    before = control(watched.session).scans()
    fuzz = Fuzz(watched.table, seed=7, rows=400)
    fuzz.run(batches=5, size=8)
    assert control(watched.session).scans() - before >= 8
    assert "pruning failed" not in control(watched.session).warnings().replace("broken on purpose", "")


def test_bid_mode_is_chosen_for_a_table_and_said(watched: Watched) -> None:
    table = watched.table
    table.create("id long, x int, y int")
    table.insert(
        "id, x, y", "select id, cast(id % 97 as int), cast(id % 97 + if(id % 50 < 20, 1, -1) as int) from range(4000)"
    )
    log = table.folder / "log.jsonl"
    asked = f"select 1 from {table.name} where x < y and id > "
    log.write_text(
        "".join(
            json.dumps({"statement_text": f"{asked}{n}", "start_time": f"2026-01-01T00:00:{n:02d}Z"}) + "\n"
            for n in range(60)
        )
    )
    flags: dict[str, Any] = {
        "store": str(table.folder / "store"),
        "layout.blocks": 4,
        "decide.window": 20,
        "decide.alpha": 2,
    }
    native = load_config(flags=flags, environ={})
    bid = load_config(flags={**flags, "decide.bid_tables": [table.name]}, environ={})
    oreo_lakehouse.import_queries(table.spark, table.name, [str(log)], native)
    plain = oreo_lakehouse.maintain(table.spark, table.name, native, dry_run=True)
    assert (plain.decision, plain.notices) == ("stay", ())
    done = oreo_lakehouse.maintain(table.spark, table.name, bid)
    assert done.decision == "move"
    assert "60 of 60 new queries are not known to have run with pruning" in done.notices[0]
    assert oreo_lakehouse.status(table.spark, table.name, bid).mode == "bid"
    assert watched.same("x < y", "count(*), sum(id)") == 1
    back = oreo_lakehouse.maintain(table.spark, table.name, native, dry_run=True)
    assert "was 'bid' at its last decision" in back.notices[0]
