"""The commands: `main` is `oreo`, `maintain` is `oreo-maintain`; `frame` has what they share."""
