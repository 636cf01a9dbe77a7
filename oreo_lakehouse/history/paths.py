"""How users name tables: by a path or by a name in SQL; one rule for logs, commands and plans."""

from __future__ import annotations

import re


def looks_like_path(name: str) -> bool:
    """Whether a name is a path and no name in SQL; what begins like a path is one, whatever else it has in it.

    >>> [looks_like_path(name) for name in ("/data/odd`name", "s3://b/t", "./t", "db.t", "delta.`/data/t`")]
    [True, True, True, False, False]
    """
    begins = re.match(r"([a-z][a-z0-9+.-]*:)?/|\.\.?/", name, re.IGNORECASE)
    return begins is not None or ("`" not in name and ("/" in name or name.startswith(".")))
