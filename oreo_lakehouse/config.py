"""Settings: defaults, then `oreo.toml`, then the environment, then flags; the later wins, even with 0 or "".

The frozen classes below are the one place where a setting has a name, a type and a default. `conf/oreo.toml` lists
them all for people, and a test keeps the two equal.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import tomllib
import types
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_type_hints

from oreo_lakehouse.errors import ConfigError

Settings = TypeVar("Settings")


@dataclass(frozen=True)
class SparkSettings:
    """How the Spark session is built when none is running yet."""

    master: str = "local[2]"
    warehouse: str = "spark-warehouse"
    driver_memory: str = "2g"
    iceberg_catalog: str = "iceberg"
    log: str = ""
    conf: Mapping[str, str] = field(default_factory=lambda: types.MappingProxyType({}))


@dataclass(frozen=True)
class LayoutSettings:
    """What candidate layouts look like."""

    generators: tuple[str, ...] = ("sort", "qdtree")
    blocks: int = 0
    target_file_size: str = "128MB"
    sample_rows: int = 100_000
    keep_sample: bool = False
    shards: int = 16
    returnable_days: float = 7.0


@dataclass(frozen=True)
class DecideSettings:
    """When a change of layout pays."""

    policy: str = "planner"
    mode: str = "native"
    bid_tables: tuple[str, ...] = ()
    weigh: str = "rows"
    alpha: float = 0.0
    window: int = 200
    epsilon: float = 0.08
    gamma: float = 0.0
    max_states: int = 24
    min_gain: float = 0.05
    seed: int = 1

    @property
    def skipping(self) -> Literal["native", "bid"]:
        """`mode`, checked."""
        return "bid" if self.mode == "bid" else "native"


@dataclass(frozen=True)
class HistorySettings:
    """What is kept of queries, and for how long."""

    store_sql: bool = False
    redact: tuple[str, ...] = ()
    keep_days: int = 400
    keep_bytes: str = "1GB"


@dataclass(frozen=True)
class Config:
    """All settings."""

    store: str = ""
    bid_column: str = "_oreo_bid"
    spark: SparkSettings = field(default_factory=SparkSettings)
    layout: LayoutSettings = field(default_factory=LayoutSettings)
    decide: DecideSettings = field(default_factory=DecideSettings)
    history: HistorySettings = field(default_factory=HistorySettings)

    def for_table(self, *names: str) -> Config:
        """The settings for one table, by any of its names: `decide.bid_tables` gives it the mode `bid`.

        >>> Config(decide=DecideSettings(bid_tables=("db.*",))).for_table("spark_catalog.db.t", "db.t").decide.mode
        'bid'
        """
        if any(fnmatchcase(name, pattern) for name in names for pattern in self.decide.bid_tables):
            return replace(self, decide=replace(self.decide, mode="bid"))
        return self


def load_config(
    path: str | None = None,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """The settings in force.

    Args:
        path: a configuration file; else `OREO_CONFIG`, else `oreo.toml` in the working directory if there is one.
        flags: settings by dotted name (`decide.alpha`); None means "not given".
        environ: the environment, by default this process's. `OREO_DECIDE_ALPHA` sets `decide.alpha`.

    Raises:
        ConfigError: a file, key or value is wrong; the message names it and the nearest known key.
    """
    environ = os.environ if environ is None else environ
    config = Config()
    file = path if path is not None else environ.get("OREO_CONFIG") or None
    if file is None and Path("oreo.toml").is_file():
        file = "oreo.toml"
    if file is not None:
        config = _merge(config, _read(file), file)
    config = _from_environment(config, environ)
    for name, value in (flags or {}).items():
        if value is not None:
            config = _set(config, name.split("."), value, f"flag for {name}")
    _check(config)
    return config


def parse_size(text: str, where: str = "size") -> int:
    """Bytes from `128MB`, `1.5 GB`, `4096`; units are powers of 1024.

    >>> parse_size("128MB")
    134217728
    """
    units = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
    clean = text.strip().upper()
    unit = next((u for u in sorted(units, key=len, reverse=True) if clean.endswith(u)), "")
    try:
        size = int(float(clean.removesuffix(unit)) * units.get(unit, 1))
    except (ValueError, OverflowError):
        size = 0
    if size <= 0:
        raise ConfigError(f"{where} = {text!r} is not a size; write it as 128MB or 1GB")
    return size


def parse_duration(text: str, where: str = "duration") -> float:
    """Seconds from `90s`, `30m`, `6h`, `2d`; a bare number is hours.

    >>> parse_duration("1.5h"), parse_duration("6")
    (5400.0, 21600.0)
    """
    units = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
    clean = text.strip().lower()
    unit = clean[-1:] if clean[-1:] in units else "h"
    try:
        seconds = float(clean.removesuffix(unit)) * units[unit]
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise ConfigError(f"{where} = {text!r} is not a duration; write it as 30m, 6h or 2d")
    return seconds


def _read(file: str) -> dict[str, Any]:
    try:
        with open(file, "rb") as stream:
            return tomllib.load(stream)
    except FileNotFoundError as error:
        raise ConfigError(f"no configuration file {file}") from error
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not valid TOML: {error}") from error


def _merge(settings: Settings, document: Mapping[str, Any], where: str, prefix: str = "") -> Settings:
    for key, value in document.items():
        known = [f.name for f in fields(cast("Any", settings))]
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean {prefix + close[0]!r}?" if close else f"; known here: {', '.join(known)}"
            raise ConfigError(f"unknown key {prefix + key!r} in {where}{hint}")
        present = getattr(settings, key)
        if is_dataclass(present):
            if not isinstance(value, Mapping):
                raise ConfigError(f"{prefix + key!r} in {where} must be a table, written [{prefix + key}]")
            new: Any = _merge(present, cast("Mapping[str, Any]", value), where, f"{prefix}{key}.")
        else:
            new = _typed(settings, key, value, prefix + key, where)
        settings = replace(cast("Any", settings), **{key: new})
    return settings


def _set(config: Config, path: list[str], value: Any, where: str) -> Config:
    document: Any = value
    for key in reversed(path):
        document = {key: document}
    return _merge(config, document, where)


def _from_environment(config: Config, environ: Mapping[str, str]) -> Config:
    for path in _names(config):
        name = "OREO_" + "_".join(path).upper()
        if name in environ:
            config = _set(config, path, environ[name], f"environment variable {name}")
    return config


def _names(settings: Any, prefix: tuple[str, ...] = ()) -> list[list[str]]:
    out: list[list[str]] = []
    for f in fields(settings):
        value = getattr(settings, f.name)
        if is_dataclass(value):
            out += _names(value, (*prefix, f.name))
        elif not isinstance(value, Mapping):
            out.append([*prefix, f.name])
    return out


def _typed(settings: object, key: str, value: Any, name: str, where: str) -> Any:
    """`value` as the type that the setting has; text (from the environment) is converted, nothing else is."""
    wanted = get_type_hints(type(settings))[key]
    if wanted in (int, float) and isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = wanted(value)
    if wanted is bool and isinstance(value, str) and value.lower() in ("true", "false"):
        value = value.lower() == "true"
    if wanted is bool and isinstance(value, bool):
        return value
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if wanted == tuple[str, ...]:
        items = value.split(",") if isinstance(value, str) else value
        if isinstance(items, list | tuple) and all(isinstance(i, str) for i in items):
            return tuple(i.strip() for i in items if i.strip())
    elif wanted in (int, float, str):
        if isinstance(value, wanted) and not isinstance(value, bool):
            return value
    elif isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value)
        flat = _flatten(pairs)
        return types.MappingProxyType(flat)
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    names |= {tuple[str, ...]: "a list of texts"}
    raise ConfigError(f"{name!r} in {where} must be {names.get(wanted, 'a table')}, not {value!r}")


def _flatten(pairs: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Spark settings may be written quoted (`"spark.x.y" = 1`) or as nested tables; both give dotted names."""
    out: dict[str, str] = {}
    for key, value in pairs.items():
        if isinstance(value, Mapping):
            out |= _flatten(cast("Mapping[str, Any]", value), f"{prefix}{key}.")
        else:
            out[prefix + key] = str(value).lower() if isinstance(value, bool) else str(value)
    return out


def _check(config: Config) -> None:
    decide, layout = config.decide, config.layout
    rules = [
        (decide.alpha == 0 or decide.alpha > 1, "decide.alpha", "0 (measured) or greater than 1 (in scans)"),
        (decide.window >= 1, "decide.window", "at least 1"),
        (0 <= decide.epsilon < 1, "decide.epsilon", "in [0, 1)"),
        (decide.gamma >= 0, "decide.gamma", "at least 0"),
        (decide.max_states >= 2, "decide.max_states", "at least 2"),
        (0 <= decide.min_gain < 1, "decide.min_gain", "in [0, 1)"),
        (decide.mode in ("native", "bid"), "decide.mode", "'native' or 'bid'"),
        (decide.weigh in ("rows", "bytes"), "decide.weigh", "'rows' or 'bytes'"),
        (layout.blocks >= 0, "layout.blocks", "at least 0 (0 means: from the table's size)"),
        (layout.sample_rows >= 1, "layout.sample_rows", "at least 1"),
        (layout.shards >= 0, "layout.shards", "at least 0"),
        (layout.returnable_days >= 0, "layout.returnable_days", "at least 0"),
        (bool(layout.generators), "layout.generators", "at least one generator"),
        (0 <= config.history.keep_days <= 36_500, "history.keep_days", "from 0 (which means: for ever) to 36500"),
        (bool(config.spark.iceberg_catalog), "spark.iceberg_catalog", "a name"),
    ]
    for holds, name, rule in rules:
        if not holds:
            section, _, key = name.partition(".")
            raise ConfigError(f"{name!r} must be {rule}, not {getattr(getattr(config, section), key)!r}")
    parse_size(layout.target_file_size, "layout.target_file_size")
    if config.history.keep_bytes:
        parse_size(config.history.keep_bytes, "history.keep_bytes")
