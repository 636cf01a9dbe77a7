"""Row -> BID, and what that lets a query skip.

The door: `layout.Layout` (assign, Spark text, JSON, content id), `generators.generate`, `blocks.Blocks` (metadata of
files or of a sample's blocks), `skipping.service_costs`. Knows nothing of Spark.
"""
