"""Hostile input: thousands of mutated statements and files leave nothing but clean rejections."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random

import pytest

from oreo_lakehouse.errors import HistoryError
from oreo_lakehouse.history.importing import import_history
from oreo_lakehouse.history.sqltext import SqlText
from oreo_lakehouse.history.store import HistoryStore
from oreo_lakehouse.predicates.jsonform import from_json, to_json
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.store import LocalStore

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
    for _ in range(1_500):
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
    for _ in range(600):
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
