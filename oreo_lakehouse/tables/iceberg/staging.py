"""Stage and verify: rows of pinned files into new files that no snapshot refers to, and back out of them.

Spark's Iceberg source can read a fixed list of file tasks and keep what a write produced, instead of committing it:
the door that Iceberg's own rewrite uses. Both go by a made-up group name, whose dash keeps one that is not registered
from ever being taken for a table.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from oreo_lakehouse.errors import VerificationError
from oreo_lakehouse.jvm import java_class
from oreo_lakehouse.tables.arrange import OVERSIZE, arrange, numbered
from oreo_lakehouse.tables.certificate import certify, observed
from oreo_lakehouse.tables.contract import Staged
from oreo_lakehouse.tables.factpass import FactColumn, chosen, verified
from oreo_lakehouse.tables.filefacts import Verified
from oreo_lakehouse.tables.iceberg.engine import format_version, version_of
from oreo_lakehouse.tables.iceberg.features import bid_metrics_property, is_clustered_by_sort
from oreo_lakehouse.tables.iceberg.schema import columns_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from oreo_lakehouse.tables.contract import RewritePlan
    from oreo_lakehouse.tables.iceberg.engine import Engine

_PAGE = 1 << 20
"""Bytes of a column that Parquet's writer holds before it compresses them: Iceberg counts these in a file's size."""

_SPLIT, _OPEN_COST = 128 << 20, 4 << 20
"""Iceberg's defaults: bytes that one task reads, and what opening a file counts for."""
_SPLITS = 2
"""Tasks a core at least, as far as there are files; what is left over at the end is half as long then."""

_BID_COMMENT = "Block of the row in the table's layout, written by oreo-lakehouse"


@contextmanager
def staged_tasks(engine: Engine, table: Any, tasks: Any, folder: str | None = None) -> Generator[str]:
    """A group name under which Spark reads exactly these tasks and writes, into `folder`, without committing."""
    group = f"oreo-{uuid.uuid4().hex}"
    engine.files.open(table, group, tasks, folder)
    try:
        yield group
    finally:
        engine.files.close(table, group)


def run_folder(table: Any, run_id: str) -> str | None:
    """Where the files of a run go: a folder of its own below the table's data, so that whoever comes after a crash
    knows whose they are. None where the table's own rule decides where files go."""
    properties = table.properties()
    if properties.get("write.location-provider.impl"):
        return None
    keys = ("write.data.path", "write.object-storage.path", "write.folder-storage.path")
    data = next(filter(None, (properties.get(key) for key in keys)), f"{str(table.location()).rstrip('/')}/data")
    return f"{data.rstrip('/')}/oreo-{run_id}"


def sweep(engine: Engine, table: Any, run_id: str) -> int:
    """Delete what a run wrote and no snapshot refers to; see `Table.sweep`."""
    folder = run_folder(table, run_id)
    return 0 if folder is None else int(engine.files.sweep(table, folder))


def read_group(engine: Engine, group: str, tasks: Any) -> DataFrame:
    """The rows of a group's tasks, deletes applied; with format version 3 also their row lineage, as two columns."""
    options = {"scan-task-set-id": group}
    _, size, files, _ = json.loads(engine.files.totals(tasks))
    share = max(size, files * _OPEN_COST) // (_SPLITS * engine.spark.sparkContext.defaultParallelism)
    if share < _SPLIT:  # Iceberg's own size of a split would leave cores without work
        options["split-size"] = str(max(_OPEN_COST, share))
    return engine.spark.read.format("iceberg").options(**options).load(group)


def add_bid_column(engine: Engine, table: Any, bid_column: str) -> None:
    """The BID column and its bounds, in one metadata commit of their own that adds no snapshot."""
    key = bid_metrics_property(bid_column)
    exists = table.schema().findField(bid_column) is not None
    if exists and table.properties().get(key) == "full":
        return
    change = table.newTransaction()
    if not exists:
        integer = java_class(engine.spark, "org.apache.iceberg.types.Types$IntegerType").get()
        change.updateSchema().addColumn(bid_column, integer, _BID_COMMENT).commit()
    change.updateProperties().set(key, "full").commit()
    change.commitTransaction()


def write_staged(engine: Engine, table: Any, plan: RewritePlan, run_id: str) -> Staged:
    """Write the plan's rows into new files.

    Raises:
        VerificationError: the write became visible.
    """
    tasks = engine.files.plan(table, plan.base_version, False)
    if plan.only is not None:
        tasks = engine.files.only(tasks, engine.texts(plan.only))
    sequence = table.snapshot(plan.base_version).sequenceNumber()
    removed = json.loads(engine.swaps.outgoing(table, sequence, format_version(table), tasks))
    exclude = [plan.bid_column] if plan.bid_column else []
    with staged_tasks(engine, table, tasks, run_folder(table, run_id)) as group:
        rows = numbered(read_group(engine, group, tasks), plan.layout, plan.bid_column)
        watched, certificate_read = observed(rows, exclude, f"oreo-{run_id}")
        arranged = arrange(watched, plan.layout, plan.bid_column, plan.partition_columns)
        options = {
            "rewritten-file-scan-task-set-id": group,
            "use-table-distribution-and-ordering": "false",  # a table's own sort order would merge the blocks
            "output-spec-id": str(table.spec().specId()),
            "fanout-enabled": str(not is_clustered_by_sort(engine, table)).lower(),
            "target-file-size-bytes": str(_file_limit(engine, table, plan)),
        }
        arranged.write.format("iceberg").options(**options).mode("append").save(group)
        added = json.loads(engine.swaps.incoming(table, engine.files.written(table, group)))
        certificate = certificate_read()
        written = sum(int(file["record-count"]) for file in added)
        if certificate is None or certificate.rows != written:
            certificate = certify(read_group(engine, group, tasks), exclude)
    staged = Staged(
        layout_id=plan.layout.id,
        run_id=run_id,
        base_version=plan.base_version,
        certificate=certificate,
        paths=tuple(file["file-path"] for file in added),
        rows=written,
        bytes=sum(int(file["file-size-in-bytes"]) for file in added),
        replaced_files=sum("positions" in entry for entry in removed),
        bid_column=plan.bid_column,
        action=plan.action,
        shard=plan.shard,
        added=tuple(added),
        removed=tuple(removed),
    )
    refuse_stray_append(engine, table, staged)
    return staged


def refuse_stray_append(engine: Engine, table: Any, staged: Staged) -> None:
    """Prove that the staged write did not become a commit; strangers' commits meanwhile are nothing to us."""
    table.refresh()
    if version_of(table) != staged.base_version:
        present = engine.files.plan(table, version_of(table), False)
        visible = len(engine.files.only(present, engine.texts(staged.paths)))
        if visible:
            raise VerificationError(
                f"the staged write of run {staged.run_id} became visible as an append of {visible} files, which "
                "doubles rows: roll the table back to the snapshot before it, and report this."
            )


def read_back(
    engine: Engine, table: Any, staged: Staged, columns: Collection[str] | None, pairs: Collection[tuple[str, str]]
) -> Verified:
    """The certificate and the facts of the staged files' rows, from the files themselves.

    Raises:
        VerificationError: their rows differ from the input's.
    """
    tasks = engine.swaps.tasks(table, json.dumps(staged.added), staged.removed[0]["base"]["sequence"])
    able = [FactColumn(c.name, str(c.id), c.kind) for c in columns_of(engine.schema(table))]
    needed = {staged.bid_column, *(name for pair in pairs for name in pair)}
    with staged_tasks(engine, table, tasks) as group:
        rows = read_group(engine, group, tasks)
        # With row lineage, the staged relation has no metadata columns; the reader tells its file all the same.
        file = sf.input_file_name() if format_version(table) >= 3 else sf.col("_file")
        found = verified(rows, file, str, chosen(able, columns, needed), pairs, staged.bid_column)
    if found.certificate != staged.certificate:
        raise VerificationError(
            f"the staged files hold {found.certificate.rows} rows with checksum {found.certificate.checksum}, the "
            f"table's rows were {staged.certificate.rows} with checksum {staged.certificate.checksum}: nothing was "
            "committed."
        )
    return found


def _file_limit(engine: Engine, table: Any, plan: RewritePlan) -> int:
    """Where the writer, as it measures, begins a second file for a block that is larger than its share."""
    columns = int(engine.api.types.TypeUtil.getProjectedIds(table.schema()).size())
    return round(OVERSIZE * plan.table_bytes / max(1, plan.layout.blocks)) + columns * _PAGE
