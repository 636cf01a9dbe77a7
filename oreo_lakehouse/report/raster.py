"""A small picture of lines and words as PNG, so that a plot needs no library: numpy paints, zlib packs."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

_GLYPH_WIDTH, _GLYPH_HEIGHT = 5, 7
_FONT = """
    a00e1fhf bggmphhu c00egghe d11djhhf e00ehvge f698s888 g00fhf1e hggmphhh i40c444e j20622ic kggikoki lc44444e
    m00qllhh n00mphhh o00ehhhe p00uhugg q00djf11 r00mpggg s00ege1u t88s8896 u00hhhjd v00hhha4 w00hhlla x00ha4ah
    y00hhf1e z00v248v Aehhvhhh Cehggghe Dsihhhis Hhhhvhhh Oehhhhhe Puhhuggg Ruhhukih Sfgge11u Tv444444 Whhhllrh
    0ehjlphe 14c4444e 2eh1248v 3v2421he 426aiv22 5vgu11he 668guhhe 7v124888 8ehhehhe 9ehhf12c .00000cc ,0000c48
    -000e000 (2488842 )8422248 :0cc0cc0 %op248j3 +044v440 =00v0v00 _000000v /01248g0
"""
"""A letter, and its seven rows of five pixels each, a row as one digit to the base of 32."""
_GLYPHS = {" ": "0" * 7, **{word[0]: word[1:] for word in _FONT.split()}}
_UNKNOWN = "vhhhhhv"


class Canvas:
    """White at first; positions are pixels from the upper left corner, colours are `#rrggbb`."""

    def __init__(self, width: int, height: int) -> None:
        self._pixels = np.full((height, width, 3), 255, np.uint8)

    def line(self, points: Sequence[tuple[float, float]], colour: str, width: int) -> None:
        """A line through the points."""
        for (x0, y0), (x1, y1) in pairwise(points):
            steps = int(max(abs(x1 - x0), abs(y1 - y0))) + 1
            across = np.round(np.linspace(x0, x1, steps + 1)).astype(int) - width // 2
            down = np.round(np.linspace(y0, y1, steps + 1)).astype(int) - width // 2
            for right in range(width):
                for below in range(width):
                    self._paint(down + below, across + right, colour)

    def text(self, x: float, y: float, words: str, colour: str, scale: int, anchor: str = "start") -> None:
        """Words whose base line is at y; x is their start, middle or end."""
        left = x - self.text_width(words, scale) * {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
        for number, letter in enumerate(words):
            glyph = _GLYPHS.get(letter) or _GLYPHS.get(letter.lower(), _UNKNOWN)
            rows = [int(digit, 32) for digit in glyph]
            dots = [(r, c) for r, row in enumerate(rows) for c in range(_GLYPH_WIDTH) if row >> (4 - c) & 1]
            for row, column in dots:
                at_x = int(left) + (number * (_GLYPH_WIDTH + 1) + column) * scale
                at_y = int(y) - (_GLYPH_HEIGHT - row) * scale
                box = np.mgrid[at_y : at_y + scale, at_x : at_x + scale].reshape(2, -1)
                self._paint(box[0], box[1], colour)

    @staticmethod
    def text_width(words: str, scale: int) -> int:
        return len(words) * (_GLYPH_WIDTH + 1) * scale

    def _paint(self, rows: np.ndarray, columns: np.ndarray, colour: str) -> None:
        height, width, _ = self._pixels.shape
        inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
        self._pixels[rows[inside], columns[inside]] = list(bytes.fromhex(colour[1:]))

    def png(self) -> bytes:
        """The picture as a PNG file: 8 bits a colour, every row unfiltered."""
        height, width, _ = self._pixels.shape
        rows = np.concatenate([np.zeros((height, 1), np.uint8), self._pixels.reshape(height, -1)], axis=1)
        header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
        chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")]
        return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
