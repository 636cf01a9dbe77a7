"""OReO for lakehouses: decides online when to change a table's layout, and to which one, and commits it safely.

    import oreo_lakehouse as oreo

    spark = oreo.spark_session()
    oreo.import_queries(spark, "db.orders", ["queries.jsonl"])
    outcome = oreo.maintain(spark, "db.orders")
    print(outcome.decision, outcome.reason)
    oreo.attach(spark)  # from here on queries are recorded, and skip files by what the layout knows of them

Everything listed in `__all__` is public; the rooms behind it may change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oreo_lakehouse.config import Config, load_config
    from oreo_lakehouse.errors import OreoError
    from oreo_lakehouse.history.capture import Capture, capture
    from oreo_lakehouse.maintenance.hook import Hook, after_optimize
    from oreo_lakehouse.maintenance.intake import import_queries
    from oreo_lakehouse.maintenance.maintain import maintain
    from oreo_lakehouse.maintenance.options import RunOptions
    from oreo_lakehouse.maintenance.outcome import Outcome
    from oreo_lakehouse.maintenance.rollback import RolledBack, rollback
    from oreo_lakehouse.maintenance.status import TableStatus, status
    from oreo_lakehouse.pruning.attach import attach, detach
    from oreo_lakehouse.pruning.bidfilter import BidFilter, bid_filter
    from oreo_lakehouse.session import spark_session

__all__ = [
    "BidFilter",
    "Capture",
    "Config",
    "Hook",
    "OreoError",
    "Outcome",
    "RolledBack",
    "RunOptions",
    "TableStatus",
    "after_optimize",
    "attach",
    "bid_filter",
    "capture",
    "detach",
    "import_queries",
    "load_config",
    "maintain",
    "rollback",
    "spark_session",
    "status",
]

_HOMES = {
    "BidFilter": "pruning.bidfilter",
    "Capture": "history.capture",
    "Config": "config",
    "Hook": "maintenance.hook",
    "OreoError": "errors",
    "Outcome": "maintenance.outcome",
    "RolledBack": "maintenance.rollback",
    "RunOptions": "maintenance.options",
    "TableStatus": "maintenance.status",
    "after_optimize": "maintenance.hook",
    "attach": "pruning.attach",
    "bid_filter": "pruning.bidfilter",
    "capture": "history.capture",
    "detach": "pruning.attach",
    "import_queries": "maintenance.intake",
    "load_config": "config",
    "maintain": "maintenance.maintain",
    "rollback": "maintenance.rollback",
    "spark_session": "session",
    "status": "maintenance.status",
}


def __getattr__(name: str) -> Any:
    """Public names are loaded when first used: importing the package must not import Spark."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
