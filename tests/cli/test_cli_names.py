"""Names that nobody should choose and somebody will: quotes, dots, line breaks and SQL in tables and columns."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from typer.testing import CliRunner

from oreo_lakehouse.cli.main import app
from oreo_lakehouse.layouts.sqltext import quoted
from oreo_lakehouse.tables.certificate import certify

COLUMNS = (
    *("with space", "o'hara", "tick`ed", "dots.in.it", 'quo"te', "ünïcode 🦆", "x; DROP TABLE `shop", "line\nbreak"),
    *("per%cent", "$dollar", "back\\slash", "a,b", "-- comment", "[bold]markup[/]", "../../etc"),
)
TABLE = "t'a`b\"l e; DROP TABLE shop --ü[red]"
ROWS = 3_000


@pytest.fixture
def odd(spark: Any, shop: Any) -> Any:
    """The shop with a table of such a name, and in SQL where it is another."""
    columns = ", ".join(f"{quoted(name)} int" for name in COLUMNS)
    if shop.format == "delta":  # Spark's own catalog allows no such names, a path does
        folder = shop.folder / TABLE
        name, sql = str(folder), f"delta.{quoted(str(folder))}"
        clause = "using delta tblproperties ('delta.columnMapping.mode' = 'name')"
    else:
        name = sql = f"{shop.name.rpartition('.')[0]}.{quoted(TABLE)}"
        clause = "using iceberg"
    spark.sql(f"create table {sql} (id bigint, {columns}) {clause}")
    values = ", ".join(f"cast(pmod(xxhash64(id, {n}), 1000) as int)" for n in range(len(COLUMNS)))
    spark.sql(f"insert into {sql} select id, {values} from range(0, {ROWS}, 1, 6)")
    return replace(shop, name=name), sql


def asked(shop: Any, sql: str, focus: str, day: int) -> str:
    """A log of queries that select by one column and name them all."""
    file, first = shop.folder / f"odd{day}.jsonl", datetime(2026, 1, 1 + day, tzinfo=UTC)
    with file.open("w") as out:
        for number in range(60):
            low, rest = number * 613 % 900, " AND ".join(f"{quoted(name)} >= 0" for name in COLUMNS)
            text = f"SELECT count(*) FROM {sql} WHERE {quoted(focus)} BETWEEN {low} AND {low + 20} AND {rest}"
            entry = {"statement_text": text, "start_time": (first + timedelta(minutes=number)).isoformat()}
            out.write(json.dumps(entry) + "\n")
    return str(file)


def test_every_command_takes_any_name(spark: Any, odd: Any) -> None:
    shop, sql = odd
    want = certify(spark.table(sql))

    def done(*arguments: str) -> str:
        result = shop.oreo(*arguments)
        assert result.exit_code == 0, (arguments, result.output)
        assert "Traceback" not in result.stderr
        return result.stdout

    for day, focus in enumerate(("x; DROP TABLE `shop", "line\nbreak")):
        said = done("history", "import", shop.name, asked(shop, sql, focus, day))
        assert "60" in said
        outcome = shop.maintained()
        assert outcome["decision"] == "move", outcome
        assert certify(spark.table(sql), ["_oreo_bid"]) == want
        for low in (0, 370):  # the files that it skips hold no such row
            column = quoted(focus)
            rows = spark.sql(f"select count(*) n from {sql} where {column} between {low} and {low + 20}")
            plain = spark.sql(f"select count_if({column} between {low} and {low + 20}) n from {sql}")
            assert rows.collect() == plain.collect()
    assert shop.maintain("--dry-run").exit_code == 0
    for words in (
        *(["status"], ["explain"], ["ledger"], ["layouts"], ["history"]),
        *(["status", "--json"], ["explain", "--json"], ["ledger", "--json"], ["layouts", "--json"]),
    ):
        assert done(words[0], shop.name, *words[1:])
    page = shop.folder / "report.html"
    done("report", shop.name, "-o", str(page))
    text = page.read_text()
    assert "<svg" in text
    assert "[bold]markup[/]" in text or "DROP TABLE" in text
    done("rollback", shop.name)
    assert certify(spark.table(sql), ["_oreo_bid"]) == want
    assert spark.catalog.tableExists(f"{shop.name.rpartition('.')[0]}.shop" if shop.format == "iceberg" else sql)


def test_a_name_that_is_no_table_is_a_sentence(spark: Any, tmp_path: Any) -> None:
    config = tmp_path / "oreo.toml"
    config.write_text(f'store = "{tmp_path}/store"')
    for name in ("../../etc/passwd", "a`b", "x; DROP TABLE t", "", "a.b.c.d.e", "delta.`", "\n", "[red]", "a\x00b"):
        for command in ("status", "ledger", "rollback", "history"):
            result = CliRunner().invoke(app, [command, name, "--config", str(config)])
            assert result.exit_code == 2, (command, name, result.output)
            assert result.stderr.strip()
            assert "Traceback" not in result.stderr
            assert "unexpected" not in result.stderr, (command, name, result.stderr)
    assert not (tmp_path / "store").exists()
