"""Which queries ran: one record per table scan, kept durably, from wherever users have it.

| module                          | what it knows                                                                  |
|---------------------------------|--------------------------------------------------------------------------------|
| `record` `exactness`            | a record, and how well its predicate was understood                            |
| `templates` `querycolumns` `querybatch` | predicates as template and literals; records as columns; many at once  |
| `store` `dayfiles` `compaction` | batches read exactly once through a cursor; day files; retention               |
| `capture` `jar` `java/`         | live capture by a listener in the JVM, in PySpark or as a jar                  |
| `catalyst` `icebergfilters`     | what Spark's planner and Iceberg's scans say, as predicates                    |
| `sqltext` `shapes`              | SQL text to scans, by sqlglot; one syntax tree for all statements of a shape   |
| `scans` `level` `sources`       | where a query scans the table, and which conditions restrict each scan         |
| `conditions` `coercion`         | boolean SQL to predicates; comparisons across types                            |
| `constants` `casts` `clock`     | constant SQL to literals (`literal`); casts; dates, times and zones            |
| `catalysttext` `harmless` `views` | SQL text and views by Spark's planner, on stubs, for what sqlglot leaves unclear |
| `sparktypes`                    | Spark's types, and those that must not be trusted                              |
| `statements` `formats`          | files of SQL text, and whose names their fields have                           |
| `eventlogs` `plantext` `icebergtext` | Spark event logs, and filters as plans print them                         |
| `importing` `importsummary`     | files into a table's history, and what became of them                           |
| `redaction` `summary`           | what must not be stored; what people see                                       |

Every stored predicate is implied by the query's real one. The tests show it on SQLite (structure of queries) and on
Spark (meaning of literals).
"""
