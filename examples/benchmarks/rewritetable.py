"""The rewrites' measurements as a table for people and as JSON, with the ratios that are promised."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from contenders import evenness
from measuring import Measured, Spread, told

Found = Mapping[str, Sequence[tuple[Measured, Sequence[int]]]]
WANTED = {
    "ours / ZORDER BY": 0.8,
    "ours / sort": 1.0,
    "ours / plain copy": 1.3,
    "ours: verify / ours": 0.3,
}
PAPER = "60-100"


def record(fmt: str, rows: int, blocks: int, rounds: int, found: Found) -> dict[str, Any]:
    """All that was measured on one table, medians with the lowest and highest seconds."""
    parts = {name: _part(measurements) for name, measurements in found.items()}
    seconds = {name: part["seconds"] for name, part in parts.items()}
    ratios = {
        f"{ours} / {name}": seconds[ours] / seconds[name]
        for ours in ("ours", "ours, qd-tree")
        for name in ("ZORDER BY", "liquid", "sort", "zorder", "plain copy", "shuffled copy", "sorted copy", "DuckDB")
        if name in seconds
    }
    ratios |= {
        f"{name} copy / plain copy": seconds[f"{name} copy"] / seconds["plain copy"] for name in ("shuffled", "sorted")
    }
    ratios |= {
        f"{name}: {part} / {name}": seconds[f"{name}: {part}"] / seconds[name]
        for name in ("ours", "ours, qd-tree")
        for part in ("verify", "verify, facts")
    }
    ratios |= {
        f"{name} / {name}: plain copy of it": seconds[name] / seconds[f"{name}: plain copy of it"]
        for name in ("ours", "ours, qd-tree")
    }
    whole = seconds["ours"] + seconds["ours: verify, facts"]
    return {
        "format": fmt,
        "rows": rows,
        "blocks": blocks,
        "rounds": rounds,
        "contenders": parts,
        "ratios": {name: round(value, 3) for name, value in ratios.items()},
        "alpha": {f"over the {name}": round(whole / seconds[name], 1) for name in ("narrow scan", "full scan")},
    }


def _part(measurements: Sequence[tuple[Measured, Sequence[int]]]) -> dict[str, Any]:
    every = [asdict(measured) for measured, _ in measurements]
    part = {key: round(Spread.of([one[key] for one in every]).median, 3) for key in every[0]}
    spread = Spread.of([one["seconds"] for one in every])
    sizes = measurements[-1][1]
    least, most = evenness(sizes) if sizes else (0.0, 0.0)
    return {
        **part,
        "seconds_low": round(spread.low, 3),
        "seconds_high": round(spread.high, 3),
        "files": len(sizes),
        "files_mb": round(sum(sizes) / 1e6, 1),
        "smallest": round(least, 2),
        "largest": round(most, 2),
    }


def show(found: Mapping[str, Any]) -> None:
    """The table, the ratios and alpha."""
    told("")
    print(
        f"\n{found['format']}, {found['rows']:,} rows into {found['blocks']} blocks, median of {found['rounds']} rounds"
    )
    heads = ("CPU s", "heap MB", "sort MB", "files MB", "files", "least", "most", "shuffle MB", "spill MB")
    print(f"{'':<24}{'seconds (low-high)':>22}" + "".join(f"{head:>11}" for head in heads))
    for name, part in sorted(found["contenders"].items(), key=lambda item: item[1]["seconds"]):
        span = f"{part['seconds']:.2f} ({part['seconds_low']:.2f}-{part['seconds_high']:.2f})"
        wide = [part[key] for key in ("cpu_seconds", "heap_mb", "execution_mb", "files_mb", "files")]
        wide += [part[key] for key in ("smallest", "largest", "shuffled_mb", "spilled_mb")]
        cells = (f"{value:>11,.2f}" if key in (5, 6) else f"{value:>11,.0f}" for key, value in enumerate(wide))
        print(f"{name:<24}{span:>22}" + "".join(cells))
    for name, value in found["ratios"].items():
        wanted = f"  (wanted: at most {WANTED[name]})" if name in WANTED else ""
        print(f"{name:<32}{value:>6.2f}{wanted}")
    for name, value in found["alpha"].items():
        print(f"{'alpha ' + name:<32}{value:>6.1f}  (the paper: {PAPER})")
    sys.stdout.flush()
