"""`oreo backtest` on a stranger's Parquet and query log, without a JVM."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from oreo_lakehouse.cli.main import app
from oreo_lakehouse.report.plot import COLOURS


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


def test_what_cannot_be_read_is_counted_shown_and_taken_as_a_full_scan(files: tuple[str, str]) -> None:
    with Path(files[1]).open("a") as log:
        log.write("{torn\n")
    wrong = ["SELECT 1 FROM sales.orders WHERE nothere = 5", "SELECT 1 FROM sales.orders WHERE k = 'x' || v"]
    with Path(files[1]).open("a") as log:
        for number, text in enumerate(wrong):
            log.write(json.dumps({"statement_text": text, "start_time": f"2026-01-02T00:00:0{number}"}) + "\n")
    options = ["backtest", "--rows", files[0], "--queries", files[1], "--policies", "never"]
    done = CliRunner().invoke(app, [*options, "--json"])
    answer = json.loads(done.stdout)
    assert (answer["queries"], answer["unparsed"]) == (302, 3)
    shown = CliRunner().invoke(app, options)
    assert shown.exit_code == 0
    assert "1 lines of the log hold no statement and were left out (first: line 301" in shown.stderr
    for line in ("line 8", "line 302", "line 303"):
        assert line in shown.stderr
    assert "3 of" in shown.output


def test_the_plot_is_a_picture_with_a_line_a_policy(files: tuple[str, str], tmp_path: Path) -> None:
    file = tmp_path / "cost.png"
    options = ["backtest", "--rows", files[0], "--queries", files[1], "--policies", "never,static"]
    assert CliRunner().invoke(app, [*options, "--plot", str(file)]).exit_code == 0
    picture = file.read_bytes()
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", picture[16:24])
    at, packed = 8, b""
    while at < len(picture):
        size, kind = struct.unpack(">I4s", picture[at : at + 8])
        body = picture[at + 8 : at + 8 + size]
        assert zlib.crc32(kind + body) == struct.unpack(">I", picture[at + 8 + size : at + 12 + size])[0]
        packed += body if kind == b"IDAT" else b""
        at += 12 + size
    pixels = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + 3 * width)[:, 1:].reshape(-1, 3)
    painted = {tuple(colour) for colour in np.unique(pixels, axis=0).tolist()}
    assert {tuple(bytes.fromhex(colour[1:])) for colour in COLOURS[:2]} <= painted
    assert tuple(bytes.fromhex(COLOURS[2][1:])) not in painted


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--policies", "magic"], "no policy 'magic'"),
        (["--mode", "fast"], "--mode must be native or bid"),
        (["--table", "elsewhere"], "no query on elsewhere was understood"),
        (["--rows", "nowhere.parquet"], "there is no file nowhere.parquet"),
        (["--queries", "nowhere.jsonl"], "nowhere.jsonl"),
        (["--plot", "cost.gif"], "write a .html, a .svg or a .png file"),
    ],
)
def test_mistakes_are_sentences(files: tuple[str, str], change: list[str], message: str) -> None:
    options = {"--rows": files[0], "--queries": files[1], "--policies": "never"}
    options |= dict(zip(change[::2], change[1::2], strict=True))
    done = CliRunner().invoke(app, ["backtest", *(word for pair in options.items() for word in pair)])
    assert done.exit_code == 2
    assert message in done.stderr
