"""What became of the statements of an import."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

MAX_FAULTS = 100
"""Rejected lines that a summary names; all are counted."""


@dataclass
class ImportSummary:
    """What became of the statements that were read."""

    read: int = 0
    """Statements that the files hold, rejected ones included."""
    imported: int = 0
    """Scans of the table that were added to its history."""
    relaxed: int = 0
    """Of these, scans of which some condition was not understood."""
    unknown: int = 0
    """Of these, scans of which nothing was understood."""
    reasons: Counter[str] = field(default_factory=lambda: Counter[str]())
    """Why, by how often."""
    other_tables: int = 0
    """Statements that do not read this table."""
    not_queries: int = 0
    """DDL, DML, CALL: nothing to record."""
    known_before: int = 0
    """Scans that the history had already."""
    rejected: int = 0
    """Statements and lines that could not be read at all."""
    faults: list[str] = field(default_factory=lambda: list[str]())
    """The first of those, with file, line and reason."""

    def reject(self, file: str, line: int, reason: str) -> None:
        """Count a line that could not be read."""
        self.rejected += 1
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(f"{file}, line {line}: {reason}")
