"""What a query asks of one table.

The door: `tree.Predicate` (a parsed or stored condition), `relax.relax` (parsed -> what it safely implies), `jsonform`
(to the store and back), `workload.Workload` (a batch of stored predicates as arrays). Knows nothing of Spark.
"""
