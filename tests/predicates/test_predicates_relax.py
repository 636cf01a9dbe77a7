"""The stored form is implied by the parsed one, holds no NOT and no unknown, and survives JSON."""

import json
import math
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import predicates, rows, truth

from oreo_lakehouse.errors import StoreError
from oreo_lakehouse.predicates.columns import columns_of
from oreo_lakehouse.predicates.jsonform import from_json, to_json, value_from_json, value_to_json
from oreo_lakehouse.predicates.like import after_prefix, prefix_of
from oreo_lakehouse.predicates.relax import MAX_DEPTH, relax
from oreo_lakehouse.predicates.tree import FALSE, TRUE, And, Compare, In, IsNull, Not, Op, Or, Unknown
from oreo_lakehouse.predicates.values import Kind

A = Compare("i", Op.LT, Kind.INTEGER, 1)


def nodes(tree):
    yield tree
    for child in getattr(tree, "children", ()) or ([tree.child] if isinstance(tree, Not) else []):
        yield from nodes(child)


@settings(max_examples=150, deadline=None)
@given(predicates(parsed=True), rows(max_size=8), st.sampled_from([True, False, None]))
def test_where_the_query_is_true_the_stored_predicate_is_true(parsed, data, unknown):
    stored, reasons = relax(parsed)
    assert not any(isinstance(node, Not | Unknown) for node in nodes(stored))
    for row in data:
        if truth(parsed, row, unknown):
            assert truth(stored, row)
    if not reasons:
        exact = relax(Not(Not(parsed)))[0]
        assert exact == stored


@settings(max_examples=80, deadline=None)
@given(predicates(), rows(max_size=8))
def test_without_unknowns_nothing_is_lost(parsed, data):
    stored, reasons = relax(parsed)
    assert reasons == ()
    for row in data:
        assert bool(truth(stored, row)) == bool(truth(parsed, row))
        assert bool(truth(relax(Not(parsed))[0], row)) == (truth(parsed, row) is False)


def test_unknown_disjunct_frees_the_whole_or_and_unknown_conjunct_only_itself():
    assert relax(Or((A, Unknown("x")))) == (TRUE, ("x",))
    assert relax(And((A, Unknown("x"), Unknown("x")))) == (A, ("x",))
    assert relax(Not(And((A, Unknown("x"))))) == (TRUE, ("x",))


def test_empty_and_single_lists_are_simplified():
    assert relax(In("i", Kind.INTEGER, ()))[0] == FALSE
    assert relax(In("i", Kind.INTEGER, (), negated=True))[0] == TRUE
    assert relax(Not(In("i", Kind.INTEGER, (3,))))[0] == Compare("i", Op.NE, Kind.INTEGER, 3)


def test_a_chain_of_thousands_is_flat_and_a_deep_alternation_is_dropped():
    chain = A
    for number in range(5000):
        chain = Or((chain, Compare("i", Op.EQ, Kind.INTEGER, number)))
    assert len(relax(chain)[0].children) == 5001
    deep = A
    for number in range(MAX_DEPTH + 50):
        deep = (And if number % 2 else Or)((deep, Compare("i", Op.EQ, Kind.INTEGER, number)))
    assert relax(deep)[1] == (f"nested deeper than {MAX_DEPTH}",)


@settings(max_examples=80, deadline=None)
@given(predicates())
def test_json_round_trip_through_text(predicate):
    text = json.dumps(to_json(predicate), allow_nan=False)
    assert repr(from_json(json.loads(text))) == repr(predicate)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Kind.FLOAT, math.inf),
        (Kind.DECIMAL, Decimal("-0.10")),
        (Kind.BINARY, b"\x00\xff"),
        (Kind.INTEGER, -(2**63)),
        (Kind.TIMESTAMP, 253402300799999999),
    ],
)
def test_extreme_literals_survive(kind, value):
    assert value_from_json(kind, json.loads(json.dumps(value_to_json(kind, value)))) == value


def deep_document():
    document = {"null": ["a", False]}
    for _ in range(5000):
        document = {"and": [document]}
    return document


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {"and": 1},
        {"nor": []},
        {"compare": ["a", "<", "integer"]},
        {"compare": ["a", "~", "integer", 1]},
        {"compare": ["a", "<", "integer", "1"]},
        {"compare": ["a", "<", "integer", True]},
        {"compare": ["a", "<", "decimal", "NaN"]},
        {"compare": ["a", "<", "binary", "?"]},
        {"compare": [1, "<", "integer", 1]},
        {"in": ["a", 0, "integer", [1]]},
        {"in": ["a", False, "integer", None]},
        {"null": ["a"]},
        {"not": {"null": ["a", False]}},
        {"and": [], "or": []},
        deep_document(),
    ],
)
def test_malformed_documents_are_named(document):
    with pytest.raises(StoreError, match="malformed predicate"):
        from_json(document)


def test_columns_and_prefixes():
    assert columns_of(And((A, Not(Or((IsNull("s"), Unknown("x"))))))) == {"i", "s"}
    assert prefix_of("a\\_b_c") == ("a_b", "_c")
    assert after_prefix("\ud7ff") == "\ue000"
    assert after_prefix("a\U0010ffff") == "b"
