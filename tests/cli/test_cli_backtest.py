"""`oreo backtest` on a stranger's Parquet and query log, without a JVM."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from oreo_lakehouse.cli.main import app


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    draw = np.random.default_rng(3)
    rows = pa.table({"id": np.arange(4000), "k": draw.integers(0, 1000, 4000), "v": draw.random(4000)})
    pq.write_table(rows, tmp_path / "rows.parquet")
    with (tmp_path / "log.jsonl").open("w") as log:
        for i in range(300):
            low = int(draw.integers(0, 950))
            condition = (
                f"k BETWEEN {low} AND {low + 20}" if i < 150 else f"v > {low / 1000} AND v < {low / 1000 + 0.02}"
            )
            text = f"SELECT sum(v) FROM sales.orders AS o WHERE {condition}" if i != 7 else "SELEC nonsense"
            log.write(
                json.dumps({"statement_text": text, "start_time": f"2026-01-01T{i // 60:02d}:{i % 60:02d}:00"}) + "\n"
            )
    return str(tmp_path / "rows.parquet"), str(tmp_path / "log.jsonl")


def test_it_prices_every_policy_and_starts_no_jvm(files: tuple[str, str], tmp_path: Path) -> None:
    command = [str(Path(sys.executable).parent / "oreo"), "backtest", "--rows", files[0], "--queries", files[1]]
    command += ["--alpha", "10", "--blocks", "8", "--json", "--plot", str(tmp_path / "cost.html")]
    environ = {**os.environ, "JAVA_HOME": "/nowhere"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert (answer["queries"], answer["unparsed"]) == (300, 1)
    names = {"oreo", "paper", "never", "static", "greedy", "regret", "mts-optimal", "offline-optimal", "optimum"}
    assert set(answer["policies"]) == names
    for costs in answer["policies"].values():
        assert set(costs) == {"query", "movement", "total", "moves", "states"}
        assert costs["total"] == pytest.approx(costs["query"] + costs["movement"])
        assert costs["total"] >= answer["policies"]["optimum"]["total"] - 1e-6
    assert answer["policies"]["never"]["total"] > 2 * answer["policies"]["oreo"]["total"]
    page = (tmp_path / "cost.html").read_text()
    assert page.count("<polyline") == len(names)


def test_the_table_for_people_names_what_was_not_understood(files: tuple[str, str]) -> None:
    options = ["backtest", "--rows", files[0], "--queries", files[1], "--policies", "never,oreo", "--alpha", "10"]
    done = CliRunner().invoke(app, options)
    assert done.exit_code == 0, done.output
    assert "line 8" in done.stderr
    assert "would have saved" in done.stdout


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--policies", "magic"], "no policy 'magic'"),
        (["--mode", "fast"], "--mode must be native or bid"),
        (["--table", "elsewhere"], "no query on elsewhere was understood"),
        (["--rows", "nowhere.parquet"], "there is no file nowhere.parquet"),
        (["--queries", "nowhere.jsonl"], "nowhere.jsonl"),
        (["--plot", "cost.png"], "write a .html or a .svg file"),
    ],
)
def test_mistakes_are_sentences(files: tuple[str, str], change: list[str], message: str) -> None:
    options = {"--rows": files[0], "--queries": files[1], "--policies": "never"}
    options |= dict(zip(change[::2], change[1::2], strict=True))
    done = CliRunner().invoke(app, ["backtest", *(word for pair in options.items() for word in pair)])
    assert done.exit_code == 2
    assert message in done.stderr
