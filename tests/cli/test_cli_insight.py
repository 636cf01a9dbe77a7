"""status, explain, ledger and report without a JVM: a Delta table by path, an Iceberg table in the embedded catalog."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import Result
from deltalake import DeltaTable, write_deltalake
from ledger_week import BY_DAY, BY_SHOP, START, WORDS, keep, run_id, week
from pyiceberg.catalog.sql import SqlCatalog
from typer.testing import CliRunner

from oreo_lakehouse.cli.frame import looking_at_files
from oreo_lakehouse.cli.main import app
from oreo_lakehouse.config import load_config
from oreo_lakehouse.history.exactness import Exactness
from oreo_lakehouse.history.record import QueryRecord
from oreo_lakehouse.history.store import HistoryStore
from oreo_lakehouse.maintenance import offline
from oreo_lakehouse.maintenance.offline import open_offline
from oreo_lakehouse.maintenance.shardledgers import ShardLedger
from oreo_lakehouse.maintenance.status import status_of
from oreo_lakehouse.predicates.tree import And, Compare, Op
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.report.shardpage import shards_page
from oreo_lakehouse.store import LocalStore

sys.path.append(str(Path(__file__).parents[2] / "examples"))
from report_picture import browser, take

FILES, ROWS = 12, 100


@dataclass(frozen=True)
class Desk:
    """A table that has lived a week, on a machine without Java."""

    table: str
    uuid: str
    folder: Path

    @property
    def config(self) -> str:
        return str(self.folder / "oreo.toml")

    def oreo(self, *arguments: str) -> Result:
        return CliRunner().invoke(app, [*arguments, "--config", self.config])

    def json(self, *arguments: str) -> dict[str, Any]:
        done = self.oreo(*arguments, "--json")
        assert done.exit_code == 0, done.output
        (line,) = done.stdout.splitlines()
        return json.loads(line)


def rows(number: int) -> pa.Table:
    """Every file has all days and its own shops."""
    shops = np.arange(ROWS) % 10 + 10 * number
    return pa.table({"shop": shops, "day": np.arange(ROWS) % 97, "name": [f"shop-{s:04d}" for s in shops]})


def queries(uuid: str) -> list[QueryRecord]:
    return [
        QueryRecord(
            f"q{i}",
            0,
            "import",
            int((START + timedelta(hours=i)).timestamp() * 1e6),
            "finished",
            uuid,
            And((Compare("shop", Op.GE, Kind.INTEGER, i % 60), Compare("shop", Op.LE, Kind.INTEGER, i % 60 + 5))),
            Exactness.EXACT,
        )
        for i in range(120)
    ]


@pytest.fixture(params=["delta", "iceberg"])
def desk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setattr(offline, "_spark_is_here", lambda: False)  # other tests of this process may have a session
    warehouse = tmp_path / "warehouse"
    (warehouse / "_iceberg").mkdir(parents=True)
    if request.param == "delta":
        table = str(tmp_path / "orders")
        for number in range(FILES):
            write_deltalake(table, rows(number), mode="append")
        uuid = str(DeltaTable(table).metadata().id)
    else:
        table = "iceberg.shop.orders"
        catalog = SqlCatalog(
            "iceberg", uri=f"sqlite:///{warehouse}/_iceberg.db", warehouse=f"file://{warehouse}/_iceberg"
        )
        catalog.create_namespace("shop")
        made = catalog.create_table("shop.orders", rows(0).schema)
        for number in range(FILES):
            made.append(rows(number))
        uuid = str(made.metadata.table_uuid)
    store = LocalStore(str(warehouse / "_oreo"))
    keep(store, uuid, week())
    HistoryStore(store, uuid).append(queries(uuid))
    (tmp_path / "oreo.toml").write_text(f'[spark]\nwarehouse = "{warehouse}"\n')
    return Desk(table, uuid, tmp_path)


def test_status_tells_health_without_a_jvm(desk: Desk) -> None:
    shown = desk.json("status", desk.table)
    assert (shown["uuid"], shown["rows"], shown["files"]) == (desk.uuid, FILES * ROWS, FILES)
    assert (shown["queries_seen"], shown["queries_waiting"], shown["layout_id"]) == (0, 120, None)
    health = shown["health"]
    assert health["avg_depth"] == {"shop": 1.0}
    assert health["overlap_ratio"] == {"shop": 0.0}
    # 5 of 10 starts reach into the next file
    assert health["skipping_effectiveness"]["rows"] == pytest.approx(1 - 1.5 / FILES)
    assert health["skipping_effectiveness"]["queries"] == 120
    assert health["best_known"]["layout_id"] == BY_DAY
    assert health["best_known"]["queries"] == 780
    people = desk.oreo("status", desk.table)
    assert people.exit_code == 0
    for word in ("avg_depth", "overlap_ratio", "skipping", "best known", "sorted by day"):
        assert word in people.stdout


def test_explain_ledger_and_mistakes(desk: Desk) -> None:
    last = desk.json("explain", desk.table)
    assert (last["id"], last["decision"]) == (run_id(7), "stay")
    move = desk.json("explain", desk.table, "--decision", "0606")
    assert (move["decision"], move["target"]) == ("move", WORDS[BY_SHOP])
    people = desk.oreo("explain", desk.table, "--decision", "0606")
    assert people.exit_code == 0
    for word in ("moved to qd-tree", "regret", "counter", "day BETWEEN ? AND ?", "20 full scans", "92.0%"):
        assert word in people.stdout
    unknown = desk.oreo("explain", desk.table, "--decision", "zz")
    assert (unknown.exit_code, unknown.stdout) == (2, "")
    assert "there is no decision 'zz'" in unknown.stderr
    assert desk.oreo("explain", desk.table, "--last", "--decision", "zz").exit_code == 2

    ledger = desk.json("ledger", desk.table)
    assert ledger["spent"]["total"] == pytest.approx(ledger["spent"]["queries"] + ledger["spent"]["rewrites"])
    assert ledger["saved"] == pytest.approx(ledger["never"] - ledger["spent"]["total"])
    assert ledger["best_fixed"]["layout_id"] == BY_DAY
    assert [(one["has_paid"], one["drifts"]) for one in ledger["receipts"]] == [(True, True), (True, False)]
    people = desk.oreo("ledger", desk.table)
    for word in ("best fixed", "known in part", "bound", "paid for itself by query 170", "off by more than 20%"):
        assert word in people.stdout


class Page(HTMLParser):
    """What a browser would draw: every picture with its title, description and shapes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.pictures: list[dict[str, Any]] = []
        self.tables: list[int] = []
        self.fetched: list[str] = []
        self.chapters: list[bool] = []
        self.targets: set[str] = set()
        self.links: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag in ("script", "link", "img", "iframe") or "src" in found or not found.get("href", "#").startswith("#"):
            self.fetched.append(tag)
        if tag == "svg" and found.get("role") == "img":
            self.pictures.append({"title": "", "desc": "", "lines": [], "rects": []})
        elif tag == "polyline":
            points = [tuple(map(float, pair.split(","))) for pair in found["points"].split()]
            self.pictures[-1]["lines"].append((found["class"], points))
        elif tag == "rect" and self.pictures:
            self.pictures[-1]["rects"].append(found)
        elif tag == "details":
            self.chapters.append("open" in found)
        elif tag == "a":
            self.links.append(found["href"])
        elif tag == "table":
            self.tables.append(0)
        elif tag == "tr" and self.tables:
            self.tables[-1] += 1
        self.targets |= {f"#{found['id']}"} if "id" in found else set()
        self._inside = tag

    def handle_data(self, data: str) -> None:
        if self._inside in ("title", "desc") and self.pictures:
            self.pictures[-1][self._inside] += data

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""


def test_the_report_has_data_in_every_plot_and_needs_nothing(desk: Desk) -> None:
    file = desk.folder / "report.html"
    told = desk.json("report", desk.table, "-o", str(file))
    text = file.read_text()
    assert told["report"] == str(file)
    assert told["bytes"] == len(text.encode())
    assert not {"http:", "https:", "@import", "url("} & set(text.replace('"', " ").split())
    for foreign in ("http://", "https://", "@import", "url(", "<script"):
        assert foreign not in text
    assert "of the table &lt;now&gt;" in text
    page = Page(text)
    assert page.fetched == []
    titles = [picture["title"] for picture in page.pictures]
    assert len(titles) == 4, titles
    for picture in page.pictures:
        assert picture["title"]
        assert len(picture["desc"]) > 20
        for name, points in picture["lines"]:
            assert len(points) > 5, name
            assert len({x for x, _ in points}) > 5, name
            assert max(y for _, y in points) - min(y for _, y in points) > 3, name  # of 100: not a flat line
            assert all(-0.01 <= x <= 100.01 and -0.01 <= y <= 100.01 for x, y in points), name
    cost, band, skipping, heat = page.pictures
    assert [name for name, _ in cost["lines"]] == ["line fixed", "line never", "line actual"]
    assert [name for name, _ in skipping["lines"]] == ["line never", "line actual"]
    widths = [float(rect["width"]) for rect in band["rects"]]
    assert sum(widths) == pytest.approx(100, abs=0.01)
    assert len(widths) == 3
    cells = [float(rect["fill-opacity"]) for rect in heat["rects"]]
    assert len(cells) == 16 * FILES
    assert max(cells) - min(cells) > 0.3
    assert page.tables == [4, 3, 8]  # layouts, receipts, decisions, with their heads
    assert "prefers-color-scheme: dark" in text
    assert "max-width: 620px" in text
    broken = desk.oreo("report", desk.table, "-o", str(desk.folder / "no" / "where.html"))
    assert broken.exit_code == 2
    assert "cannot write" in broken.stderr


@pytest.fixture
def sharded(desk: Desk) -> Path:
    """The page of a table with three shards; of the last one nobody has asked yet."""
    with looking_at_files(desk.table, load_config(desk.config)) as (view, blocks):
        stands = status_of(view, blocks, load_config(desk.config))
    lines = {"eu": tuple(week()), "us": tuple(week(6)), "za": ()}
    shards = [ShardLedger(at, f"region={at}", f"region=<{at}>", 100 * len(told), told) for at, told in lines.items()]
    page = desk.folder / "shards.html"
    page.write_text(shards_page(stands, shards, dict.fromkeys(lines, blocks)))
    return page


@pytest.mark.parametrize("desk", ["delta"], indirect=True)
def test_the_report_of_shards_has_a_chapter_each_and_one_is_open(sharded: Path) -> None:
    text = sharded.read_text()
    page = Page(text)
    assert page.fetched == []
    assert len(page.pictures) == 2 * 4
    assert all(len(points) > 5 for picture in page.pictures for _, points in picture["lines"])
    assert sorted(page.chapters) == [False, True]
    assert page.links == ["#shard-eu", "#shard-us"]
    assert page.targets >= set(page.links)
    assert page.tables[0] == 3  # the shards that were asked of, with their head
    assert "2 of 3 shards have been asked of" in text
    assert text.count("region=&lt;us&gt;") == 2


@pytest.mark.skipif(browser() is None, reason="CI has no browser; the test above reads the same page without one")
@pytest.mark.parametrize(("size", "scheme"), [("wide", "dark"), ("narrow", "light")])
@pytest.mark.parametrize("desk", ["delta"], indirect=True)
def test_a_browser_draws_the_plots(desk: Desk, size: str, scheme: str) -> None:
    file, bare = desk.folder / "report.html", desk.folder / "bare.html"
    desk.json("report", desk.table, "-o", str(file))
    bare.write_text(re.sub(r"<(polyline|polygon|rect)[^>]*>", "", file.read_text()))
    for page in (file, bare):
        take(page, page.with_suffix(".png"), size, scheme)
    drawn, blank = (page.with_suffix(".png").stat().st_size for page in (file, bare))
    assert drawn > blank + 2_000  # the shapes alone


@pytest.mark.skipif(browser() is None, reason="CI has no browser; the test above reads the same page without one")
@pytest.mark.parametrize("desk", ["delta"], indirect=True)
def test_a_browser_draws_the_chapter_that_is_open(sharded: Path) -> None:
    shut = sharded.with_name("shut.html")
    shut.write_text(sharded.read_text().replace(' name="shard" open>', ' name="shard">'))
    for page in (sharded, shut):
        take(page, page.with_suffix(".png"), "wide", "light")
    drawn, closed = (page.with_suffix(".png").stat().st_size for page in (sharded, shut))
    assert drawn > closed + 20_000


def test_a_table_without_a_ledger_has_a_page_too(desk: Desk) -> None:
    for file in (desk.folder / "warehouse/_oreo" / desk.uuid).rglob("*.jsonl"):
        file.unlink()
    assert "no run has decided about a query" in desk.oreo("ledger", desk.table).stdout
    none = desk.oreo("explain", desk.table)
    assert none.exit_code == 2
    assert "has no decision yet" in none.stderr
    desk.json("report", desk.table, "-o", str(desk.folder / "empty.html"))
    assert "No run has served queries yet" in (desk.folder / "empty.html").read_text()
    shown = desk.json("status", desk.table)
    assert (shown["health"]["skipping_effectiveness"], shown["last_decision"]) == (None, None)


def test_no_java_is_asked_for(desk: Desk) -> None:
    command = [str(Path(sys.executable).parent / "oreo"), "status", desk.table, "--json", "--config", desk.config]
    environ = {**os.environ, "JAVA_HOME": "/nowhere"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["files"] == FILES
    probe = (
        "import sys; from oreo_lakehouse.cli.main import app\n"
        "try: app(sys.argv[1:])\nexcept SystemExit: pass\n"
        "print(sorted({'pyspark', 'py4j', 'sqlglot'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", probe, *command[1:]], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize(
    ("table", "flags"),
    [
        ("db.orders", {}),
        ("iceberg.shop.nothing", {}),
        ("other.shop.orders", {}),
        ("s3://bucket/orders", {}),
        ("./nowhere", {}),
        ("iceberg.`shop`.orders", {}),
        ("iceberg.shop.orders", {"store": "s3://bucket/oreo"}),
        ("iceberg.shop.orders", {"spark.conf": {"spark.sql.catalog.iceberg": "x"}}),
        ("iceberg.shop.orders", {"spark.conf": {"spark.hadoop.fs.defaultFS": "hdfs://name"}}),
        ("iceberg.shop.orders", {"spark.warehouse": "s3://bucket/warehouse"}),
    ],
)
@pytest.mark.parametrize("desk", ["iceberg"], indirect=True)
def test_what_only_spark_can_tell_is_left_to_it(desk: Desk, table: str, flags: dict[str, Any]) -> None:
    assert open_offline(desk.table, load_config(desk.config)) is not None
    assert open_offline(table, load_config(desk.config, flags)) is None
