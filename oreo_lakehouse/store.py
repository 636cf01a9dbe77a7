"""The store: small files of ours under one configured root, wherever Spark can write.

State, ledger and history live here and nowhere else (not inside tables: DROP and foreign vacuums would take them
along). The operations are the few that local disks, HDFS and object stores all do atomically: create a file that must
not exist yet, read one, list a folder, delete. Nothing is ever overwritten in place; newer content gets a newer name.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from oreo_lakehouse.errors import StoreError
from oreo_lakehouse.jvm import error_class, error_reason, hadoop_conf, jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from oreo_lakehouse.config import Config


@dataclass(frozen=True)
class Entry:
    """One file in a folder of the store."""

    name: str
    size: int
    modified_ms: int


class Store(Protocol):
    """Files by relative path (`/` between folders) under `root`."""

    root: str

    def read(self, path: str) -> bytes | None:
        """The content, or None if there is no such file."""
        ...

    def create(self, path: str, content: bytes) -> bool:
        """Write a new file whole or not at all; False if the name is taken."""
        ...

    def entries(self, folder: str) -> list[Entry]:
        """The files (not folders) directly in `folder`, by name; none if it does not exist. Files that begin with a
        dot, unfinished ones among them, are never listed."""
        ...

    def folders(self, folder: str) -> list[str]:
        """The names of the folders directly in `folder`, sorted."""
        ...

    def delete(self, path: str) -> None:
        """Remove a file; fine if it is gone already."""
        ...


def default_root(spark: SparkSession) -> str:
    """Where the store is unless the configuration says otherwise: `_oreo` in Spark's warehouse directory."""
    return str(spark.conf.get("spark.sql.warehouse.dir")).rstrip("/") + "/_oreo"


def open_store(spark: SparkSession, root: str) -> Store:
    """The store at `root`, wherever the session reaches; this machine's disk needs no JVM, and is faster without."""
    store = HadoopStore(spark, root)
    return store if store.local_root is None else LocalStore(store.local_root)


def configured_store(spark: SparkSession, config: Config) -> Store:
    """The store that the settings name, or the one in the warehouse."""
    return open_store(spark, config.store or default_root(spark))


_UNFINISHED = ".unfinished-"
"""Prefix of a file being written: a crash leaves at most one of these, which no reader ever sees."""


def _split(path: str) -> list[str]:
    parts = path.split("/")
    if any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts):
        raise StoreError(f"not a path inside the store: {path!r}")
    return parts


def parsed(content: bytes | str | None) -> Any:
    """What a JSON text of the store says.

    Raises:
        ValueError: it is none, or nested deeper than anything of ours.
    """
    try:
        return json.loads(content or b"")
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


class LocalStore:
    """A store on this machine's disk.

    >>> import tempfile
    >>> store = LocalStore(tempfile.mkdtemp())
    >>> store.create("a/b.json", b"1"), store.create("a/b.json", b"2"), store.read("a/b.json")
    (True, False, b'1')
    """

    def __init__(self, root: str) -> None:
        self.root = root

    def _at(self, path: str) -> Path:
        return Path(self.root, *_split(path))

    def read(self, path: str) -> bytes | None:
        try:
            return self._at(path).read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except OSError as error:
            raise StoreError(f"cannot read {path} in the store {self.root}: {error.strerror}") from error

    def create(self, path: str, content: bytes) -> bool:
        target = self._at(path)
        unfinished = target.with_name(f"{_UNFINISHED}{uuid.uuid4().hex}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                with unfinished.open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                os.link(unfinished, target)  # fails if the name is taken: the atomic step
            finally:
                unfinished.unlink(missing_ok=True)
        except FileExistsError:
            return False
        except OSError as error:
            raise StoreError(f"cannot write {path} in the store {self.root}: {error.strerror}") from error
        return True

    def _children(self, folder: str) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(self._at(folder)) as found:
                yield from sorted(found, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise StoreError(f"cannot list {folder} in the store {self.root}: {error.strerror}") from error

    def entries(self, folder: str) -> list[Entry]:
        out: list[Entry] = []
        for child in self._children(folder):
            if child.name.startswith(".") or not child.is_file():
                continue
            try:
                stat = child.stat()
            except FileNotFoundError:  # deleted while we looked
                continue
            out.append(Entry(child.name, stat.st_size, stat.st_mtime_ns // 1_000_000))
        return out

    def folders(self, folder: str) -> list[str]:
        return [child.name for child in self._children(folder) if child.is_dir()]

    def delete(self, path: str) -> None:
        try:
            self._at(path).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"cannot delete {path} in the store {self.root}: {error.strerror}") from error


class HadoopStore:
    """A store on any file system that the Spark session reaches, through Hadoop's FileSystem."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._jvm = jvm(spark)
        self._path = self._jvm.org.apache.hadoop.fs.Path
        path = self._path(root)
        try:
            self._fs: Any = path.getFileSystem(hadoop_conf(spark))
        except Exception as error:  # py4j wraps whatever the file system throws
            raise StoreError(f"cannot reach the store {root}: {error_reason(error)}") from error
        qualified = self._fs.makeQualified(path)
        self.root = str(qualified.toString())
        self.local_root = str(qualified.toUri().getPath()) if self._fs.getScheme() == "file" else None
        """The folder on this machine's disk; None on other storage."""

    def _at(self, path: str) -> Any:
        return self._path(self.root, "/".join(_split(path)))

    def _failed(self, verb: str, path: str, error: Exception) -> StoreError:
        return StoreError(f"cannot {verb} {path} in the store {self.root}: {error_reason(error)}")

    def read(self, path: str) -> bytes | None:
        try:
            stream = self._fs.open(self._at(path))
            try:
                return bytes(self._jvm.org.apache.hadoop.io.IOUtils.readFullyToByteArray(stream))
            finally:
                stream.close()
        except Exception as error:
            if error_class(error) in ("java.io.FileNotFoundException", "org.apache.hadoop.fs.PathIsDirectoryException"):
                return None
            raise self._failed("read", path, error) from error

    def create(self, path: str, content: bytes) -> bool:
        target = self._at(path)
        unfinished = self._path(target.getParent(), f"{_UNFINISHED}{uuid.uuid4().hex}")
        try:
            if self._fs.exists(target):
                return False
            stream = self._fs.create(unfinished, False)
            try:
                stream.write(content)
            finally:
                stream.close()
            return self._publish(unfinished, target)
        except Exception as error:
            raise self._failed("write", path, error) from error

    def _publish(self, unfinished: Any, target: Any) -> bool:
        """Give the finished file its name unless the name is taken.

        FileContext's rename without OVERWRITE refuses an existing target atomically on HDFS and, checked just before,
        on object stores. A local rename would replace the target, so there a hard link decides.
        """
        try:
            if self.local_root is not None:
                files = self._jvm.java.nio.file.Files
                link = self._jvm.java.io.File(target.toUri().getPath()).toPath()
                files.createLink(link, self._jvm.java.io.File(unfinished.toUri().getPath()).toPath())
            else:
                return bool(self._fs.rename(unfinished, target))
        except Exception as error:
            if "AlreadyExists" in error_class(error):
                return False
            raise
        finally:
            self._fs.delete(unfinished, False)
        return True

    def _children(self, folder: str) -> list[Any]:
        try:
            return list(self._fs.listStatus(self._at(folder)))
        except Exception as error:
            if error_class(error) == "java.io.FileNotFoundException":
                return []
            raise self._failed("list", folder, error) from error

    def entries(self, folder: str) -> list[Entry]:
        found = [
            Entry(child.getPath().getName(), child.getLen(), child.getModificationTime())
            for child in self._children(folder)
            if child.isFile() and not child.getPath().getName().startswith(".")
        ]
        return sorted(found, key=lambda entry: entry.name)

    def folders(self, folder: str) -> list[str]:
        return sorted(child.getPath().getName() for child in self._children(folder) if child.isDirectory())

    def delete(self, path: str) -> None:
        try:
            self._fs.delete(self._at(path), False)
        except Exception as error:
            raise self._failed("delete", path, error) from error
