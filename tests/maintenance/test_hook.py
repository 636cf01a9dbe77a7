"""The hook after OPTIMIZE on real tables: what it sees, what it does then, and that it disturbs nobody."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from oreo_lakehouse import Config, Hook, after_optimize, import_queries, load_config, maintain
from oreo_lakehouse.errors import SetupError
from oreo_lakehouse.jvm import java_session, jvm
from oreo_lakehouse.tables.certificate import certify

pytestmark = pytest.mark.spark

LONG = 300.0
"""Seconds that no run here takes; a hook that never gets done fails the test instead of holding it up."""


@pytest.fixture
def config(place: Any) -> Config:
    file = place.folder / "oreo.toml"
    file.write_text(f'store = "{place.folder}/store"\n[layout]\nblocks = 8\n[decide]\nalpha = 4\nwindow = 20\n')
    return load_config(str(file), environ={})


@pytest.fixture
def hooked(spark: Any, config: Config) -> Iterator[Callable[..., Hook]]:
    made: list[Hook] = []

    def turn_on(**arguments: Any) -> Hook:
        made.append(after_optimize(spark, config, **arguments))
        return made[-1]

    yield turn_on
    for hook in made:
        assert hook.close(LONG)


@pytest.mark.parametrize("fmt", ["delta", "iceberg"])
def test_a_rewrite_is_followed_by_its_repair(spark: Any, place: Any, config: Config, hooked: Any, fmt: str) -> None:
    name = f"{place.delta if fmt == 'delta' else place.iceberg}.orders"
    rows = "id", "cast(pmod(xxhash64(id), 1000) AS int) AS k"
    spark.range(0, 8_000, 1, 8).selectExpr(*rows).writeTo(name).using(fmt).create()
    log, start = place.folder / "log.jsonl", datetime(2026, 1, 1, tzinfo=UTC)
    asked = ((i, i * 37 % 900) for i in range(60))
    entries = (
        {
            "statement_text": f"SELECT count(*) FROM {name} WHERE k BETWEEN {low} AND {low + 50}",
            "start_time": (start + timedelta(minutes=i)).isoformat(),
        }
        for i, low in asked
    )
    log.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    import_queries(spark, name, [str(log)], config)
    moved = maintain(spark, name, config)
    assert moved.decision == "move"
    before = certify(spark.table(name))

    hook = hooked(tables=[f"{place.delta}.*", f"{place.iceberg}.*"])
    if fmt == "delta":
        spark.sql(f"OPTIMIZE {name} ZORDER BY (id)").collect()
    else:
        plain = name.removeprefix("iceberg.")
        # Groups of one file each, committed in four steps: the repair must wait for the last one.
        options = (
            "map('rewrite-all', 'true', 'partial-progress.enabled', 'true', 'partial-progress.max-commits', '4', "
            "'max-file-group-size-bytes', '1')"
        )
        (done,) = spark.sql(
            f"CALL iceberg.system.rewrite_data_files(table => '{plain}', options => {options})"
        ).collect()
        assert (done.rewritten_data_files_count, done.failed_data_files_count) == (moved.files_after, 0)
    assert hook.wait(LONG)
    (run,) = hook.outcomes
    assert run.error is None
    assert run.table == ("spark_catalog." if fmt == "delta" else "") + name
    assert (run.outcome.decision, run.outcome.layout_id) == ("fold", moved.layout_id)
    assert run.outcome.files_after == moved.files_after
    assert any("replaced" in notice for notice in run.outcome.notices)
    assert certify(spark.table(name)) == before
    assert hook.wait(LONG)
    assert len(hook.outcomes) == 1, "it answered a commit of our own"


def test_what_is_seen_waits_folds_and_never_fails_the_job(
    spark: Any, place: Any, hooked: Any, caplog: pytest.LogCaptureFixture
) -> None:
    t, gone, iceberg = f"{place.delta}.t", f"{place.delta}.gone", f"{place.iceberg}.`t-1`"
    path = f"{place.folder}/by path"
    for name, fmt in ((t, "delta"), (gone, "delta"), (iceberg, "iceberg"), (f"{place.delta}.unmeant", "delta")):
        spark.range(0, 10, 1, 2).writeTo(name).using(fmt).create()
    spark.range(0, 10, 1, 2).write.format("delta").save(path)
    meant = [t, f"{place.delta}.gone*", f"{place.iceberg}.*", path]
    hook = hooked(tables=meant, at_end=True)
    assert hooked(tables=meant, at_end=True) is hook
    with pytest.raises(SetupError, match="close"):
        hooked(tables=[t])

    spark.newSession().sql(f"OPTIMIZE {t}").collect()
    jvm(spark).io.delta.tables.DeltaTable.forName(java_session(spark), t).optimize().executeCompaction()
    spark.sql(f"OPTIMIZE {gone}")
    spark.sql(f"DROP TABLE {gone}")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql(f"OPTIMIZE {place.delta}.nowhere")
    spark.sql(f"OPTIMIZE {place.delta}.unmeant")
    spark.sql(f"OPTIMIZE delta.`{path}` ZORDER BY (id)")
    table = jvm(spark).org.apache.iceberg.spark.Spark3Util.loadIcebergTable(java_session(spark), iceberg)
    actions = jvm(spark).org.apache.iceberg.spark.actions.SparkActions.get(java_session(spark))
    actions.rewriteManifests(table).execute()
    actions.rewriteDataFiles(table).option("rewrite-all", "true").execute()
    assert hook.outcomes == ()

    with caplog.at_level(logging.WARNING, "oreo_lakehouse"):
        assert hook.close(LONG)
    spark.sql(f"OPTIMIZE {t}")
    runs = {run.table: run for run in hook.outcomes}
    assert len(runs) == len(hook.outcomes)
    failed = runs.pop(f"spark_catalog.{gone}")
    assert "there is no table" in str(failed.error)
    assert set(runs) == {f"spark_catalog.{t}", f"file:{path}", iceberg}
    assert {run.outcome.decision for run in runs.values()} == {"stay"}
    (warning,) = (record.message for record in caplog.records if "maintained" in record.message)
    assert f"{place.delta}.gone " in warning
    assert hook.lost == 0


def test_a_connect_session_is_told_what_to_do_instead() -> None:
    connect: Any = object()
    with pytest.raises(SetupError, match="--after-optimize"):
        after_optimize(connect)
