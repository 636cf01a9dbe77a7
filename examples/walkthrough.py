"""A week in the life of one table, really run: `uv run python examples/walkthrough.py` writes walkthrough.md.

Every command is run as a user types it (in this process, on one Spark session), and every line of output in the page is
what it printed. Paths are shortened to the walkthrough's folder, nothing else is changed.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from pyspark.sql import SparkSession
from typer.testing import CliRunner

from oreo_lakehouse.cli.demo_data import DAYS, FIRST_DAY, foci, orders, write_history
from oreo_lakehouse.cli.main import app
from oreo_lakehouse.cli.maintain import app as maintain_app
from oreo_lakehouse.config import load_config
from oreo_lakehouse.report import console
from oreo_lakehouse.session import spark_session

PAGE = Path(__file__).with_name("walkthrough.md")
ROWS, FILES, WIDTH = 1_000_000, 24, 118
SETTINGS = """\
store = "store"

[spark]
warehouse = "warehouse"

[layout]
blocks = 24

[decide]
# A rewrite is dear on a real table (80 scans); here a day has only 240 queries, so it counts as less.
alpha = 25
"""


class Walk:
    """Runs commands and writes down what they print."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder = spark, folder
        self._page: list[str] = []

    def say(self, text: str) -> None:
        self._page.append(text)

    def run(self, command: str, *, fails: bool = False) -> None:
        program, *arguments = shlex.split(command)
        done = CliRunner().invoke(maintain_app if program == "oreo-maintain" else app, arguments)
        if (done.exit_code != 0) != fails:
            raise SystemExit(f"{command} ended with {done.exit_code}:\n{done.output}")
        shown = "\n".join(line.rstrip() for line in done.output.replace(f"{self._folder}/", "").splitlines())
        self._page.append(f"```\n$ {command}\n{shown}\n```")

    def sql(self, statement: str) -> None:
        self._spark.sql(statement)
        self._page.append(f"```sql\n{statement}\n```")

    def done(self, what: str, do: Callable[[], None]) -> None:
        do()
        self._page.append(what)

    def write(self) -> None:
        PAGE.write_text("\n\n".join(self._page) + "\n")


def main() -> None:
    console.out.width = console.err.width = WIDTH
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        os.chdir(folder)
        (folder / "oreo.toml").write_text(SETTINGS)
        spark = spark_session(load_config())
        orders(spark, ROWS, FILES).write.saveAsTable("orders", format="delta")
        days = foci()
        for day, focus in enumerate([days[1], days[1], days[1], days[2], days[2], days[1], days[1]], 1):
            write_history(folder / f"day{day}.jsonl", focus, "orders", FIRST_DAY + timedelta(days=DAYS + day))
        walk = Walk(spark, folder)
        _week(walk, spark)
        walk.write()


def _week(walk: Walk, spark: SparkSession) -> None:
    walk.say(
        "# A week with one table\n\n`orders` is a Delta table of a million orders in 24 files, in the order they "
        "came in. The settings are\n\n```toml\n"
        + SETTINGS
        + "```\n\nEverything below was run, and printed what stands here: "
        "`uv run python examples/walkthrough.py` does it again."
    )
    walk.say("## Monday: what is asked of it, and would it pay?\n\nYesterday's queries come from a log.")
    walk.run("oreo history import orders day1.jsonl")
    walk.run("oreo history orders")
    walk.say("A dry run shows exactly what would happen, and writes nothing.")
    walk.run("oreo-maintain orders --dry-run")
    walk.say("Somebody wants to see a few days of decisions before anything is touched. A shadow run records them.")
    walk.run("oreo-maintain orders --shadow")
    walk.say("What does a rewrite really cost here? (The settings say 25; without that line this would count.)")
    walk.run("oreo calibrate orders")
    walk.say("## Tuesday: the first layout")
    walk.run("oreo history import orders day2.jsonl")
    walk.run("oreo-maintain orders --cooldown 6h --max-minutes 30 --budget 20GB")
    walk.run("oreo status orders")
    walk.run("oreo explain orders")
    walk.say("## Wednesday: new rows\n\nA nightly job appends a fortieth of the table, in files of its own.")
    walk.done(
        '```python\nmore.writeTo("orders").append()  # 25,000 orders\n```',
        lambda: orders(spark, ROWS, 40).where("order_id % 40 = 7").writeTo("orders").append(),
    )
    walk.run("oreo history import orders day3.jsonl")
    walk.run("oreo-maintain orders")
    walk.say("## Thursday: people ask for something else\n\nBuyers look at dear goods, and go on with it on Friday.")
    walk.run("oreo history import orders day4.jsonl day5.jsonl")
    walk.run("oreo-maintain orders")
    walk.run("oreo layouts orders")
    walk.run("oreo ledger orders")
    walk.say("## Friday: somebody runs OPTIMIZE")
    walk.sql("OPTIMIZE orders ZORDER BY (customer_id)")
    walk.run("oreo-maintain orders --after-optimize")
    walk.say("## Saturday: the old questions come back")
    walk.run("oreo history import orders day6.jsonl day7.jsonl")
    walk.run("oreo-maintain orders")
    walk.say("## Sunday: looking back\n\nEverything that was decided is in the ledger, and on one page.")
    walk.run("oreo ledger orders")
    walk.run("oreo report orders -o report.html")
    walk.say("A layout can be undone by itself. What cannot is refused, with the reason.")
    walk.run("oreo rollback orders")
    walk.run("oreo rollback orders --to sort-0000", fails=True)
    walk.say("All tables with a history, in one run, with one summary, for the scheduler:")
    walk.run("oreo-maintain --all")


if __name__ == "__main__":
    main()
