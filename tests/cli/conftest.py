"""A small table of each format with a query log, and the commands run in this process on the shared session."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from oreo_lakehouse.cli.main import app
from oreo_lakehouse.cli.maintain import app as maintain_app

ROWS, FILES, BLOCKS = 8_000, 8, 8
SETTINGS = """
store = "{store}"
[layout]
blocks = {blocks}
[decide]
alpha = 4
window = 20
"""


@dataclass(frozen=True)
class Shop:
    """A table whose rows arrive in the order of `id`, while its queries ask for `k`."""

    format: str
    name: str
    folder: Path
    config: Path

    def log(self, count: int = 60, column: str = "k", start: float = 0, name: str = "log.jsonl") -> Path:
        file = self.folder / name
        first = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=start)
        with file.open("w") as out:
            for i in range(count):
                low = (i * 37) % 900
                text = f"SELECT count(*) FROM {self.name} WHERE {column} BETWEEN {low} AND {low + 50}"
                entry = {"statement_text": text, "start_time": (first + timedelta(minutes=i)).isoformat()}
                out.write(json.dumps(entry) + "\n")
        return file

    def ask(self, day: int = 0, column: str = "k") -> None:
        """Import a log of that day."""
        done = self.oreo("history", "import", self.name, str(self.log(60, column, day, f"log{day}.jsonl")))
        assert done.exit_code == 0, done.output

    def oreo(self, *arguments: str) -> Result:
        return CliRunner().invoke(app, [*arguments, "--config", str(self.config)])

    def maintain(self, *arguments: str) -> Result:
        return CliRunner().invoke(maintain_app, [self.name, *arguments, "--config", str(self.config)])

    def maintained(self) -> dict[str, Any]:
        """Run `oreo-maintain --json` and take its one line apart."""
        done = self.maintain("--json")
        assert done.exit_code == 0, done.output
        (line,) = done.stdout.splitlines()
        return json.loads(line)


@pytest.fixture(params=["delta", "iceberg"])
def shop(request: pytest.FixtureRequest, spark: Any, place: Any) -> Shop:
    fmt = request.param
    name = f"{place.delta}.shop" if fmt == "delta" else f"{place.iceberg}.shop"
    rows = spark.range(0, ROWS, 1, FILES).selectExpr(
        "id", "cast(pmod(xxhash64(id), 1000) AS int) AS k", "concat('name', id) AS s", "cast(id AS double) AS d"
    )
    rows.writeTo(name).using(fmt).create()
    config = place.folder / "oreo.toml"
    config.write_text(SETTINGS.format(store=place.folder / "store", blocks=BLOCKS))
    return Shop(fmt, name, place.folder, config)
