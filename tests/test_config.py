"""Settings: conf/oreo.toml is the list of all of them, and flag beats environment beats file beats default."""

from __future__ import annotations

import itertools
import tomllib
from pathlib import Path
from typing import Any

import pytest

from oreo_lakehouse.config import Config, load_config, parse_size
from oreo_lakehouse.errors import ConfigError

CONF = Path(__file__).parent.parent / "conf"


@pytest.fixture
def written(tmp_path: Path) -> Any:
    def write(text: str) -> str:
        file = tmp_path / "some.toml"
        file.write_text(text)
        return str(file)

    return write


def test_the_shipped_file_lists_every_setting_with_its_default() -> None:
    document = tomllib.loads((CONF / "oreo.toml").read_text())
    defaults = {
        "store": Config().store,
        "bid_column": Config().bid_column,
        "spark": {**plain_section(Config().spark), "conf": {}},
        "layout": plain_section(Config().layout),
        "decide": plain_section(Config().decide),
        "history": plain_section(Config().history),
    }
    assert document == defaults


def plain_section(section: Any) -> dict[str, Any]:
    names = section.__dataclass_fields__
    return {n: list(v) if isinstance(v := getattr(section, n), tuple) else v for n in names if n != "conf"}


def test_every_setting_in_the_shipped_file_is_explained() -> None:
    lines = (CONF / "oreo.toml").read_text().splitlines()
    for before, line in itertools.pairwise(lines):
        if "=" in line and not line.startswith("#"):
            assert before.startswith("#"), f"no explanation above {line!r}"


@pytest.mark.parametrize("file", sorted(CONF.glob("*.toml")), ids=lambda f: f.name)
def test_every_shipped_file_loads(file: Path) -> None:
    load_config(str(file), environ={})


def test_flag_beats_environment_beats_file_beats_default(written: Any) -> None:
    file = written("[decide]\nalpha = 10\nwindow = 11\nepsilon = 0.11\n")
    environ = {"OREO_DECIDE_ALPHA": "20", "OREO_DECIDE_WINDOW": "21"}
    decide = load_config(file, {"decide.alpha": 30.0}, environ).decide
    assert (decide.alpha, decide.window, decide.epsilon, decide.seed) == (30.0, 21, 0.11, 1)


def test_an_explicit_zero_or_empty_text_wins(written: Any) -> None:
    file = written('bid_column = "x"\n[decide]\ngamma = 2.0\n')
    config = load_config(file, {"bid_column": "", "decide.gamma": 0.0}, {})
    assert (config.bid_column, config.decide.gamma) == ("", 0.0)


def test_a_flag_that_was_not_given_changes_nothing() -> None:
    assert load_config(None, {"decide.alpha": None}, {}).decide.alpha == Config().decide.alpha


def test_the_file_is_found_by_environment_then_in_the_working_directory(
    written: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = written("[decide]\nwindow = 7\n")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "oreo.toml").write_text("[decide]\nwindow = 8\n")
    assert load_config(environ={"OREO_CONFIG": named}).decide.window == 7
    assert load_config(environ={}).decide.window == 8


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("aplha = 3", "unknown key 'aplha'"),
        ("[decide]\naplha = 3", "unknown key 'decide.aplha' in FILE; did you mean 'decide.alpha'?"),
        ("[decide]\nalpha = 'much'", "'decide.alpha' in FILE must be a number, not 'much'"),
        ("[decide]\nalpha = true", "'decide.alpha' in FILE must be a number, not True"),
        ("[decide]\nalpha = 0.5", "'decide.alpha' must be 0 (measured) or greater than 1"),
        ("[decide]\nwindow = 1.5", "'decide.window' in FILE must be a whole number"),
        ("[decide]\nmode = 'fast'", "'decide.mode' must be 'native' or 'bid', not 'fast'"),
        ("[layout]\ngenerators = 3", "'layout.generators' in FILE must be a list of texts"),
        ("[layout]\ntarget_file_size = 'big'", "layout.target_file_size = 'big' is not a size"),
        ("[history]\nstore_sql = 1", "'history.store_sql' in FILE must be true or false, not 1"),
        ("[history]\nkeep_days = -1", "'history.keep_days' must be from 0"),
        ("[history]\nkeep_bytes = 'much'", "history.keep_bytes = 'much' is not a size"),
        ("decide = 3", "'decide' in FILE must be a table, written [decide]"),
        ("= 3", "FILE is not valid TOML"),
    ],
)
def test_a_mistake_is_named_with_its_place(written: Any, text: str, message: str) -> None:
    file = written(text)
    with pytest.raises(ConfigError) as raised:
        load_config(file, environ={})
    assert message.replace("FILE", file) in str(raised.value)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ConfigError, match=r"no configuration file nowhere\.toml"):
        load_config("nowhere.toml", environ={})


def test_spark_settings_may_be_nested_or_quoted(written: Any) -> None:
    config = load_config(written('[spark.conf]\n"a.b" = 1\nc.d = true\n'), environ={})
    assert dict(config.spark.conf) == {"a.b": "1", "c.d": "true"}


def test_sizes() -> None:
    assert [parse_size(s) for s in ("1", "1 KB", "1.5mb", "2GB")] == [1, 1024, 1572864, 2 << 30]
    for wrong in ("", "MB", "-1MB", "nan", "1XB"):
        with pytest.raises(ConfigError):
            parse_size(wrong)
