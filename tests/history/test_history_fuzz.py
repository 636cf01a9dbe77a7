"""Hostile input: thousands of mutated statements and files leave nothing but clean rejections.

`OREO_FUZZ=20 uv run pytest tests/history/test_history_fuzz.py tests/history/test_history_catalyst.py` tries twenty
times as many.
"""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oreo_lakehouse.errors import HistoryError
from oreo_lakehouse.history.importing import import_history
from oreo_lakehouse.history.sqltext import SqlText
from oreo_lakehouse.history.store import HistoryStore
from oreo_lakehouse.predicates.jsonform import from_json, to_json
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.store import LocalStore

TIMES = int(os.environ.get("OREO_FUZZ", "1"))
SCHEMA = {"id": Kind.INTEGER, "s": Kind.STRING, "d": Kind.DATE, "ts": Kind.TIMESTAMP, "m": Kind.DECIMAL}
SEEDS = [
    "SELECT * FROM t WHERE id = 1 AND s LIKE 'a%' OR d BETWEEN '2024-01-01' AND date '2024-02-01' + interval 1 month",
    "WITH q AS (SELECT id, max(s) AS s FROM db.t GROUP BY 1) SELECT * FROM q LEFT JOIN t ON q.id = t.id WHERE m = 1",
    "SELECT (SELECT count(*) FROM t WHERE ts > timestamp '2024-01-01 00:00:00') FROM u WHERE EXISTS (SELECT 1 FROM t)",
    "INSERT INTO u SELECT id FROM t WHERE id NOT IN (1, NULL) UNION ALL SELECT id FROM delta.`/a/../b` WHERE s <=> 'x'",
]
PIECES = [
    *(
        "(",
        ")",
        "'",
        '"',
        "`",
        "\\",
        "--",
        "/*",
        "*/",
        ";",
        ",",
        ".",
        "..",
        "\0",
        "\n",
        "é",
        "\U0001f600",
        "\ud800",
        "%",
        "$",
        "{{",
    ),
    *(
        " NOT ",
        " AND ",
        " IN ",
        " SELECT ",
        " FROM ",
        " t ",
        " NULL ",
        " CASE ",
        " INTERVAL ",
        " CAST(",
        "::",
        "->",
        "[",
        "]",
    ),
    *(
        "9" * 400,
        "1e999",
        "-",
        "0x",
        "X'",
        "date '",
        "timestamp '",
        "'9999-99-99'",
        "((((((((((",
        " OVER (",
        "@",
        ":x",
        "?",
    ),
]


def mutated(random: Random, text: str) -> str:
    for _ in range(random.randint(1, 3)):
        at, end = sorted((random.randint(0, len(text)), random.randint(0, len(text))))
        piece = random.choice([*PIECES, text[at:end]])
        text = random.choice([text[:at] + piece + text[at:], text[:at] + text[end:], text[:at] + piece + text[end:]])[
            :3000
        ]
    return text


@pytest.mark.parametrize("seed", range(3))
def test_mutated_statements_are_read_or_refused(seed: int) -> None:
    random = Random(seed)
    readers = [SqlText(["db.t"], SCHEMA, dialect) for dialect in ("spark", "trino", "snowflake")]
    read = 0
    for _ in range(1_500 * TIMES):
        text = mutated(random, random.choice(SEEDS))
        reader = random.choice(readers)
        try:
            scans = reader.scans(text, random.choice(["UTC", "Europe/Berlin", "nonsense", None]), 1_700_000_000_000_000)
        except HistoryError:
            continue
        read += 1
        for scan in scans:
            assert from_json(to_json(scan.predicate)) == scan.predicate
    assert read > 50


def test_mutated_files_are_read_or_refused(tmp_path: Path) -> None:
    random = Random(5)
    history = HistoryStore(LocalStore(str(tmp_path / "store")), "u")
    good = [{"statement_text": seed, "start_time": "2024-05-01T00:00:00Z", "duration_ms": 5} for seed in SEEDS]
    lines = "".join(json.dumps(row) + "\n" for row in good).encode()
    table = b"statement_text,start_time\n" + b"\n".join(b'"' + s.encode() + b'",5' for s in SEEDS)
    refused: list[str] = []
    for _ in range(600 * TIMES):
        content = bytearray(random.choice([lines, table, gzip.compress(lines)]))
        for _ in range(random.randint(1, 30)):
            at = random.randrange(len(content))
            content[at : at + random.randint(0, 3)] = random.randbytes(random.randint(0, 3))
        file = tmp_path / "file"
        file.write_bytes(bytes(content))
        try:
            import_history(history, ["db.t"], SCHEMA, [file], fmt=random.choice(["auto", "auto", "eventlog"]))
        except HistoryError as error:
            refused.append(str(error))
    assert not any("\n" in sentence for sentence in refused)
    assert history.set_aside() == []
    assert {path.name for path in tmp_path.iterdir()} == {"file", "store"}


def grown_by(work: Callable[[], object]) -> int:
    """How many megabytes of Python's and Arrow's memory some work needs at its peak."""
    tracemalloc.start()
    before = pa.default_memory_pool().bytes_allocated()
    try:
        work()
        return (tracemalloc.get_traced_memory()[1] + pa.default_memory_pool().bytes_allocated() - before) >> 20
    finally:
        tracemalloc.stop()


def test_a_line_of_100_megabytes_is_rejected_with_its_number_in_little_memory(tmp_path: Path) -> None:
    history = HistoryStore(LocalStore(str(tmp_path / "store")), "u")
    good = json.dumps({"statement_text": SEEDS[0], "start_time": 5}).encode() + b"\n"
    for name, content in {"log.jsonl": good, "log.csv": b"statement_text,start_time\nSELECT 1 FROM db.t,5\n"}.items():
        file = tmp_path / name
        with file.open("wb") as out:
            out.write(content + b'{"statement_text": "')
            for _ in range(100):
                out.write(b"x" * 1_000_000)
            out.write(b'"}\n' + good)
        lines: list[str] = []

        def run(file: Path = file, lines: list[str] = lines) -> None:
            lines += import_history(history, ["db.t"], SCHEMA, [file]).faults

        assert grown_by(run) < 60
        number = content.count(b"\n") + 1
        assert [fault for fault in lines if f"line {number}: the line is longer" in fault]


def test_files_that_grow_without_measure_are_refused(tmp_path: Path) -> None:
    history = HistoryStore(LocalStore(str(tmp_path / "store")), "u")
    zeros = b"x" * 100_000_000
    bombs = {
        "bomb.jsonl.gz": gzip.compress(zeros),
        "events_1_app.zstd": pa.compress(zeros, "zstd", asbytes=True),
    }
    text = pa.table({"statement_text": pa.array(["x" * 200_000_000]), "start_time": [5]})
    pq.write_table(text, tmp_path / "bomb.parquet", compression="zstd", use_dictionary=False)
    for name, content in bombs.items():
        (tmp_path / name).write_bytes(content)
    for name in [*bombs, "bomb.parquet"]:
        fmt = "eventlog" if "events" in name else "auto"
        with pytest.raises(HistoryError, match="times its size"):
            import_history(history, ["db.t"], SCHEMA, [tmp_path / name], fmt=fmt)
    assert history.read_since({})[0] == []


@pytest.mark.parametrize(
    "name", ["../../db.t", "delta.`/a/../../etc/passwd`", "`db`.`t/../x`", "`db.t`", "db.`t\0`", "file:///db/t", "`/t`"]
)
def test_a_path_in_a_table_s_name_is_only_a_name(tmp_path: Path, name: str) -> None:
    history = HistoryStore(LocalStore(str(tmp_path / "store")), "u")
    file = tmp_path / "log.jsonl"
    file.write_text(json.dumps({"statement_text": f"SELECT * FROM {name} WHERE id = 1", "start_time": 5}) + "\n")
    summary = import_history(history, ["db.t", "/lake/t"], SCHEMA, [file])
    assert (summary.imported, summary.other_tables + summary.rejected) == (0, 1)
    assert {path.name for path in tmp_path.iterdir()} == {"log.jsonl"}
