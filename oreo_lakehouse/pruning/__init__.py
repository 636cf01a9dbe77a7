"""Skipping beyond min/max: scans of maintained tables leave out files whose recorded facts rule them out.

The door is `attach`: one call turns history capture and pruning on for a Spark application. A rule, compiled in the
running JVM, takes files off the list of a scan; nobody changes a query. `bid_filter` is for engines without the rule.
"""
