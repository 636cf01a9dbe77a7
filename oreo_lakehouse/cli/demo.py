"""`oreo demo`: a Delta and an Iceberg table, queries whose focus shifts, and the layouts that follow them.

Nothing here is special to the demo but the data: it calls what `oreo history import` and `oreo-maintain` call, and it
shows what Spark's own scans report.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.util import inheritable_thread_target
from rich.table import Table as Grid
from rich.text import Text

from oreo_lakehouse.cli.demo_data import Focus, foci, orders, write_history
from oreo_lakehouse.cli.demo_scans import Scanned, scan
from oreo_lakehouse.cli.frame import running_spark
from oreo_lakehouse.config import Config, load_config
from oreo_lakehouse.errors import ConfigError
from oreo_lakehouse.maintenance.intake import import_queries
from oreo_lakehouse.maintenance.maintain import maintain
from oreo_lakehouse.maintenance.outcome import Outcome
from oreo_lakehouse.report import console
from oreo_lakehouse.tables.certificate import certify

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from oreo_lakehouse.maintenance.progress import Progress
    from oreo_lakehouse.tables.contract import RowCertificate

FILES = 24
SETTINGS = """\
# Made by `oreo demo`. Relative paths count from where you run the commands.
store = "{folder}/store"

[spark]
warehouse = "{folder}/warehouse"

[layout]
blocks = {blocks}
sample_rows = 30000

[decide]
# The demo has only a few hundred queries, so a rewrite must count as less than in real life (80).
alpha = 25
window = 60
"""


@dataclass(frozen=True)
class Chapter:
    """One focus on one table: what was read before and after maintenance."""

    focus: Focus
    outcome: Outcome
    before: Scanned
    after: Scanned


@dataclass(frozen=True)
class Story:
    """One table from its first query to its last layout."""

    format: str
    name: str
    chapters: list[Chapter]
    rows_before: RowCertificate
    rows_after: RowCertificate


def demo(folder: Path, rows: int) -> None:
    """Build, play, show."""
    config = _prepare(folder)
    names = {"delta": f"{folder}/orders_delta", "iceberg": f"{config.spark.iceberg_catalog}.demo.orders"}
    plot = foci()
    with running_spark(config) as (spark, progress):
        shares = _Shares(progress, len(plot) + 1)

        parts = {fmt: shares.of(fmt) for fmt in names}
        first = _build(spark, names["delta"], rows, parts["delta"])

        def play(fmt: str) -> Story:
            table = first if fmt == "delta" else _copy(spark, first, names[fmt], rows, parts[fmt])
            return _play(spark, fmt, names[fmt], table, plot, config, folder, parts[fmt])

        # Side by side: while one table's next step is planned, the other's keeps the cores busy.
        players = ThreadPoolExecutor(len(names))
        try:
            stories = list(players.map(inheritable_thread_target(spark)(play), names))
        finally:
            players.shutdown(wait=False, cancel_futures=True)  # on Ctrl-C Spark stops, and with it what they wait for
    for story in stories:
        _show(story)
    _next_steps(folder, names)


def _prepare(folder: Path) -> Config:
    """A fresh folder with settings of its own; an earlier demo's is replaced, anybody else's is left alone."""
    file = folder / "oreo.toml"
    if folder.exists() and any(folder.iterdir()) and not file.exists():
        raise ConfigError(f"{folder} exists and was not made by `oreo demo`; give another one with --folder")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    file.write_text(SETTINGS.format(folder=folder, blocks=FILES))
    return load_config(str(file))


class _Shares:
    """The whole demo's progress: its tables, each with a building step and its foci, played at the same time."""

    def __init__(self, progress: Progress, chapters: int) -> None:
        self._progress, self._chapters = progress, chapters
        self._done: dict[str, float] = {}

    def of(self, table: str) -> _Share:
        self._done[table] = 0.0
        return _Share(self, table)

    def tell(self, table: str, step: str, chapters: float) -> None:
        self._done[table] = chapters
        self._progress(f"{table}: {step}", sum(self._done.values()) / self._chapters / len(self._done))


class _Share:
    """One table's part of it."""

    def __init__(self, shares: _Shares, table: str) -> None:
        self._shares, self._table, self._chapter, self._title = shares, table, 0, ""

    def chapter(self, number: int, title: str) -> None:
        self._chapter, self._title = number, f"{title}: "
        self._shares.tell(self._table, title, number)

    def __call__(self, step: str, share: float | None = None) -> None:
        self._shares.tell(self._table, f"{self._title}{step}", self._chapter + (share or 0) * 0.9)


def _build(spark: SparkSession, path: str, rows: int, progress: _Share) -> str:
    """Write the Delta table in the order of arrival; returns its name in SQL."""
    progress(f"writing {rows:,} orders")
    orders(spark, rows, FILES).write.format("delta").save(path)
    return f"delta.`{Path(path).absolute()}`"


def _copy(spark: SparkSession, source: str, name: str, rows: int, progress: _Share) -> str:
    """Write the Iceberg table with the same rows in as many files; returns its name in SQL."""
    progress(f"writing {rows:,} orders")
    session = spark.newSession()
    session.conf.set("spark.sql.files.maxPartitionBytes", "4m")  # a task a file, and so a file for each
    session.sql(f"CREATE NAMESPACE IF NOT EXISTS {name.rsplit('.', 1)[0]}")
    session.table(source).writeTo(name).using("iceberg").create()
    return name


def _play(
    spark: SparkSession,
    fmt: str,
    name: str,
    table: str,
    plot: Sequence[Focus],
    config: Config,
    folder: Path,
    progress: _Share,
) -> Story:
    certified = certify(spark.table(table))
    chapters: list[Chapter] = []
    for number, focus in enumerate(plot, 1):
        progress.chapter(number, focus.title)
        log = folder / f"queries-{fmt}-{number}.jsonl"
        # A day after the other until yesterday: history of long ago would be dropped for its age.
        write_history(log, focus, table, datetime.now(UTC) - timedelta(days=len(plot) + 1 - number))
        import_queries(spark, name, [str(log)], config)
        before = scan(spark, table, focus)
        outcome = maintain(spark, name, config, progress=progress)
        after = scan(spark, table, focus) if outcome.decision == "move" else before
        chapters.append(Chapter(focus, outcome, before, after))
    return Story(fmt, name, chapters, certified, certify(spark.table(table), [config.bid_column]))


def _show(story: Story) -> None:
    grid = Grid(title=f"{story.name} ({story.format})", title_justify="left", title_style="bold")
    for heading, justify in (
        ("queries ask for", "left"),
        ("decision", "left"),
        ("files read", "right"),
        ("rows read", "right"),
        ("bytes read", "right"),
    ):
        grid.add_column(heading, justify=justify)  # pyright: ignore[reportArgumentType]
    for chapter in story.chapters:
        plan = chapter.outcome.plan
        decision = f"moved to {plan.layout.describe()}" if plan else f"stayed: {chapter.outcome.reason}"
        grid.add_row(
            Text(chapter.focus.title),
            Text(decision),
            _change(chapter.before.files, chapter.after.files, lambda n: f"{n:.1f}"),
            _change(chapter.before.rows, chapter.after.rows, lambda n: f"{n:,.0f}"),
            _change(chapter.before.bytes, chapter.after.bytes, console.size),
        )
    console.out.print(grid)
    same = "the same rows" if story.rows_before == story.rows_after else "ROWS DIFFER"
    console.out.print(
        f"{story.rows_before.rows:,} rows, checksum {story.rows_before.checksum} before and "
        f"{story.rows_after.checksum} after: {same}\n"
    )


def _change(before: float, after: float, write: Any) -> str:
    return write(before) if before == after else f"{write(before)} → {write(after)}"


def _next_steps(folder: Path, names: dict[str, str]) -> None:
    flag = f"--config {folder}/oreo.toml"
    console.out.print("Files, rows and bytes are a query's, as Spark's scans report them. Try next:")
    for command in (
        f"oreo status {names['delta']} {flag}",
        f"oreo rollback {names['iceberg']} {flag}",
        f"oreo-maintain {names['delta']} --dry-run {flag}",
    ):
        console.out.print(f"  uv run {command}", style="bold", markup=False)
