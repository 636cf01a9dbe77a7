"""Hostile texts, values and files: what somebody may put into a name, a log, or a file of ours."""

from __future__ import annotations

import copy
import gzip
import hashlib
import io
import json
import os
import pickle
import random
from collections.abc import Callable
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

SECRET = "Kassiopeia"
"""The literal that the queries ask for: no message may hold it."""


class _Runs:
    """Unpickled, it makes a file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return os.system, (f"touch {self._path}",)


def texts(outside: str) -> list[str]:
    """Names that nobody should choose; some lead to `outside`, a folder that is nobody's business."""
    return [
        *("", " ", ".", "..", "...", "/", "//", "\\", "~", "*", "?", "%", "$HOME", "`", "``", "'", '"', "'\"`", ";"),
        *("a.b", ".a", "a.", "a..b", "a.b.c.d.e.f", "`a.b`.`c`", "a`b", "delta.`", "delta.``", "delta.`/`", "iceberg."),
        *(
            "x'; DROP TABLE t; --",
            "x` UNION SELECT 1 --",
            "1 OR 1=1",
            "$(touch x)",
            "`touch x`",
            "{0}",
            "%s%n",
            "{{7*7}}",
        ),
        *("../../etc/passwd", "../" * 40 + "etc/passwd", "/etc/passwd", "file:///etc/passwd", "/proc/self/environ"),
        *(
            outside,
            f"{outside}/secret.txt",
            f"../{outside}",
            f"file:{outside}",
            f"delta.`{outside}`",
            f"{outside}/../x",
        ),
        *(
            "..%2f..%2fetc%2fpasswd",
            "..\\..\\x",
            "s3a://nowhere/x",
            "http://127.0.0.1:9/x",
            "jar:file:x!/y",
            "hdfs://x/y",
        ),
        *(
            "\0",
            "a\0b",
            "\n",
            "a\nb",
            "\r\n\r\n",
            "\t",
            "\x1b[2J",
            "\x7f",
            "\u202e",
            "\ufeffx",
            "ünïcödé",
            "🦆",
            "汉字",
        ),
        *("\ud800", "é", "ſ", "İ", "ß" * 300, "x" * 255, "x" * 5_000, "x" * 100_000, "a/" * 3_000, "a." * 3_000),
        *("[red]bold[/red]", "[/]", "[link=http://x]y[/link]", "<script>alert(1)</script>", "&lt;", "]]>", "<!--"),
        *("-1", "--help", "--config", "-", "@x", "nan", "inf", "1e999", "NULL", "true", "None", "0x10", "con", "nul"),
    ]


def values(outside: str, draw: random.Random) -> Any:
    """A JSON value that does not belong where it is put."""
    deep: Any = None
    for _ in range(draw.choice([50, 400])):
        deep = [deep] if draw.random() < 0.5 else {"and": [deep]}
    return draw.choice(
        [
            *(None, True, False, 0, -1, 1 << 31, 1 << 63, 1 << 200, -(10**300), 1e308, float("nan"), float("inf")),
            *("", "x", "nan", "1e999", [], {}, [[]], [None], {"": None}, [1, "a", None], deep),
            *({"__class__": "os.system"}, {"version": 2}, {"version": None}, [0] * 1_000, "9" * 5_000),
            draw.choice(texts(outside)),
        ]
    )


def damaged(content: bytes, draw: random.Random, outside: str) -> bytes:
    """The file as storage, or somebody without a plan, may leave it."""
    at = draw.randrange(max(1, len(content)))

    def flipped() -> bytes:
        return content[:at] + bytes([content[at] ^ 1 << draw.randrange(8)]) + content[at + 1 :] if content else b"\1"

    return draw.choice(
        [
            *(flipped, flipped, flipped, lambda: content[:at], lambda: content[:at], lambda: content[at:]),
            *(lambda: b"", lambda: b"\0" * len(content), lambda: content[:at] + content, lambda: content * 3),
            lambda: content[:at] + draw.randbytes(40) + content[at + 40 :],
            lambda: b"\xff\xfe" + content,
            lambda: b"\xef\xbb\xbf" + content,
            lambda: gzip.compress(content),
            lambda: gzip.compress(b"[" * 3_000_000),
            lambda: b"[" * 200_000,
            lambda: b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
            lambda: b"9" * 10_000,
            lambda: b"null",
            lambda: b"[]",
            lambda: b"{}",
            lambda: b'"x"',
            lambda: pickle.dumps(_Runs(f"{outside}/executed")),
            lambda: b"PAR1" + draw.randbytes(50) + b"PAR1",
            lambda: b"PAR1",
        ]
    )()


def forged(content: bytes, draw: random.Random, outside: str) -> bytes:
    """The file as somebody makes it who knows what it looks like: whole, sealed, and wrong in one place."""
    if content[:4] == b"PAR1":
        return _parquet(content, draw, outside)
    try:
        if content.count(b"\n") == 2 and b"sha256" in content.partition(b"\n")[0]:
            return _facts(content, draw, outside)
        document = json.loads(content)
        if isinstance(document, dict) and "body" in document:
            body = json.dumps(_changed(json.loads(cast("Any", document)["body"]), draw, outside))
            seal = hashlib.sha256(body.encode()).hexdigest()
            return json.dumps({**cast("dict[str, Any]", document), "sha256": seal, "body": body}).encode()
        return json.dumps(_changed(document, draw, outside)).encode()
    except ValueError:
        lines = content.splitlines() or [b"{}"]
        at = draw.randrange(len(lines))
        try:
            document = json.loads(lines[at])
        except ValueError:
            return damaged(content, draw, outside)
        for name in ("template", "literals"):  # JSON inside texts
            if name in document and draw.random() < 0.4:
                document[name] = json.dumps(_changed(json.loads(document[name]), draw, outside))
                break
        else:
            document = _changed(document, draw, outside)
        lines[at] = json.dumps(document).encode()
        return b"\n".join(lines) + b"\n"


def _facts(content: bytes, draw: random.Random, outside: str) -> bytes:
    header, names, body = content.split(b"\n")
    if draw.random() < 0.3:
        names = json.dumps(_changed(json.loads(names), draw, outside)).encode()
    else:
        body = json.dumps(_changed(json.loads(body), draw, outside)).encode()
    seal = hashlib.sha256(names + b"\n" + body).hexdigest()
    return json.dumps({**json.loads(header), "sha256": seal}).encode() + b"\n" + names + b"\n" + body


def _parquet(content: bytes, draw: random.Random, outside: str) -> bytes:
    table = pq.read_table(io.BytesIO(content))
    name = draw.choice(table.column_names)
    at = table.column_names.index(name)
    meta = {key: value for key, value in (table.schema.metadata or {}).items() if key != b"ARROW:schema"}
    wrong: list[Callable[[], pa.Table]] = [
        lambda: table.drop_columns([name]),
        lambda: table.rename_columns(
            [draw.choice(texts(outside)[19:40]) if c == name else c for c in table.column_names]
        ),
        lambda: table.set_column(at, name, pa.array([SECRET] * len(table))),
        lambda: table.set_column(at, name, pa.array([None] * len(table), pa.int64())),
        lambda: table.set_column(at, name, pa.array([1 << 62] * len(table))),
        lambda: table.set_column(at, name, pa.array([[1]] * len(table))),
        lambda: table.slice(0, 0),
        lambda: pa.concat_tables([table] * 50),
        lambda: table.replace_schema_metadata(None),
    ]
    for key, value in meta.items():
        try:
            changed = json.dumps(_changed(json.loads(value), draw, outside))
        except ValueError:
            changed = draw.choice(["", "zz", "00", "0" * 17])
        wrong += [lambda key=key, changed=changed: table.replace_schema_metadata({**meta, key: changed})] * 3
    out = io.BytesIO()
    pq.write_table(draw.choice(wrong)(), out)
    return out.getvalue()


def _changed(document: Any, draw: random.Random, outside: str) -> Any:
    """One place of a JSON value is another, gone, or there twice."""
    document = copy.deepcopy(document)
    parent, key, node = cast("Any", None), cast("Any", None), document
    while isinstance(node, (dict, list)) and node and (parent is None or draw.random() < 0.8):
        found = cast("Any", node)
        parent, key = found, draw.choice(list(found) if isinstance(found, dict) else range(len(found)))
        node = parent[key]
    if parent is None:
        return values(outside, draw)
    if draw.random() < 0.2:
        del parent[key]
    elif draw.random() < 0.15 and isinstance(parent, dict):
        parent[draw.choice(texts(outside))] = parent.pop(key)
    else:
        parent[key] = values(outside, draw)
    return document
