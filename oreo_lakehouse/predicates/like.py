"""LIKE as ranges: what a pattern says about the order of strings, which is all that block metadata can answer."""

from __future__ import annotations

from oreo_lakehouse.predicates.tree import And, Compare, IsNull, Like, Op, Or, Predicate
from oreo_lakehouse.predicates.values import Kind

_LAST_CODE_POINT = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


def prefix_of(pattern: str) -> tuple[str, str]:
    """The literal text before the first wildcard, and the rest of the pattern from that wildcard on.

    >>> prefix_of("10\\\\%_a%"), prefix_of("abc")
    (('10%', '_a%'), ('abc', ''))
    """
    text: list[str] = []
    position = 0
    while position < len(pattern) and pattern[position] not in "%_":
        position += pattern[position] == "\\" and position + 1 < len(pattern)
        text.append(pattern[position])
        position += 1
    return "".join(text), pattern[position:]


def after_prefix(prefix: str) -> str | None:
    """The smallest string above every string that starts with `prefix`; None if there is none.

    >>> after_prefix("ab"), after_prefix("\\U0010ffff")
    ('ac', None)
    """
    stem = prefix.rstrip(chr(_LAST_CODE_POINT))
    if not stem:
        return None
    following = ord(stem[-1]) + 1
    return stem[:-1] + chr(_SURROGATES.stop if following in _SURROGATES else following)


def like_as_ranges(like: Like) -> Predicate:
    """The strongest condition on ranges that `like` implies.

    >>> like_as_ranges(Like("a", "x%"))  # doctest: +ELLIPSIS
    And(children=(Compare(column='a', op=<Op.GE: '>='>, ... value='x'), ... op=<Op.LT: '<'>, ... value='y')))
    """
    column = like.column
    prefix, rest = prefix_of(like.pattern)
    if not rest:
        return Compare(column, Op.NE if like.negated else Op.EQ, Kind.STRING, prefix)
    above = after_prefix(prefix) if prefix else None
    if above is None or (like.negated and rest.strip("%")):
        return IsNull(column, negated=True)
    low, high = Compare(column, Op.GE, Kind.STRING, prefix), Compare(column, Op.LT, Kind.STRING, above)
    if not like.negated:
        return And((low, high))
    return Or((Compare(column, Op.LT, Kind.STRING, prefix), Compare(column, Op.GE, Kind.STRING, above)))
