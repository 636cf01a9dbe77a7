"""Delta and Iceberg behind one contract.

The door: `resolve.open_table` (a name as users write it -> `contract.Table`), `contract` (plan, stage, verify, commit,
revert), `certificate` (evidence that rows were kept). One folder a format.
"""
