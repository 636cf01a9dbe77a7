"""The store's few promises, on the local disk with and without a JVM."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from oreo_lakehouse.errors import StoreError
from oreo_lakehouse.store import HadoopStore, LocalStore, Store


@pytest.fixture(params=["local", "hadoop"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "local":
        return LocalStore(str(tmp_path / "root"))
    return HadoopStore(request.getfixturevalue("spark"), str(tmp_path / "root"))


def test_a_name_is_taken_once(store: Store) -> None:
    assert store.create("a/b/c.json", b"first\x00\xff")
    assert not store.create("a/b/c.json", b"second")
    assert store.read("a/b/c.json") == b"first\x00\xff"


def test_of_many_writers_of_one_name_exactly_one_wins(store: Store) -> None:
    answers: list[bool] = []
    threads = [threading.Thread(target=lambda i=i: answers.append(store.create("t/x", bytes([i])))) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [False] * 7 + [True]
    assert [entry.name for entry in store.entries("t")] == ["x"]


def test_what_is_not_there_reads_as_none_and_lists_as_nothing(store: Store) -> None:
    store.create("folder/file", b"")
    assert store.read("nothing") is None
    assert store.read("folder") is None
    assert store.read("folder/file") == b""
    assert store.entries("nothing") == []
    assert store.folders("nothing") == []


def test_listing_is_sorted_and_shows_neither_folders_nor_unfinished_files(store: Store, tmp_path: Path) -> None:
    for name in ("t/b", "t/a", "t/c/d"):
        store.create(name, b"12")
    (tmp_path / "root" / "t" / ".unfinished-x").write_bytes(b"half")
    assert [(entry.name, entry.size) for entry in store.entries("t")] == [("a", 2), ("b", 2)]
    assert store.folders("t") == ["c"]


def test_deleting_twice_is_fine(store: Store) -> None:
    store.create("a", b"")
    store.delete("a")
    store.delete("a")
    assert store.read("a") is None


@pytest.mark.parametrize("path", ["../out", "a/../../out", "/etc/passwd", "a//b", ".", "a\\b", ""])
def test_no_path_leads_out_of_the_store(store: Store, path: str) -> None:
    calls: list[Any] = [lambda: store.read(path), lambda: store.create(path, b""), lambda: store.delete(path)]
    for call in calls:
        with pytest.raises(StoreError, match="not a path inside the store"):
            call()


def test_both_stores_read_what_the_other_wrote(spark: Any, tmp_path: Path) -> None:
    hadoop, local = HadoopStore(spark, str(tmp_path)), LocalStore(str(tmp_path))
    hadoop.create("t/h", b"1")
    local.create("t/l", b"2")
    assert (local.read("t/h"), hadoop.read("t/l")) == (b"1", b"2")
    assert [e.name for e in local.entries("t")] == [e.name for e in hadoop.entries("t")] == ["h", "l"]


def test_storage_that_cannot_be_written_is_an_error_with_its_place(store: Store, tmp_path: Path) -> None:
    (tmp_path / "root").write_text("a file where a folder should be")
    with pytest.raises(StoreError, match="root"):
        store.create("a/b", b"")
