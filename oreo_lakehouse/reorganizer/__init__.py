"""When to change the layout, and to which one.

The door: `online.OnlineOptimizer.advise` (a batch of queries in, `Advice` out, everything saved as JSON). Behind it:
`dumts` (the paper's Algorithms 1 to 4), `planner` and `guard` (the default policy and its bound), `paper` (the
paper's own policy), `manager` (candidates and admission). Pure: numbers in, decisions out.
"""
