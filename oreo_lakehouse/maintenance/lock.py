"""One maintenance run per table at a time: the second leaves politely.

The lock only saves wasted work; safety rests on the table's own optimistic commits and on numbered saves. A lock is a
numbered file; whoever creates the next number holds it. It is renewed while the run lives and free to take over once
its lease is over, or at once when its process on this machine is gone, so a crash never blocks a table for long.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from oreo_lakehouse.errors import ConflictError, StoreError
from oreo_lakehouse.store import Store, parsed

LEASE_SECONDS = 300.0
RENEWAL_SECONDS = 60.0
LONGEST_SECONDS = 86_400.0
"""A lease that ends later was written by a clock that was wrong, and would keep everybody out for as long."""


@contextmanager
def locked(store: Store, table_uuid: str, table_name: str) -> Generator[None]:
    """Hold the table's lock while the block runs.

    Raises:
        ConflictError: another run holds it; the message says which.
    """
    lock = _Lock(store, f"{table_uuid}/lock", table_name)
    lock.acquire()
    done = threading.Event()

    def keep() -> None:
        while not done.wait(RENEWAL_SECONDS):
            try:
                lock.renew()
            except StoreError:  # storage hiccup: the next renewal comes well before the lease is over
                continue

    keeper = threading.Thread(target=keep, daemon=True, name="oreo-lock")
    keeper.start()
    try:
        yield
    finally:
        done.set()
        keeper.join()
        lock.release()


class _Lock:
    def __init__(self, store: Store, folder: str, table_name: str) -> None:
        self._store, self._folder, self._table = store, folder, table_name
        self._token = uuid.uuid4().hex
        self._number = 0

    def acquire(self) -> None:
        holders = self._holders()
        for _, holder in holders:
            if not _is_over(holder):
                raise self._busy(holder)
        if not self._create(max((number for number, _ in holders), default=0) + 1):
            raise self._busy(None)
        # Somebody who saw the same stale lock may have come by another number: the older lock of two living ones wins.
        for number, holder in self._holders():
            if number == self._number:
                continue
            if _is_over(holder):
                self._store.delete(self._name(number))
            elif number < self._number:
                self.release()
                raise self._busy(holder)

    def renew(self) -> None:
        old = self._number
        if self._create(old + 1):
            self._store.delete(self._name(old))

    def release(self) -> None:
        self._store.delete(self._name(self._number))

    def _create(self, number: int) -> bool:
        ticket = {
            "token": self._token,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "expires": time.time() + LEASE_SECONDS,
        }
        if self._store.create(self._name(number), json.dumps(ticket).encode()):
            self._number = number
            return True
        return False

    def _name(self, number: int) -> str:
        return f"{self._folder}/{number:010d}.json"

    def _holders(self) -> list[tuple[int, dict[str, Any]]]:
        found: list[tuple[int, dict[str, Any]]] = []
        for entry in self._store.entries(self._folder):
            content = self._store.read(f"{self._folder}/{entry.name}")
            if content is None:
                continue
            try:
                ticket = dict(parsed(content))
                ends = float(ticket["expires"])
                if not 0 <= ends < time.time() + LONGEST_SECONDS:
                    raise ValueError("its lease never ends")
                found.append((int(entry.name.removesuffix(".json")), ticket))
            except (ValueError, TypeError, KeyError, OverflowError):  # not a ticket of ours: nobody can be holding it
                self._store.delete(f"{self._folder}/{entry.name}")
        return found

    def _busy(self, holder: dict[str, Any] | None) -> ConflictError:
        by = f"process {holder.get('pid')} on {holder.get('host')}" if holder else "another process"
        return ConflictError(f"{self._table} is being maintained by {by}; run again when it is done")


def _is_over(holder: dict[str, Any]) -> bool:
    if float(holder["expires"]) < time.time():
        return True
    if holder.get("host") != socket.gethostname():
        return False
    try:
        os.kill(int(holder.get("pid", 0)), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, ValueError, TypeError, OverflowError):
        return False
    return False
