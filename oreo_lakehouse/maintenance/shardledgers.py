"""The ledgers of a partitioned table: one a shard, and their sum in scans of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.errors import LedgerError
from oreo_lakehouse.maintenance.account import Account, account
from oreo_lakehouse.maintenance.ledger import Ledger, LedgerLine
from oreo_lakehouse.maintenance.ledgerfacts import count
from oreo_lakehouse.maintenance.receipts import Receipt, receipts
from oreo_lakehouse.maintenance.shards import ShardBook, partition_order, shard_folder, shard_id
from oreo_lakehouse.maintenance.story import read_story

if TYPE_CHECKING:
    from oreo_lakehouse.store import Store


@dataclass(frozen=True)
class ShardLedger:
    """What the ledger of one shard tells; its costs are in scans of the shard."""

    id: str
    first: str
    label: str
    rows: int
    """At the last decision; 0 if there was none yet."""
    lines: tuple[LedgerLine, ...]


@dataclass(frozen=True)
class ShardAccount:
    """A shard's account and receipts."""

    label: str
    share: float
    """Of the rows of all shards: what a scan of it weighs."""
    account: Account
    receipts: tuple[Receipt, ...]

    def to_json(self) -> dict[str, Any]:
        bills = [one.to_json() for one in self.receipts]
        return {"shard": self.label, "share": self.share, **self.account.to_json(), "receipts": bills}


@dataclass(frozen=True)
class Total:
    """All shards together, in full scans of the table."""

    spent: float
    queries: float
    rewrite: float
    never: float
    saved: float
    rewrites: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def shard_ledgers(store: Store, table_uuid: str) -> list[ShardLedger]:
    """A ledger a shard, in the order of their partitions; none for a table without shards."""
    found: list[ShardLedger] = []
    for first in sorted(ShardBook(store, table_uuid).firsts(), key=partition_order):
        shard = shard_id(first)
        lines = tuple(Ledger(store, shard_folder(table_uuid, shard)).lines())
        told = [line.facts for line in lines if line.kind == "decision" and line.facts.get("shard")]
        label, rows = (str(told[-1]["shard"]), count(told[-1].get("rows")) or 0) if told else (first, 0)
        found.append(ShardLedger(shard, first, label, rows, lines))
    return found


def busiest(shards: Sequence[ShardLedger]) -> ShardLedger:
    """The one that most was asked of."""
    return max(shards, key=lambda shard: shard.rows * read_story(shard.lines).queries)


def find_shard(shards: Sequence[ShardLedger], wanted: str, table: str) -> ShardLedger:
    """The shard with this label, first partition or id.

    Raises:
        LedgerError: there is none.
    """
    for shard in shards:
        if wanted in (shard.label, shard.first, shard.id):
            return shard
    if not shards:
        raise LedgerError(f"{table} has no shards: it is decided about as a whole")
    raise LedgerError(f"{table} has no shard {wanted!r}; its shards are {', '.join(shard.label for shard in shards)}")


def shard_with_decision(shards: Sequence[ShardLedger], decision: str, table: str) -> ShardLedger:
    """The shard whose ledger has this decision.

    Raises:
        LedgerError: none has it, or several have one that begins so.
    """
    found = [shard for shard in shards if any(line.run.startswith(decision) for line in shard.lines)]
    if len(found) != 1:
        many = f"{len(found)} shards have one" if found else "no shard has one"
        raise LedgerError(f"{many} that begins with {decision!r} among the decisions of {table}: name it with --shard")
    return found[0]


def shard_accounts(shards: Sequence[ShardLedger]) -> list[ShardAccount]:
    """The account of every shard that a run has decided about."""
    rows = max(1, sum(shard.rows for shard in shards))
    stories = [(shard, read_story(shard.lines)) for shard in shards]
    return [
        ShardAccount(shard.label, shard.rows / rows, account(story), tuple(receipts(story)))
        for shard, story in stories
        if story.queries or story.changes
    ]


def total(accounts: Sequence[ShardAccount]) -> Total:
    """The sum, each shard by its weight."""

    def sum_of(costs: Sequence[float]) -> float:
        return sum(one.share * cost for one, cost in zip(accounts, costs, strict=True))

    return Total(
        spent=sum_of([one.account.spent for one in accounts]),
        queries=sum_of([one.account.query_cost for one in accounts]),
        rewrite=sum_of([one.account.rewrite_cost for one in accounts]),
        never=sum_of([one.account.never_cost for one in accounts]),
        saved=sum_of([one.account.saved for one in accounts]),
        rewrites=sum(one.account.rewrites for one in accounts),
    )
