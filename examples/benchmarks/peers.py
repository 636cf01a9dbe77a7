"""The whole cost of keeping a table in shape, against the peers: same rows, same queries, one run, wall-clock.

    uv run --group bench python examples/benchmarks/peers.py
    uv run --group bench python examples/benchmarks/peers.py --format delta --plot peers.svg
    uv run --group bench python examples/benchmarks/peers.py --rows 100000 --queries 200 --every 20 --repeat 1

A stream of queries with shifting focus meets identical copies of a table. "never" leaves its copy alone. Those marked *
are told the future: ZORDER BY, liquid clustering and Iceberg's sort rewrite once, by the best columns for the whole
stream; the oracle rewrites at every shift, by the best ones for what follows. OReO is run every `--period` queries and
knows only what was asked before. One query in `--every` is really run, `--repeat` times in each copy, and stands for
its neighbours by its median; the order of the copies rotates from query to query, and their answers must agree.
Everything is in the system's cache. Rewrites happen once, so their seconds have no spread. Nobody vacuums: storage held
has all replaced files in it.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from contenders import Copy
from measuring import GB, Meter, require, session, told, workshop
from peerstreams import Stream, telemetry_stream, tpch_stream
from peertable import Tally, record, show
from players import Oreo, Player, Seer

from oreo_lakehouse.config import Config
from oreo_lakehouse.pruning.attach import attach
from oreo_lakehouse.report.plot import check_name, write_lines

_BYTES_A_ROW = 70
_COPIES = 20
"""Of the table that a run holds at most for each format, replaced files included; by experience."""


def line_up(
    spark: Any, config: Config, fmt: str, stream: Stream, given: argparse.Namespace, folder: Path
) -> list[Player]:
    """Everybody with a copy of the table."""

    def copy(name: str) -> Copy:
        told(f"{stream.name}, {fmt}: writing the copy of {name}")
        plain = f"{stream.name}_{name}".replace(" ", "_")
        return Copy.make(spark, fmt, plain, stream.source, given.blocks, ())

    def seer(title: str, name: str, kind: str, stretches: Sequence[int] = (0,)) -> Player:
        return Seer(
            title, copy(name), told=True, stream=stream, blocks=given.blocks, kind=kind, stretches=tuple(stretches)
        )

    def oreo(title: str, name: str, mode: str) -> Player:
        own = replace(config, decide=replace(config.decide, mode=mode))
        return Oreo(
            title, copy(name), pruning=mode == "bid", stream=stream, config=own, folder=folder, period=given.period
        )

    # A stream that slides shifts nowhere: there the oracle comes as often as OReO.
    shifts = stream.shifts if len(stream.shifts) > 1 else range(0, len(stream.queries), 2 * given.period)
    players = [Player("never", copy("never"))]
    if fmt == "delta":
        players += [seer("ZORDER BY *", "zorder", "zorder"), seer("liquid *", "liquid", "liquid")]
    else:
        players += [seer("sort *", "sort", "sort"), seer("zorder *", "zorder", "zorder")]
    players.append(seer("oracle *", "oracle", "zorder", shifts))
    return [*players, oreo("OReO", "oreo", "native"), oreo("OReO, pruning", "oreo_pruning", "bid")]


def play(meter: Meter, spark: Any, stream: Stream, players: Sequence[Player], given: argparse.Namespace) -> list[Tally]:
    """The stream from its first query to its last."""
    tallies = [Tally(player, len(stream.queries), given.repeat) for player in players]
    ends = sorted({*range(0, len(stream.queries), given.period), *stream.shifts, len(stream.queries)})
    for query in {query.template: query for query in stream.queries}.values():  # warm up: code is compiled once
        for player in players:
            _ask(meter, spark, player, query.sql(player.copy.name))
    turn = 0
    for start, end in itertools.pairwise(ends):
        for player in _rotated(players, turn):
            told(f"{stream.name}, {player.copy.format}: query {start:,} of {ends[-1]:,}, {player.name}")
            player.before(start)
        picked = list(range(start, end, given.every)) or [start]
        for number in picked:
            turn += 1
            answers: set[Any] = set()
            for tally in _rotated(tallies, turn):
                query = stream.queries[number].sql(tally.player.copy.name)
                runs = [_ask(meter, spark, tally.player, query) for _ in range(given.repeat)]
                answers |= {answer for answer, _ in runs}
                tally.add(start, end, len(picked), [measured for _, measured in runs])
            if len(answers) != 1:
                raise SystemExit(f"the copies answer differently: {stream.queries[number].sql('t')}: {answers}")
    return tallies


def _rotated(items: Sequence[Any], by: int) -> list[Any]:
    at = by % len(items)
    return [*items[at:], *items[:at]]


def _ask(meter: Meter, spark: Any, player: Player, query: str) -> tuple[Any, Any]:
    spark.conf.set("spark.oreo.pruning", str(player.pruning).lower())
    rows, measured = meter.measure(lambda: spark.sql(query).collect(), collect=False)
    return tuple(rows), measured


def main() -> None:
    given = _options()
    if given.plot:
        check_name(given.plot)
    formats = ("delta", "iceberg") if given.format == "both" else (given.format,)
    makers: dict[str, Callable[[], Stream]] = {
        "tpch": lambda: tpch_stream(given.folder, given.rows, given.queries, given.pieces, given.seed),
        "telemetry": lambda: telemetry_stream(given.folder, given.rows, given.queries, given.seed),
    }
    given.folder.mkdir(parents=True, exist_ok=True)
    size = given.rows * _BYTES_A_ROW / GB
    records: list[dict[str, Any]] = []
    curves: dict[str, np.ndarray] = {}
    with workshop() as folder:
        require(_COPIES * size, float(given.memory.rstrip("gG")) + 2 * size + 1, folder)
        require(3 * size, 0, given.folder)
        chosen = [makers[name]() for name in (makers if given.data == "both" else [given.data])]
        flags = {
            "decide.alpha": given.alpha,
            "decide.window": given.window,
            "layout.blocks": given.blocks,
            "layout.sample_rows": max(1000 * given.blocks, 20_000),
        }
        with session(folder, given.master, given.memory, flags) as (spark, config):
            attach(spark, config, capture=False)
            meter = Meter(spark)
            for stream in chosen:
                for fmt in formats:
                    players = line_up(spark, config, fmt, stream, given, folder)
                    tallies = play(meter, spark, stream, players, given)
                    records.append(record(stream, fmt, given, tallies))
                    curves |= {f"{stream.name}/{fmt}/{tally.player.name}": tally.cumulative() for tally in tallies}
                    if not given.json:
                        show(records[-1])
                    for player in players:
                        player.copy.drop()
    if given.plot:
        draw(given.plot, curves)
    if given.json:
        print(json.dumps(records))


def draw(file: Path, curves: dict[str, np.ndarray]) -> None:
    """One picture for each stream and format; with several, their names go into the files'."""
    groups = list(dict.fromkeys(name.rpartition("/")[0] for name in curves))
    for group in groups:
        made = file if len(groups) == 1 else file.with_stem(f"{file.stem}-{group.replace('/', '-')}")
        lines = {name.rpartition("/")[2]: curve for name, curve in curves.items() if name.startswith(f"{group}/")}
        data, fmt = group.split("/")
        write_lines(made, f"Seconds of queries, rewrites and deciding: {data} on {fmt}", "queries", lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=2_000)
    parser.add_argument("--format", choices=["delta", "iceberg", "both"], default="both")
    parser.add_argument("--data", choices=["tpch", "telemetry", "both"], default="tpch")
    parser.add_argument("--pieces", type=int, default=5, help="times that the focus is another")
    parser.add_argument("--every", type=int, default=25, help="one query of so many is really run")
    parser.add_argument("--repeat", type=int, default=3, help="times that it is run")
    parser.add_argument("--period", type=int, default=100, help="queries between two runs of OReO")
    parser.add_argument("--window", type=int, default=100, help="decide.window of OReO")
    parser.add_argument("--alpha", type=float, default=0.0, help="decide.alpha of OReO; 0 calibrates it first")
    parser.add_argument("--blocks", type=int, default=32)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--memory", default="4g", help="of Spark's driver")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("oreo-benchmarks"), help="where generated rows are kept")
    parser.add_argument("--plot", type=Path, help="a .svg, .html or .png file for the cumulative seconds")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
