"""The session's door: Java is checked first, and every wrong start is one clear sentence."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from oreo_lakehouse.config import load_config
from oreo_lakehouse.errors import SetupError
from oreo_lakehouse.session import DELTA_PACKAGE, _alone, require_java, spark_session, spark_settings


def fake_java(folder: Path, version: str) -> None:
    (folder / "bin").mkdir()
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024' >&2\n")
    java.chmod(0o755)


@pytest.mark.parametrize(("version", "major"), [("17.0.15", 17), ("21", 21)])
def test_java_17_and_21_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, major: int) -> None:
    fake_java(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert require_java() == major


@pytest.mark.parametrize(("version", "named"), [("1.8.0_412", "Java 8"), ("11.0.2", "Java 11"), ("x", "not a Java")])
def test_another_java_is_named_and_the_right_one_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, named: str
) -> None:
    fake_java(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError) as raised:
        require_java()
    assert named in str(raised.value)
    assert "install Java 17 or 21" in str(raised.value)


def test_no_java_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SetupError, match="none was found: install Java 17 or 21"):
        require_java()


def test_a_wrong_java_home_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(SetupError, match="JAVA_HOME=/nowhere does not run"):
        require_java()


def test_spark_connect_is_refused_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SetupError, match="Spark Connect session"):
        spark_session(load_config(flags={"spark.master": "sc://host"}, environ={}))
    monkeypatch.setenv("SPARK_REMOTE", "sc://host")
    with pytest.raises(SetupError, match="Spark Connect session"):
        spark_session(load_config(environ={}))


def test_the_running_session_is_used_as_it_is(spark: Any) -> None:
    again = spark_session(load_config(flags={"spark.warehouse": "elsewhere"}, environ={}))
    assert again.sparkContext is spark.sparkContext


def test_the_users_spark_settings_win_and_their_packages_join_ours() -> None:
    conf = {"spark.ui.enabled": "true", "spark.jars.packages": "a:b:1"}
    made = spark_settings(load_config(flags={"spark.conf": conf}, environ={}))
    assert made["spark.ui.enabled"] == "true"
    assert made["spark.jars.packages"].split(",")[0] == DELTA_PACKAGE
    assert made["spark.jars.packages"].endswith(",a:b:1")


def test_a_site_with_its_own_jars_resolves_nothing() -> None:
    made = spark_settings(load_config(flags={"spark.conf": {"spark.jars": "delta.jar"}}, environ={}))
    assert "spark.jars.packages" not in made


def test_a_configured_catalog_replaces_the_embedded_one() -> None:
    conf = {"spark.sql.catalog.iceberg": "X", "spark.hadoop.hive.metastore.uris": "thrift://h:1"}
    made = spark_settings(load_config(flags={"spark.conf": conf}, environ={}))
    assert "spark.sql.catalog.iceberg.uri" not in made
    assert "spark.sql.catalogImplementation" not in made


def test_two_processes_do_not_fetch_packages_at_once(tmp_path: Path) -> None:
    """On an empty cache, the one would find the other's half-written downloads; a thread stands for a process here."""
    settings = {"spark.jars.packages": "a:b:1", "spark.jars.ivy": str(tmp_path)}
    told, fetched = threading.Event(), threading.Event()

    def second() -> None:
        with _alone(settings, lambda _: told.set()):
            fetched.set()

    with _alone(settings, lambda _: None):
        waiting = threading.Thread(target=second)
        waiting.start()
        assert told.wait(60)
        assert not fetched.is_set()
    waiting.join(60)
    assert fetched.is_set()
