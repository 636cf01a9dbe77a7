"""Parsing SQL text, once per shape: statements that differ only in literals share a syntax tree with placeholders.

A shape is the text with its plain literals cut out, each replaced by its kind. The first statement of a shape is parsed
twice, with its literals and with placeholders in their places; only literals that come through the parser untouched, so
that both trees are equal but for them, become slots. The others stay part of the key. Whoever reads the tree looks a
placeholder's text up in `texts`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from oreo_lakehouse.errors import HistoryError

MAX_CHARACTERS = 500_000
MAX_TOKENS = 100_000
MAX_NESTING = 60
"""Open parentheses; the parser needs some ten calls for each."""
_MAX_SHAPES = 5_000
_MAX_CACHED_CHARACTERS = 20_000
_MARK = "7777000"
"""What placeholders start with; a statement that contains it is not cached."""

_LITERAL = re.compile(r"'([^'\\]*)'|(?<![\w.])(?:(\d+)|(\d+\.\d+))(?![\w.])")
_UNUSUAL = re.compile(r"(?:[^\\]|\\[\\'\"%_nrt])*\\[^\\'\"%_nrt]", re.DOTALL)
"""A string with an escape that the versions of an engine, or the parser here, may read differently."""
UNREADABLE = "\0"
"""Stands in a tree for the text of such a string."""


class Parsed:
    """A statement's syntax tree, and room for what is derived from it."""

    def __init__(self, tree: exp.Expr) -> None:
        self.tree = tree
        self.derived: dict[Any, Any] = {}


class _Shape:
    """What is known about one shape: which literals are not slots, and a tree for each combination of those."""

    def __init__(self, fixed: frozenset[int]) -> None:
        self.fixed = fixed
        self.trees: dict[tuple[str, ...], Parsed] = {}


class Shapes:
    """Parses statements of one dialect.

    >>> shapes = Shapes(Dialect.get_or_raise("spark"))
    >>> first, _ = shapes.parse("SELECT * FROM t WHERE a = 1")
    >>> second, texts = shapes.parse("SELECT * FROM t WHERE a = 25")
    >>> first is second, list(texts.values())
    (True, ['25'])
    """

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._shapes: dict[str, _Shape] = {}

    def parse(self, text: str, cached: bool = True) -> tuple[Parsed, Mapping[str, str]]:
        """The statement's tree, and the texts of the placeholders in it.

        Raises:
            HistoryError: it is not one statement of this dialect, or it is too large or too deep.
        """
        if len(text) > MAX_CHARACTERS:
            raise HistoryError(f"the statement is longer than {MAX_CHARACTERS:,} characters")
        if not cached or len(text) > _MAX_CACHED_CHARACTERS or _MARK in text or "\0" in text:
            return Parsed(self._parse(self._tokens(text), text)), {}
        found = [*_LITERAL.finditer(text)]
        key = _LITERAL.sub(_kind_mark, text)
        shape = self._shapes.get(key)
        if shape is None:
            if len(self._shapes) >= _MAX_SHAPES:
                self._shapes.clear()
            shape = self._shapes[key] = self._learn(text, found)
        literals = [match[match.lastindex or 1] for match in found]
        fixed = tuple(literals[i] for i in sorted(shape.fixed))
        parsed = shape.trees.get(fixed)
        if parsed is None:
            if len(shape.trees) >= _MAX_SHAPES:
                shape.trees.clear()
            tokens = self._tokens(text)
            parsed = shape.trees[fixed] = Parsed(self._parse(_replaced(tokens, found, shape.fixed), text))
        return parsed, {_placeholder(i, m): t for i, (m, t) in enumerate(zip(found, literals, strict=True))}

    def _learn(self, text: str, found: list[re.Match[str]]) -> _Shape:
        """Which literals of a new shape the parser carries through untouched."""
        tokens = self._tokens(text)
        own = self._parse(tokens, text)
        at = {token.start: index for index, token in enumerate(tokens)}
        fixed: set[int] = set()
        for i, match in enumerate(found):
            index = at.get(match.start(), -1)
            token = tokens[index]
            plain = (
                token.token_type in (TokenType.STRING, TokenType.NUMBER) and token.text == match[match.lastindex or 1]
            )
            # an interval's text is taken apart by the parser
            after_interval = index > 0 and tokens[index - 1].token_type is TokenType.INTERVAL
            if index < 0 or not plain or token.end + 1 != match.end() or after_interval:
                fixed.add(i)
        everything = frozenset(range(len(found)))
        try:
            tree = self._parse(_replaced(tokens, found, frozenset(fixed)), text)
            literals = tree.find_all(exp.Literal)
            carried = {node.this for node in literals if not isinstance(node.parent, exp.DataTypeParam)}
            lost = {i for i, match in enumerate(found) if i not in fixed and _placeholder(i, match) not in carried}
            if lost:
                fixed |= lost
                tree = self._parse(_replaced(tokens, found, frozenset(fixed)), text)
            texts = {_placeholder(i, match): match[match.lastindex or 1] for i, match in enumerate(found)}
            for node in tree.find_all(exp.Literal):
                node.set("this", texts.get(node.this, node.this))
            return _Shape(frozenset(fixed) if tree == own else everything)
        except HistoryError:  # a placeholder where the grammar wants a particular text
            return _Shape(everything)

    def _tokens(self, text: str) -> list[Token]:
        try:
            tokens = self._dialect.tokenize(text)
        except SqlglotError as error:
            raise HistoryError(f"not SQL: {_fault(error)}") from error
        if len(tokens) > MAX_TOKENS:
            raise HistoryError(f"the statement has more than {MAX_TOKENS:,} words")
        depth = 0
        for index, token in enumerate(tokens):
            if token.token_type is TokenType.STRING and _UNUSUAL.match(text[token.start : token.end + 1]):
                tokens[index] = _with_text(token, UNREADABLE)
            depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
            if depth > MAX_NESTING:
                raise HistoryError("the statement is nested too deeply")
        return tokens

    def _parse(self, tokens: list[Token], text: str) -> exp.Expr:
        try:
            trees = self._dialect.parser().parse(tokens, text)
        except SqlglotError as error:
            raise HistoryError(f"not SQL: {_fault(error)}") from error
        except RecursionError:
            raise HistoryError("the statement is nested too deeply") from None
        statements = [tree for tree in trees if tree is not None]
        if len(statements) != 1:
            raise HistoryError(f"{len(statements)} statements in one text; history has one a line")
        return statements[0]


def _kind_mark(match: re.Match[str]) -> str:
    return ("", "\0s", "\0i", "\0d")[match.lastindex or 1]


def _placeholder(number: int, match: re.Match[str]) -> str:
    return f"{_MARK}{number}" + ("", "s", "", ".5")[match.lastindex or 1]


def _replaced(tokens: list[Token], found: list[re.Match[str]], fixed: frozenset[int]) -> list[Token]:
    slots = {match.start(): _placeholder(i, match) for i, match in enumerate(found) if i not in fixed}
    return [_with_text(token, slots[token.start]) if token.start in slots else token for token in tokens]


def _with_text(token: Token, text: str) -> Token:
    return Token(token.token_type, text, token.line, token.col, token.start, token.end, token.comments)


def _fault(error: SqlglotError) -> str:
    """What the parser objects to, and where; never what stands there, which may be a literal."""
    if not isinstance(error, ParseError) or not error.errors:
        return "a text, a number or a name has no end, or is none"
    first = error.errors[0]
    what = re.sub(r"""'.*'|".*"|`.*`""", "…", str(first.get("description") or "it cannot be parsed"), flags=re.DOTALL)
    return f"{what.splitlines()[0][:100]} (line {first.get('line')}, column {first.get('col')})"
