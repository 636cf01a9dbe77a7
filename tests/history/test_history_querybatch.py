"""Batches made of columns say what their records say, and damage in them is never taken for a condition."""

from __future__ import annotations

import json
import logging
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oreo_lakehouse.errors import HistoryError, StoreError
from oreo_lakehouse.history.exactness import Exactness
from oreo_lakehouse.history.querybatch import QueryBatch
from oreo_lakehouse.history.querycolumns import Templates, records_of_lines, table_of_lines
from oreo_lakehouse.history.record import QueryRecord
from oreo_lakehouse.history.templates import Template, split
from oreo_lakehouse.predicates.tree import (
    TRUE,
    And,
    Compare,
    CompareColumns,
    Constant,
    In,
    IsNull,
    Like,
    Op,
    Or,
    Predicate,
)
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.predicates.workload import Workload

INTEGERS = st.integers(-(2**70), 2**70) | st.integers(-5, 5)
LEAVES = st.one_of(
    st.builds(Compare, st.sampled_from("ab"), st.sampled_from(Op), st.just(Kind.INTEGER), INTEGERS),
    st.builds(Compare, st.just("f"), st.sampled_from(Op), st.just(Kind.FLOAT), st.floats() | st.just(5.0)),
    st.builds(Compare, st.just("m"), st.sampled_from(Op), st.just(Kind.DECIMAL), st.decimals(-99, 99, places=2)),
    st.builds(Compare, st.just("t"), st.sampled_from(Op), st.just(Kind.BOOLEAN), st.booleans()),
    st.builds(Compare, st.just("y"), st.sampled_from(Op), st.just(Kind.BINARY), st.binary(max_size=3)),
    st.builds(
        In,
        st.just("s"),
        st.just(Kind.STRING),
        st.lists(st.text(max_size=2), min_size=1, max_size=5, unique=True).map(lambda v: tuple(sorted(v))),
        st.booleans(),
    ),
    st.builds(Like, st.just("s"), st.sampled_from(["a%", "%a", "a", "a_"]), st.booleans()),
    st.builds(IsNull, st.sampled_from("ab"), st.booleans()),
    st.just(CompareColumns("a", Op.LT, "b")),
    st.builds(Constant, st.booleans()),
)
PREDICATES = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(And, st.lists(inner, min_size=2, max_size=3).map(tuple))
        | st.builds(Or, st.lists(inner, min_size=2, max_size=3).map(tuple))
    ),
    max_leaves=5,
)


def record(number: int, predicate: Predicate, **more: object) -> QueryRecord:
    fields = {"query_id": f"q{number:03d}", "scan": 0, "source": "import", "time_us": number, "status": "finished"}
    return QueryRecord(**(fields | {"table_uuid": "u", "predicate": predicate, "exactness": Exactness.EXACT} | more))  # type: ignore[arg-type]


def same(left: Predicate, right: Predicate) -> bool:
    return repr(left) == repr(right)  # NaN is not equal to itself


@given(PREDICATES)
def test_a_predicate_survives_being_taken_apart(predicate: Predicate) -> None:
    template, literals = split(predicate)
    assert same(Template(template).predicate(literals), predicate)


@settings(max_examples=40, deadline=None)
@given(st.lists(PREDICATES, max_size=12), st.integers(1, 3))
def test_the_workload_of_a_batch_is_that_of_its_predicates(predicates: list[Predicate], times: int) -> None:
    batch = QueryBatch.of([record(n, predicate) for n, predicate in enumerate(predicates * times)])
    assert all(map(same, batch.predicates(), predicates * times))
    ours, plain = batch.workload(), Workload.of(batch.predicates())
    assert len(ours) == len(plain) == len(predicates) * times
    for number in range(len(plain)):
        mine, other = ours.group_of(number), plain.group_of(number)
        assert mine.shape == other.shape
        at, there = (int(np.flatnonzero(group.queries == number)[0]) for group in (mine, other))
        for left, right in zip(ours.values(mine), plain.values(other), strict=True):
            assert repr(left[at]) == repr(right[there])


def test_a_batch_is_a_sequence_of_its_records() -> None:
    records = [record(n, Compare("a", Op.LT, Kind.INTEGER, n), reasons=("x",) * (n % 2)) for n in range(25)]
    batch = QueryBatch.of(records)
    assert batch == records
    assert [*batch] == records
    assert batch[3] == records[3]
    assert batch[-1] == records[-1]
    assert batch[5:9] == records[5:9]
    assert batch[::-5] == records[::-5]
    assert batch != records[:-1]
    assert QueryBatch.of([]) == []
    with pytest.raises(IndexError):
        batch[25]


@pytest.mark.parametrize("literals", ["[5", "[]", "[5,6]", '["5"]', "{}", "[null]", "[" * 9999])
def test_damaged_literals_count_as_reading_everything(literals: str, caplog: pytest.LogCaptureFixture) -> None:
    template = Template(split(Compare("a", Op.LT, Kind.INTEGER, 5))[0])
    with caplog.at_level(logging.WARNING):
        assert template.predicate(literals) == TRUE
        template.predicate(literals)
    assert caplog.text.count("count as reading everything") == 1
    assert template.slots([literals]) is None


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"not":[]}', '{"compare":["a"]}', '{"compare":["a","<","other"]}', '{"in":["a"]}', "[" * 9999],
)
def test_what_is_no_template_is_refused(text: str) -> None:
    with pytest.raises(StoreError, match="malformed predicate"):
        Template(text)


def test_arrow_and_the_plain_reader_read_the_same_lines() -> None:
    odd = "half \ud800 and ü"
    records = [
        record(1, Compare("s", Op.EQ, Kind.STRING, odd), sql="SELECT 1", columns=("a", "ü"), duration_ms=3),
        record(2, In("m", Kind.DECIMAL, (Decimal("1.50"), Decimal(2))), table_name="t", time_zone="UTC"),
    ]
    filters = [["EqualTo", ["column", "a", "int"], ["literal", "5", "int"]]]
    captured = {"scan": 0, "query_id": "c", "source": "capture", "time_us": 3, "status": "finished", "table_uuid": "u"}
    planned = json.dumps(captured | {"planned": json.dumps({"filters": filters, "lost": ["a subquery"]})})
    content = "\n".join([*(r.to_line() for r in records), planned, ""]).encode("utf-8", "backslashreplace")
    templates = Templates()
    batch = QueryBatch.joined([templates.rows(table_of_lines(content, "x"), "x")], templates)
    assert batch == records_of_lines(content, "x")
    assert batch[0].predicate == records[0].predicate
    assert (batch[2].predicate, batch[2].exactness) == (Compare("a", Op.EQ, Kind.INTEGER, 5), Exactness.RELAXED)
    with pytest.raises(HistoryError, match="line 2 of x"):
        table_of_lines(content.replace(b'"time_us":2', b'"time_us":"2"'), "x")
