"""What a statement may consist of to be given to Spark's planner, which evaluates constants: all else is refused."""

from __future__ import annotations

PLANS = (
    *("Project", "Filter", "Join", "Aggregate", "Sort", "Distinct", "GlobalLimit", "LocalLimit", "Offset", "Union"),
    *("Except", "Intersect", "SubqueryAlias", "OneRowRelation", "WithWindowDefinition", "RelationTimeTravel"),
    *("UnresolvedRelation", "UnresolvedHaving", "UnresolvedWith", "UnresolvedSubqueryColumnAliases", "UnresolvedHint"),
)
"""The nodes of Spark's parsed plans that a plain query has."""

FUNCTIONS = (
    *("sum", "count", "avg", "mean", "min", "max", "first", "last", "any_value", "stddev", "stddev_samp", "variance"),
    *("approx_count_distinct", "percentile_approx", "row_number", "rank", "dense_rank", "ntile", "lag", "lead"),
    *(
        "upper",
        "lower",
        "trim",
        "ltrim",
        "rtrim",
        "substr",
        "substring",
        "left",
        "right",
        "length",
        "concat",
        "replace",
    ),
    *(
        "startswith",
        "endswith",
        "contains",
        "instr",
        "coalesce",
        "nvl",
        "ifnull",
        "nullif",
        "if",
        "isnull",
        "isnotnull",
    ),
    *("abs", "round", "floor", "ceil", "ceiling", "sqrt", "mod", "greatest", "least", "date", "to_date", "date_add"),
    *("date_sub", "datediff", "date_diff", "add_months", "months_between", "last_day", "trunc", "date_trunc", "year"),
    *("quarter", "month", "day", "dayofmonth", "dayofweek", "hour", "minute", "second", "extract", "date_part"),
    *("timestamp", "to_timestamp", "make_date", "int", "bigint", "double", "string", "decimal", "boolean"),
)
"""Functions that are cheap to evaluate whatever their arguments, and do nothing else."""
