"""What reads our files and other people's logs, each by itself: for hostile content, and without Spark."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from poison import SECRET, damaged, texts, values

from oreo_lakehouse.config import Config
from oreo_lakehouse.history.importing import import_history
from oreo_lakehouse.history.store import HistoryStore
from oreo_lakehouse.history.summary import summarise
from oreo_lakehouse.maintenance.account import account
from oreo_lakehouse.maintenance.alpha import alpha_of
from oreo_lakehouse.maintenance.dossier import kept_layout
from oreo_lakehouse.maintenance.explaining import decisions, explain
from oreo_lakehouse.maintenance.facts import FactStore
from oreo_lakehouse.maintenance.keptblocks import KeptBlocks
from oreo_lakehouse.maintenance.keptsample import KeptSample
from oreo_lakehouse.maintenance.ledger import Ledger
from oreo_lakehouse.maintenance.lock import locked
from oreo_lakehouse.maintenance.receipts import receipts
from oreo_lakehouse.maintenance.registry import known_tables
from oreo_lakehouse.maintenance.shardledgers import shard_ledgers
from oreo_lakehouse.maintenance.state import StateStore
from oreo_lakehouse.maintenance.story import read_story
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.reorganizer.online import OnlineOptimizer
from oreo_lakehouse.store import Store


def _state(store: Store, uuid: str) -> None:
    state, _ = StateStore(store, uuid).load()
    HistoryStore(store, uuid).read_since(state.cursor)
    if state.optimizer is not None:
        OnlineOptimizer.from_json(state.optimizer, Config().decide, Config().layout)


def _ledger(store: Store, uuid: str) -> None:
    lines = Ledger(store, uuid).lines()
    story = read_story(lines)
    account(story), receipts(story)
    alpha_of(0, lines)
    Ledger(store, uuid).last_time()
    for line in decisions(lines):
        explain(lines, line.run, "t")


def _history(store: Store, uuid: str) -> None:
    history = HistoryStore(store, uuid)
    summarise(history)
    for query in history.read_since({})[0]:
        assert query.predicate is not None


def _layouts(store: Store, uuid: str) -> None:
    for entry in store.entries(f"{uuid}/layouts"):
        found = kept_layout(store, uuid, entry.name.removesuffix(".json"))
        if found is not None:
            found.sql(), found.describe()


def _kept(store: Store, uuid: str) -> None:
    blocks = KeptBlocks(store, uuid)
    for name in blocks.names():
        blocks.get(name)
    KeptSample(store, uuid)._kept()


def _facts(store: Store, uuid: str) -> None:
    facts = FactStore(store, uuid)
    facts.load()
    facts.names()
    facts.tidy(["no such file"])


def _lists(store: Store, uuid: str) -> None:
    known_tables(store)
    shard_ledgers(store, uuid)


def _locked(store: Store, uuid: str) -> None:
    for number, ticket in enumerate(
        ("{}", '{"expires": "x"}', '{"expires": 1e400, "pid": [], "host": {}}', "[1]", "[" * 9999)
    ):
        store.create(f"{uuid}/lock/{number:010d}.json", ticket.encode())
    with locked(store, uuid, "t"):
        pass


READERS: tuple[Callable[[Store, str], None], ...] = (
    _state,
    _ledger,
    _history,
    _layouts,
    _kept,
    _facts,
    _lists,
    _locked,
)

SCHEMA = {"id": Kind.INTEGER, "value": Kind.INTEGER, "text": Kind.STRING, "day": Kind.DATE}
STATEMENTS = (
    f"select * from t where text = '{SECRET}' and id < 5",
    f"select count(*) from t a join t b on a.id = b.id where a.text like '{SECRET}%' or b.value in (1, 2)",
    f"with q as (select * from t where value > 3) select * from q where text = '{SECRET}'",
    f"merge into t using s on t.id = s.id when matched then update set text = '{SECRET}'",
    f"delete from t where text = '{SECRET}'; drop table t; select 1",
)


def import_log(folder: Path, draw: random.Random, outside: str, watch: Any) -> str:
    """A log of hostile statements, or a hostile log, into a history of its own; exit code and what was said."""
    watch.on = False
    file = folder / f"log{draw.choice(['.jsonl', '.csv', '', '.parquet', '.json.gz'])}"
    file.write_bytes(_log(draw, outside))
    store = draw.choice(["a", "b"])  # often there already
    watch.on = True
    from oreo_lakehouse.store import LocalStore

    history = HistoryStore(LocalStore(str(folder / "imported")), store)
    kinds = ("auto", "oreo", "databricks", "trino", "snowflake", "eventlog")
    zone = draw.choice([None, "UTC", "../../etc/passwd", "/etc/passwd", "Europe/Berlin", "\0", "x" * 300])
    done = import_history(
        *(history, ["t", "`db`.`t`"], SCHEMA, [file]),
        fmt=draw.choice(kinds),
        dialect=draw.choice(["", "", "spark", "trino", "nothing", "../x", "__class__"]),
        time_zone=zone,
        redacted=draw.choice([(), ("text",)]),
    )
    return f"0 {done}"


def _log(draw: random.Random, outside: str) -> bytes:
    entries = [_entry(draw, outside) for _ in range(draw.choice([1, 5, 20]))]
    form = draw.random()
    if form < 0.5:
        made = b"\n".join(json.dumps(entry).encode() for entry in entries)
    elif form < 0.7:
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow(["statement_text", "start_time", "query_id"])
        writer.writerows([[*map(str, list(entry.values())[:3])] for entry in entries])
        made = out.getvalue().encode("utf-8", "surrogatepass")
    else:
        sink = io.BytesIO()
        texts_ = [str(entry.get("statement_text")).encode("utf-8", "replace").decode() for entry in entries]
        pq.write_table(pa.table({"statement_text": texts_, "start_time": ["2026-01-01"] * len(texts_)}), sink)
        made = sink.getvalue()
    if draw.random() < 0.2:
        made = gzip.compress(made)
    return damaged(made, draw, outside) if draw.random() < 0.5 else made


def _entry(draw: random.Random, outside: str) -> dict[str, Any]:
    statement = draw.choice(STATEMENTS)
    text = draw.choice(texts(outside))
    hostile = [
        statement,
        statement.replace(SECRET, text),
        statement.replace(" t ", f" `{text}` "),
        text,
        "select * from t where " + "(" * draw.choice([50, 5_000]) + "id = 1" + ")" * 50,
        "select * from t where " + " or ".join(f"id = {n}" for n in range(draw.choice([100, 3_000]))),
        "select * from t where id in (" + ",".join(map(str, range(draw.choice([100, 20_000])))) + ")",
        "select "
        + "-" * draw.choice([100, 3_000])
        + "1 from t where not "
        + "not " * draw.choice([10, 1_000])
        + "id = 1",
        f"select * from t where id = {'9' * draw.choice([30, 5_000])} and day = '{text}' and value < 1e99999",
        f"select * from t where text rlike '{'(a+)+' * 20}$' and text like '{'%a' * 2_000}'",
        "select * from " + "(select * from " * draw.choice([20, 300]) + "t" + ")" * draw.choice([20, 300]),
        statement[: draw.randrange(len(statement))],
        statement + ";" * 1_000 + statement,
    ]
    entry = {
        "statement_text": draw.choice(hostile),
        "start_time": draw.choice(
            ["2026-01-01", 1_700_000_000, "2026-01-01T00:00:00+25:00", text, values(outside, draw)]
        ),
        "query_id": draw.choice(["q", text]),
        "dialect": draw.choice(["spark", "mysql", text]),
        "time_zone": draw.choice(["UTC", text]),
        "catalog": text,
    }
    if draw.random() < 0.3:
        entry[draw.choice(list(entry))] = values(outside, draw)
    return entry
