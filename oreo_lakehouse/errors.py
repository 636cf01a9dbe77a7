"""Every error that this package raises for a user to read, and the exit code each one ends a command with.

    OreoError                     could not run (exit 2)
    ├── ConfigError               a setting is unknown, malformed or contradicts another
    ├── SetupError                Java, Spark or a catalog is missing, of a wrong version, or cannot start
    ├── TableError                something is wrong with the table that was named
    │   ├── TableNotFoundError    no such table, path or catalog
    │   ├── NotATableError        it exists, but is a view, a plain folder of files, …
    │   └── UnsupportedTableError the table has a feature that we refuse to rewrite
    ├── HistoryError              query history is missing or cannot be read
    ├── StoreError                state under the store root cannot be read or written
    ├── LedgerError               the ledger has no such decision, or nothing to tell yet
    ├── VerificationError         staged rows differ from the table's rows; nothing was committed
    ├── RollbackError             a layout cannot be undone; the message says why and names the fallback
    ├── ConflictError             somebody else changed the table or holds its lock: retry later (exit 1)
    └── UnknownOutcomeError       a commit may or may not have landed; the next run finds out (exit 3)

A message names the problem, the place and the way out. Adapters raise these `from` the engine's own error, so a log
keeps the cause while the user reads a sentence.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command's exit status means; printed by `--help` and asserted by tests."""

    DONE = 0
    """Done, or nothing to do."""
    CONFLICT = 1
    """Somebody else was faster; nothing is broken, run again later."""
    CANNOT_RUN = 2
    """The command could not run; the message says why."""
    UNKNOWN = 3
    """A commit's outcome is not known; the next run finds out by itself."""


class OreoError(Exception):
    """Root of all errors meant for a user's eyes."""

    exit_code: ExitCode = ExitCode.CANNOT_RUN


class ConfigError(OreoError):
    """A setting is unknown, malformed or contradicts another."""


class SetupError(OreoError):
    """Java, Spark or a catalog is missing, of a wrong version, or cannot start."""


class TableError(OreoError):
    """Something is wrong with the table that was named."""


class TableNotFoundError(TableError):
    """No such table, path or catalog."""


class NotATableError(TableError):
    """It exists, but it is not a Delta or Iceberg table."""


class UnsupportedTableError(TableError):
    """The table has a feature that we refuse to rewrite."""


class HistoryError(OreoError):
    """Query history is missing or cannot be read."""


class StoreError(OreoError):
    """State under the store root cannot be read or written."""


class LedgerError(OreoError):
    """The ledger has no such decision, or nothing to tell yet."""


class VerificationError(OreoError):
    """Staged rows differ from the table's rows; nothing was committed."""


class RollbackError(OreoError):
    """A layout cannot be undone; the message says why and names the fallback."""


class ConflictError(OreoError):
    """Somebody else changed the table or holds its lock; run again later."""

    exit_code = ExitCode.CONFLICT


class UnknownOutcomeError(OreoError):
    """A commit may or may not have landed; the next run finds out."""

    exit_code = ExitCode.UNKNOWN


def was_interrupted(error: BaseException | None) -> bool:
    """Whether it is a Ctrl-C, or what tidying up after one ran into."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None
