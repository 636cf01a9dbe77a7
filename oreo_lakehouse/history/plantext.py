"""Filters as Spark's plans print them, the one form in which event logs keep them.

    [isnotnull(id#1L), (id#1L < 50), (d#2 >= 2024-02-01), name#3 IN (a,b)]

Texts are printed without quotes, so a literal may look like anything. Therefore, as soon as a text literal or something
that is not understood occurs, the filters count only if both lists that Spark prints, data filters and pushed filters,
are understood wholly and say the same: no item is well formed in both grammars, so no literal can pass for one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal

from oreo_lakehouse.history.casts import as_time
from oreo_lakehouse.history.clock import Clock, parse_date
from oreo_lakehouse.history.literal import NotUnderstood, certain
from oreo_lakehouse.predicates.tree import And, Compare, In, IsNull, Like, Not, Op, Or, Predicate, Unknown
from oreo_lakehouse.predicates.values import Kind, Value

DOUBT = Unknown("a filter whose printed form is ambiguous")
_LITERALS = {
    Kind.INTEGER: r"-?\d{1,19}(?![\w.])",
    Kind.DECIMAL: r"-?\d{1,38}(?:\.\d{1,38})?(?![\w.])",
    Kind.FLOAT: r"-?\d+\.\d+(?:E-?\d+)?(?![\w.])",
    Kind.BOOLEAN: r"(?:true|false)(?!\w)",
    Kind.DATE: r"\d{4}-\d{2}-\d{2}(?![\w.: -])",
    Kind.TIMESTAMP: r"\d{4}-\d{2}-\d{2}(?: \d{2}:\d{2}:\d{2}(?:\.\d{1,6})?)?(?![\w.:-])",
    Kind.TIMESTAMP_NTZ: r"\d{4}-\d{2}-\d{2}(?: \d{2}:\d{2}:\d{2}(?:\.\d{1,6})?)?(?![\w.:-])",
    Kind.STRING: r"[A-Za-z0-9_-]+(?=[,)\]])",
}
_PUSHED_OPS = {
    "EqualTo": Op.EQ,
    "LessThan": Op.LT,
    "LessThanOrEqual": Op.LE,
    "GreaterThan": Op.GT,
    "GreaterThanOrEqual": Op.GE,
}


class _Reader:
    """A cursor over one printed list, for a table of known columns."""

    def __init__(self, text: str, schema: Mapping[str, Kind], clock: Clock) -> None:
        self._text = text
        self._at = 0
        self._names = {name.lower(): name for name in schema}
        self._schema = schema
        self._clock = clock
        self.texts = False
        """Whether a text literal, or something that may hold one, was passed."""

    def items(self, item: Callable[[], Predicate]) -> list[Predicate]:
        """A list in brackets. An item that is not understood is passed over as well as can be."""
        self._expect(r"\[")
        out: list[Predicate] = []
        while not self._take(r"\]$"):
            if out:
                self._expect(", ")
            start = self._at
            try:
                out.append(item())
            except NotUnderstood:
                self._at = start
                self._skip()
                self.texts = True
                out.append(DOUBT)
        return out

    def filter(self) -> Predicate:
        """An item of `DataFilters` and `PartitionFilters`."""
        if self._take("NOT "):
            return Not(self.filter())
        if found := self._take(r"(isnotnull|isnull)\("):
            column = self._column()
            self._expect(r"\)")
            return IsNull(column, negated=found[1] == "isnotnull")
        if self._take(r"StartsWith\("):
            column = self._column()
            self._expect(", ")
            prefix = str(self._literal(column))
            self._expect(r"\)")
            return self._prefix(column, prefix)
        if self._take(r"\((?=\(|NOT |is|StartsWith|\w+#\d+L? (?:IN|INSET|AND|OR) |\w+#\d+L?\))"):
            parts = [self.filter()]
            joint = self._expect(" (AND|OR) ")[1]
            parts.append(self.filter())
            self._expect(r"\)")
            return And(tuple(parts)) if joint == "AND" else Or(tuple(parts))
        if self._take(r"\("):
            column = self._column()
            op = Op(self._expect(" (<=|>=|=|<|>) ")[1])
            value = self._literal(column)
            self._expect(r"\)")
            return Compare(column, op, self._schema[column], value)
        column = self._column()
        if self._take(r" IN \("):
            values = self._values(column, ",")
            self._expect(r"\)")
            return values
        if self._take(" INSET "):
            if self._schema[column] is not Kind.INTEGER:
                raise NotUnderstood("INSET")  # its commas are those of the list around it
            return self._values(column, r", (?=-?\d)")
        if self._schema[column] is Kind.BOOLEAN:
            return Compare(column, Op.EQ, Kind.BOOLEAN, True)
        raise NotUnderstood("a bare column")

    def pushed(self) -> Predicate:
        """An item of `PushedFilters`."""
        self._take(r"\*")
        kind = self._expect(r"([A-Za-z]+)\(")[1]
        if kind in ("And", "Or", "Not"):
            parts = [self.pushed()]
            if kind != "Not":
                self._expect(",")
                parts.append(self.pushed())
            result: Predicate = (
                Not(parts[0]) if kind == "Not" else And(tuple(parts)) if kind == "And" else Or(tuple(parts))
            )
        else:
            column = self._column(numbered=False)
            if kind in ("IsNull", "IsNotNull"):
                result = IsNull(column, negated=kind == "IsNotNull")
            elif kind == "In":
                self._expect(r", \[")
                result = self._values(column, ",")
                self._expect(r"\]")
            else:
                self._expect(",")
                value = self._literal(column)
                if kind == "StringStartsWith":
                    result = self._prefix(column, str(value))
                elif kind in _PUSHED_OPS:
                    result = Compare(column, _PUSHED_OPS[kind], self._schema[column], value)
                else:
                    raise NotUnderstood(kind)
        self._expect(r"\)")
        return result

    def _prefix(self, column: str, text: str) -> Predicate:
        return Like(column, text.replace("_", "\\_") + "%")

    def _values(self, column: str, comma: str) -> Predicate:
        values = {self._literal(column)}
        while self._take(comma):
            values.add(self._literal(column))
        return In(column, self._schema[column], tuple(sorted(values)))  # pyright: ignore[reportArgumentType]

    def _column(self, numbered: bool = True) -> str:
        found = self._expect(r"(\w+)#\d+L?" if numbered else r"(\w+)(?=[,)])")
        name = self._names.get(found[1].lower())
        if name is None or self._schema[name] not in _LITERALS:
            raise NotUnderstood("a column of another table or type")
        return name

    def _literal(self, column: str) -> Value:
        kind = self._schema[column]
        text = self._expect(_LITERALS[kind])[0]
        match kind:
            case Kind.BOOLEAN:
                return text == "true"
            case Kind.INTEGER:
                return int(text)
            case Kind.DECIMAL:
                return Decimal(text)
            case Kind.FLOAT:
                return float(text)
            case Kind.DATE:
                return parse_date(text)
            case Kind.TIMESTAMP | Kind.TIMESTAMP_NTZ:
                time = as_time(certain(Kind.STRING, text), kind, self._clock)
                if time.doubt:
                    raise NotUnderstood(time.doubt)
                return time.low
            case _:
                self.texts = True
                return text

    def _skip(self) -> None:
        """To the end of an item, by its parentheses."""
        depth = 0
        while self._at < len(self._text):
            character = self._text[self._at]
            if depth == 0 and (self._text.startswith(", ", self._at) or self._at == len(self._text) - 1):
                return
            depth += (character in "([") - (character in ")]")
            self._at += 1

    def _take(self, pattern: str) -> re.Match[str] | None:
        found = re.compile(pattern).match(self._text, self._at)
        if found:
            self._at = found.end()
        return found

    def _expect(self, pattern: str) -> re.Match[str]:
        found = self._take(pattern)
        if found is None:
            raise NotUnderstood("a filter in an unknown form")
        return found


def read_plan_filters(
    data: str, partition: str, pushed: str, schema: Mapping[str, Kind], time_zone: str | None
) -> Predicate:
    """The parsed predicate behind a scan's printed filters.

    >>> read_plan_filters("[(id#1L < 50)]", "[]", "[LessThan(id,50)]", {"id": Kind.INTEGER}, "UTC")
    And(children=(Compare(column='id', op=<Op.LT: '<'>, kind=<Kind.INTEGER: 'integer'>, value=50),))
    """
    clock = Clock(time_zone)
    return And((*_data(data, pushed, schema, clock), *_partition(partition, schema, clock)))


def _data(text: str, pushed: str, schema: Mapping[str, Kind], clock: Clock) -> list[Predicate]:
    try:
        reader, second = _Reader(text, schema, clock), _Reader(pushed, schema, clock)
        conditions = reader.items(reader.filter)
        if reader.texts:
            witness = second.items(second.pushed)
            if DOUBT in conditions or {*conditions} != {*witness}:
                return [DOUBT]
        return conditions
    except (NotUnderstood, RecursionError):
        return [DOUBT]


def _partition(text: str, schema: Mapping[str, Kind], clock: Clock) -> list[Predicate]:
    try:
        reader = _Reader(text, schema, clock)
        conditions = reader.items(reader.filter)
        return [DOUBT] if reader.texts else conditions
    except (NotUnderstood, RecursionError):
        return [DOUBT]
