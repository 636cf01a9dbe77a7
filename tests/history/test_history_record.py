"""Records are one line of JSON, both ways, and a broken line says where it is."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oreo_lakehouse.errors import HistoryError
from oreo_lakehouse.history.exactness import Exactness
from oreo_lakehouse.history.record import QueryRecord
from oreo_lakehouse.predicates.tree import TRUE, And, Compare, In, IsNull, Like, Op
from oreo_lakehouse.predicates.values import Kind

PREDICATES = st.sampled_from(
    [
        TRUE,
        Compare("a", Op.LT, Kind.DECIMAL, Decimal("1.50")),
        And((In("s", Kind.STRING, ("x", "ü\n")), IsNull("b", negated=True), Like("s", "a\\%%"))),
        Compare("t", Op.GE, Kind.TIMESTAMP, 1_700_000_000_000_000),
    ]
)
NUMBERS = st.none() | st.integers(0, 2**62)

RECORDS = st.builds(
    QueryRecord,
    query_id=st.text(min_size=1),
    scan=st.integers(0, 9),
    source=st.sampled_from(["import", "capture"]),
    time_us=st.integers(-(2**50), 2**60),
    status=st.sampled_from(["finished", "failed"]),
    table_uuid=st.uuids().map(str),
    predicate=PREDICATES,
    exactness=st.sampled_from(Exactness),
    reasons=st.lists(st.text(min_size=1), max_size=3).map(tuple),
    table_name=st.text(),
    table_version=NUMBERS,
    time_zone=st.none() | st.just("Europe/Berlin"),
    duration_ms=NUMBERS,
    columns=st.lists(st.text(min_size=1), max_size=3).map(tuple),
    files_read=NUMBERS,
    files_total=NUMBERS,
    bytes_read=NUMBERS,
    sql_hash=st.none() | st.just("ab12"),
    sql=st.none() | st.text(min_size=1),
)


@given(RECORDS)
def test_a_record_survives_its_line(record: QueryRecord) -> None:
    line = record.to_line()
    assert "\n" not in line
    assert QueryRecord.from_line(line) == record
    assert QueryRecord.from_line(line.encode("utf-8", "backslashreplace")) == record


@given(RECORDS)
def test_fields_of_a_newer_version_are_ignored(record: QueryRecord) -> None:
    document = json.loads(record.to_line()) | {"invented_later": [1, 2]}
    assert QueryRecord.from_line(json.dumps(document)) == record


GOOD = json.loads(
    QueryRecord("q", 0, "import", 5, "finished", "u", TRUE, Exactness.EXACT, columns=("a",), duration_ms=3).to_line()
)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("{", "not JSON"),
        ("[" * 5000, "not JSON"),
        ("[]", "not a JSON object"),
        (json.dumps({k: v for k, v in GOOD.items() if k != "time_us"}), "lacks time_us"),
        (json.dumps(GOOD | {"time_us": "5"}), "time_us cannot be a str"),
        (json.dumps(GOOD | {"scan": True}), "scan cannot be a bool"),
        (json.dumps(GOOD | {"columns": ["a", 1]}), "columns cannot be"),
        (json.dumps(GOOD | {"exactness": "perfect"}), "exactness cannot be a str"),
        (json.dumps(GOOD | {"template": '{"not": []}'}), "malformed predicate"),
        (json.dumps(GOOD | {"template": {"constant": True}}), "lacks predicate"),
        (json.dumps(GOOD | {"duration_ms": 1 << 63}), "duration_ms cannot be"),
        (json.dumps({**GOOD, "template": None, "planned": "[]"}), "not a JSON object"),
    ],
)
def test_a_malformed_line_is_an_error_that_names_its_place(line: str, fault: str) -> None:
    with pytest.raises(HistoryError, match=r"line 7 of x\.jsonl") as caught:
        QueryRecord.from_line(line, "line 7 of x.jsonl")
    assert fault in str(caught.value)
