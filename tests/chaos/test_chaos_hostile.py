"""The suite's share of the hostile inputs; `examples/chaos.py` tries thousands."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scene import scene

from oreo_lakehouse.config import Config
from oreo_lakehouse.errors import HistoryError
from oreo_lakehouse.history.dayfiles import pack, unpack
from oreo_lakehouse.history.exactness import Exactness
from oreo_lakehouse.history.querycolumns import Rows, Templates, table_of_lines, table_of_records
from oreo_lakehouse.history.record import QueryRecord
from oreo_lakehouse.history.sqltext import SqlText
from oreo_lakehouse.history.statements import parse_time
from oreo_lakehouse.maintenance.facts import FORMAT_VERSION as FACTS
from oreo_lakehouse.maintenance.facts import decode
from oreo_lakehouse.maintenance.lock import locked
from oreo_lakehouse.maintenance.offline import open_offline
from oreo_lakehouse.maintenance.pending import Pending
from oreo_lakehouse.maintenance.state import StateStore
from oreo_lakehouse.predicates.tree import TRUE
from oreo_lakehouse.store import LocalStore
from oreo_lakehouse.tables.resolve import open_table

if TYPE_CHECKING:
    from conftest import Place
    from pyspark.sql import SparkSession

HOSTILE = Path(__file__).with_name("hostile.py")


def test_hostile_input_ends_in_a_sentence_and_touches_nothing(spark: SparkSession, tmp_path: Path) -> None:
    folder = scene(spark, tmp_path)
    words = [sys.executable, str(HOSTILE), str(folder), "--inputs", "120", "--seed", "7"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert told["failures"] == []
    assert told["inputs"] == 120


@pytest.mark.parametrize("fmt", ["delta", "iceberg"])
def test_an_intent_that_somebody_planted_deletes_nothing(spark: SparkSession, place: Place, fmt: str) -> None:
    """An intent names a run and nothing else: files that it lists, and ids that are no run's, mean nothing to us."""
    name = f"{getattr(place, fmt)}.planted"
    spark.range(0, 50, 1, 2).writeTo(name).using(fmt).create()
    table = open_table(spark, name)
    folder = Path(table.identity.location.removeprefix("file:"))
    before = sorted(path for path in folder.rglob("*") if path.is_file())
    outside = place.folder / "precious.txt"
    outside.write_text("nobody's business")
    store, paths = LocalStore(str(place.folder / "store")), [*map(str, before), str(outside), "../../precious.txt"]
    staged = {
        "layout_id": "sort-1",
        "base_version": 0,
        "certificate": {"rows": 0, "checksum": "0"},
        "paths": paths,
        "rows": 0,
        "bytes": 0,
        "replaced_files": 0,
        "added": [{"path": path} for path in paths],
        "removed": [],
    }
    for run in ("0" * 32, "..", "*", "part-00000", "x", "-begun"):
        document = json.dumps({"version": 1, "staged": {**staged, "run_id": run}})
        store.create(f"{table.identity.uuid}/pending/{run}.json", document.encode())
    Pending(store, table.identity.uuid).repair(table)
    assert sorted(path for path in folder.rglob("*") if path.is_file()) == before
    assert outside.exists()
    assert store.entries(f"{table.identity.uuid}/pending") == []


NOTES = ('{"oreo.layout-id": "x"', '{"oreo.layout-id": {"a": 1}, "oreo.base-version": "0"}', '["oreo.layout-id"]')
NOTES += ('{"oreo.layout-id": "x", "oreo.run-id": "y", "oreo.base-version": "../x"}', "oreo.layout-id\n1 2 {}")


def test_a_commit_that_only_looks_like_ours_is_a_strangers(spark: SparkSession, place: Place) -> None:
    """Any writer may say of his commit what he likes."""
    folder = place.folder / "noted"
    for note in NOTES:
        rows = spark.range(0, 3, 1, 1).write.format("delta").mode("append")
        rows.option("userMetadata", note).save(str(folder))
    assert open_table(spark, str(folder)).layout_commits() == []
    name = f"{place.iceberg}.noted"
    spark.range(0, 3, 1, 1).writeTo(name).using("iceberg").create()
    said = {"oreo.layout-id": "x", "oreo.run-id": "y", "oreo.base-version": "../x"}
    rows = spark.range(0, 3, 1, 1).writeTo(name)
    for key, value in said.items():
        rows = rows.option(f"snapshot-property.{key}", value)
    rows.append()
    assert open_table(spark, name).layout_commits() == []
    script = (
        "import sys, pathlib; from oreo_lakehouse.tables.delta.offline import open_offline\n"
        "assert open_offline(pathlib.Path(sys.argv[1])).layout_commits() == []"
    )
    subprocess.run([sys.executable, "-c", script, str(folder)], check=True)


@pytest.mark.parametrize(
    "statement",
    ["select * from t where a = 'secret", "select * from t where a = 'secret' 'x' )(", "select ('secret' from t"],
)
def test_what_cannot_be_parsed_is_not_repeated(statement: str) -> None:
    with pytest.raises(HistoryError) as fault:
        SqlText(["t"], {}).scans(statement)
    assert "secret" not in str(fault.value)
    with pytest.raises(ValueError, match="is not a time") as torn:
        parse_time("'secret'")
    assert "secret" not in str(torn.value)


@pytest.mark.parametrize(
    "body",
    [
        "[]",
        "[" * 100_000,
        '{"x": 1}',
        '{"cursor": []}',
        '{"kinds": {"a": 1}}',
        '{"tail_regret": NaN}',
        '{"queries": -1}',
    ],
)
def test_a_state_that_somebody_sealed_is_set_aside_like_a_damaged_one(tmp_path: Path, body: str) -> None:
    store = LocalStore(str(tmp_path))
    seal = hashlib.sha256(body.encode()).hexdigest()
    store.create("t/state/0000000001.json", json.dumps({"version": 1, "sha256": seal, "body": body}).encode())
    state, notices = StateStore(store, "t").load()
    assert state.number == 0
    assert "set aside" in notices[0]
    for facts in ('{"rows": []}', "{}", "[]", '{"rows": [1e400], "bids": [], "columns": {}, "comparisons": []}'):
        rest = f'["a"]\n{facts}'
        header = json.dumps({"version": 1, "sha256": hashlib.sha256(rest.encode()).hexdigest()})
        with pytest.raises(ValueError, match="what file facts should"):
            decode(f"{header}\n{rest}".encode())


@pytest.mark.parametrize("ticket", ["[1]", '{"expires": "x"}', '{"expires": 1e300}', '{"expires": NaN}', "[" * 100_000])
def test_a_lock_that_nobody_can_hold_keeps_nobody_out(tmp_path: Path, ticket: str) -> None:
    store = LocalStore(str(tmp_path))
    store.create("t/lock/0000000001.json", ticket.encode())
    with locked(store, "t", "t"):
        pass
    assert store.entries("t/lock") == []


@pytest.mark.parametrize("dialect", ["a." * 3_000, "../x", "spark, x = 1", "__init__.x", "\0", "x" * 41])
def test_a_log_cannot_name_a_module_as_its_dialect(dialect: str) -> None:
    with pytest.raises(HistoryError, match="is not a dialect"):
        SqlText(["t"], {}, dialect)


@pytest.mark.parametrize("name", ["time_us", "writer", "template", "status"])
def test_a_day_file_whose_records_lack_something_is_none(name: str) -> None:
    record = QueryRecord("q", 0, "import", 1, "finished", "t", TRUE, Exactness.EXACT)
    templates = Templates()
    rows = templates.rows(table_of_records([record]), "x")
    whole = rows.table.append_column("writer", pa.array(["w"])).append_column("number", pa.array([0]))
    good = pack(Rows(whole, rows.codes), templates.all)
    table = pq.read_table(io.BytesIO(good))
    assert len(unpack(good, "x")) == 1
    at = table.column_names.index(name)
    for wrong in (pa.nulls(1, table.schema.field(name).type), pa.array([[1]])):
        out = io.BytesIO()
        pq.write_table(table.set_column(at, name, wrong), out)
        with pytest.raises(HistoryError, match="not a day file"):
            unpack(out.getvalue(), "x")


@pytest.mark.parametrize("time", [1 << 62, -(1 << 62), 253_402_300_800_000_000])
def test_a_record_of_a_time_without_a_date_is_none(time: int) -> None:
    record = QueryRecord("q", 0, "import", 1, "finished", "t", TRUE, Exactness.EXACT)
    line = json.dumps(json.loads(record.to_line()) | {"time_us": time}).encode()
    for read in (QueryRecord.from_line, table_of_lines):
        with pytest.raises(HistoryError, match="time_us cannot be"):
            read(line, "here")
    templates = Templates()
    rows = templates.rows(table_of_records([replace(record, time_us=time)]), "x")
    whole = rows.table.append_column("writer", pa.array(["w"])).append_column("number", pa.array([0]))
    with pytest.raises(HistoryError, match="a time that no calendar knows"):
        unpack(pack(Rows(whole, rows.codes), templates.all), "x")


def test_a_path_that_no_disk_can_have_is_no_table() -> None:
    assert open_offline("x" * 5_000 + "/", Config()) is None
    assert open_offline("a/" * 3_000, Config()) is None


@pytest.mark.parametrize("side", ["sets", "lower", "nulls"])
def test_facts_of_fewer_files_than_they_name_are_none(side: str) -> None:
    column: dict[str, object] = {"kind": "integer", "lower": [1, 2], "upper": [3, 4], "nulls": [0, 0]}
    column |= {"values": [1, 3], "sets": ["03", "01"]}

    def sealed(told: dict[str, object]) -> bytes:
        body = {"rows": [1, 1], "bids": [0, 1], "columns": {"a": told}, "comparisons": []}
        rest = b'["x","y"]\n' + json.dumps(body).encode()
        return json.dumps({"version": FACTS, "sha256": hashlib.sha256(rest).hexdigest()}).encode() + b"\n" + rest

    assert len(decode(sealed(column))) == 2
    cut = column | {side: column[side][:1]}  # type: ignore[index]
    with pytest.raises(ValueError, match=r"every file|file facts"):
        decode(sealed(cut))


def test_a_record_whose_exactness_is_no_word_names_it() -> None:
    line = json.loads(QueryRecord("q", 0, "import", 1, "finished", "t", TRUE, Exactness.EXACT).to_line())
    with pytest.raises(HistoryError, match="exactness cannot be a dict"):
        QueryRecord.from_line(json.dumps(line | {"exactness": {}}).encode(), "here")
