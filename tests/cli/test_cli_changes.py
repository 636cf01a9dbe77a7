"""What may have happened to a table, its storage or the clock since the last run: each is told in a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def test_changed_columns_a_new_table_and_a_turned_clock(spark: Any, shop: Any) -> None:
    shop.ask(0)
    assert shop.maintained()["decision"] == "move"

    # The clock: the last line seems to have been written tomorrow.
    (last,) = (shop.folder / "store").glob("*/ledger/*.jsonl")
    last.rename(last.with_name("2999" + last.name[4:]))
    assert "the clock is" in shop.maintain().stderr

    # It is widened within its kind: what is known of it stays true. Delta also widens whole numbers to floats.
    if shop.format == "delta":
        spark.sql(f"ALTER TABLE {shop.name} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    spark.sql(f"ALTER TABLE {shop.name} ALTER COLUMN k TYPE {'double' if shop.format == 'delta' else 'bigint'}")
    shop.ask(10, column="k")
    widened = shop.maintain("--dry-run")
    assert widened.exit_code == 0, widened.output
    assert ("column k changed from integer to float" in widened.stderr) == (shop.format == "delta")

    # A column that the layout cuts by is renamed: layouts by it are forgotten, the run goes on.
    if shop.format == "delta":
        spark.sql(f"ALTER TABLE {shop.name} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    spark.sql(f"ALTER TABLE {shop.name} RENAME COLUMN k TO kk")
    shop.ask(1, column="d")
    done = shop.maintain("--json")
    assert done.exit_code == 0, done.output
    assert "column k is gone (dropped or renamed)" in done.stderr
    assert json.loads(done.stdout)["queries_seen"] == 120

    # Another table under the same name: nothing of the old one is used.
    spark.sql(f"DROP TABLE {shop.name}")
    spark.range(100).selectExpr("id", "cast(id AS int) AS k").writeTo(shop.name).using(shop.format).create()
    done = shop.maintain()
    assert done.exit_code == 0, done.output
    assert "is another table than in earlier runs" in done.stderr
    assert "no query history yet" in done.stdout
    assert "is another table" not in shop.maintain().stderr


def test_a_store_that_cannot_be_written_is_named(shop: Any) -> None:
    shop.ask(0)
    blocked = Path(shop.folder, "blocked")
    blocked.write_text("a file where the store's folder should be")
    shop.config.write_text(shop.config.read_text().replace(str(shop.folder / "store"), str(blocked)))
    done = shop.maintain()
    assert done.exit_code == 2
    assert str(blocked) in done.stderr
    assert "unexpected" not in done.stderr


def test_wrong_words_are_told_before_anything_starts(shop: Any) -> None:
    for words, sentence in [
        (["--budget", "much"], "--budget = 'much' is not a size"),
        (["--cooldown", "soon"], "--cooldown = 'soon' is not a duration"),
        (["--dry-run", "--shadow"], "choose one"),
        (["--all"], "name the tables to maintain, or give --all"),
    ]:
        done = shop.maintain(*words)
        assert done.exit_code == 2
        assert sentence in done.stderr
