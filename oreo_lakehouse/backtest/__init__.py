"""What other policies would have paid on the same queries.

The door: `run.run` (rows and predicates in, `BacktestResult` out). Uses the same strategies as maintenance, and
baselines that know the future. No Spark.
"""
