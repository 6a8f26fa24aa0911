"""The text of a console log, in blocks of whole lines, with what terminals and schedulers do to it undone.

Colours are removed; a carriage return (a progress bar drawn over itself) and a NUL byte (a hole left by a crash) end a line
as a line feed does, but only line feeds count as lines. Nothing is decoded: patterns work on bytes, so a foreign byte costs
at most the line it stands in.
"""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, cast

import numpy as np

from forensics.model import IntArray, NumArray
from forensics.parsers.console import OTHER_SUFFIXES
from forensics.parsers.interface import Source
from forensics.parsers.sink import Sink

CHUNK = 1 << 23
LINE_LIMIT = 1 << 20
"""A longer line holds no record of a training step; what is past this is not read."""
FAR = 1 << 22
"""How far into a text file the first record is looked for: some logs begin with the source code of the script."""
MAX_UNPACKED = 1 << 36
"""Bytes read of a compressed log: it must end even where the file is made to unpack for ever."""

TEXT_SUFFIXES = frozenset({"", ".log", ".txt", ".out", ".err", ".stdout", ".stderr", ".output", ".text", ".console"})
NOT_LOGS = re.compile(r"(readme|license|licence|notice|changelog|changes|contributing|authors|requirements|constraints|todo|notes?)\b", re.IGNORECASE)

NUMBER = (
    rb"[-+]?(?:\d{1,3}(?:,\d{3}){1,12}(?:\.\d{1,40})?|\d{1,320}\.?\d{0,320}(?:[eE][-+]?\d{1,9})?(?:[kKMGBT](?![A-Za-z]))?|\.\d{1,320}(?:[eE][-+]?\d{1,9})?"
    rb"|(?:nan|inf(?:inity)?|NaN|Inf(?:inity)?|NAN|INF)(?![A-Za-z]))"
)
"""A number as loops print them: 1.2e-3, nan, -inf, 1,234, 12k. Bounded, as all patterns here: no text may make them slow."""

_SCALES = {b"k": 1e3, b"K": 1e3, b"M": 1e6, b"G": 1e9, b"B": 1e9, b"T": 1e12}
_COLOUR = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\n]{0,200}(?:\x07|\x1b\\)|[@-Z\\^_])")
_LINE_ENDS = bytes.maketrans(b"\r\x00", b"\n\n")
_WIDE = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Whole lines.

    ``ends`` int64 (lines,) are the offsets of the line feeds in ``data``; ``first`` is the 1-based number of the first line
    and ``offset`` the place of the block in the text; ``open`` says that the text stops without a line end.
    """

    data: bytes
    ends: IntArray
    first: int
    offset: int
    open: bool

    def numbers(self, offsets: IntArray) -> IntArray:
        """The 1-based line numbers of places in the block; both int64 (places,)."""
        return self.first + np.searchsorted(self.ends, offsets, side="left").astype(np.int64)

    def line(self, place: int) -> int:
        """The line number of one place."""
        return self.first + int(np.searchsorted(self.ends, place, side="left"))


def may_be_log(path: Path) -> bool:
    """Whether a console log may have this name."""
    return _suffix(path) not in OTHER_SUFFIXES and not NOT_LOGS.match(path.name)


def is_named_log(path: Path) -> bool:
    """Whether the name says that this is a text: only such files are searched far, and offered to the fallback."""
    suffix = _suffix(path)
    return suffix in TEXT_SUFFIXES or bool(re.fullmatch(r"\.[oe]?\d+", suffix))  # job.o1234, train.log.1


@lru_cache(maxsize=4)
def head(source: Source) -> bytes:
    """The lines in the head of a file."""
    return _prepare(_unpacked(source.head))[0]


@lru_cache(maxsize=2)
def far_head(source: Source) -> bytes:
    """The first FAR bytes of a text file; the head again where there is no more, or no text."""
    if source.size <= len(source.head) or not is_named_log(source.path) or b"\x00" in source.head[:4096]:
        return head(source)
    try:
        with _open(source) as file:
            return _prepare(file.read(FAR))[0]
    except (OSError, EOFError, zlib.error):
        return head(source)


def blocks(source: Source, sink: Sink) -> Iterator[Block]:
    """The whole text. What is cut off of overlong lines, and where a compressed file breaks, is damage."""
    rest, line, offset, cut, holes = b"", 1, 0, 0, 0
    for chunk in _chunks(source, sink):
        holes += chunk.count(0)
        end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
        if not end:
            cut += len(rest) <= LINE_LIMIT < len(rest) + len(chunk)
            rest = (rest + chunk)[: LINE_LIMIT + 1]
            continue
        if len(rest) > LINE_LIMIT:  # the beginning of a line whose end is not wanted
            first = min(i for i in (chunk.find(b"\n"), chunk.find(b"\r")) if i >= 0)
            data, rest = rest[:LINE_LIMIT] + chunk[first:end], chunk[end:]
        else:
            data, rest = rest + chunk[:end], chunk[end:]
        whole = block(data, line, offset)
        yield whole
        line += len(whole.ends)
        offset += len(whole.data)
    if rest:
        yield block(rest, line, offset, is_open=True)
    if cut:
        sink.damage(f"{cut} lines are longer than {LINE_LIMIT} bytes", "what stands in them after that")
    if holes:
        sink.damage(f"{holes} NUL bytes, as a crash of the machine or the file system leaves them", "the lines that stood there")


def block(data: bytes, line: int = 1, offset: int = 0, *, is_open: bool = False) -> Block:
    """Bytes as a block: cleaned, its line feeds found."""
    clean, ends = _prepare(data)
    return Block(clean, ends, line, offset, is_open)


def number(token: bytes) -> float:
    """One number. Raises ValueError."""
    text = token.replace(b",", b"")
    scale = _SCALES.get(text[-1:])
    return float(text[:-1]) * scale if scale is not None else float(text)


def numbers(tokens: list[bytes]) -> NumArray:
    """Many numbers: int64 where all are whole and fit, float64 otherwise (tokens,). Raises ValueError."""
    if len(tokens) > 1 and tokens.count(tokens[0]) == len(tokens):  # a constant, as half of the columns are
        return cast("NumArray", np.repeat(numbers(tokens[:1]), len(tokens)))
    if tokens and tokens[0].isdigit():
        with suppress(ValueError, OverflowError):
            return np.fromiter(map(int, tokens), dtype=np.int64, count=len(tokens))
    try:
        return np.fromiter(map(float, tokens), dtype=np.float64, count=len(tokens))
    except ValueError:
        return np.fromiter(map(number, tokens), dtype=np.float64, count=len(tokens))


def _suffix(path: Path) -> str:
    name = path.name.lower()
    return Path(name.removesuffix(".gz")).suffix


def _prepare(data: bytes) -> tuple[bytes, IntArray]:
    """Clean text and the offsets of its line feeds."""
    if b"\x1b" in data:
        data = _COLOUR.sub(b"", data)
    ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == 10).astype(np.int64)
    return data.translate(_LINE_ENDS), ends


def _unpacked(start: bytes) -> bytes:
    if start.startswith(_GZIP):
        try:
            start = zlib.decompressobj(31).decompress(start, 1 << 16)
        except zlib.error:
            return b""
    for mark, encoding in _WIDE:
        if start.startswith(mark):
            return start[2:].decode(encoding, errors="replace").encode()
    return start


def _open(source: Source) -> IO[bytes]:
    if source.head.startswith(_GZIP):
        return gzip.open(source.path, "rb")  # type: ignore[return-value]
    return source.path.open("rb")


def _chunks(source: Source, sink: Sink) -> Iterator[bytes]:
    read = 0
    decoder: codecs.IncrementalDecoder | None = None
    with _open(source) as file:
        while True:
            try:
                chunk = file.read(CHUNK)
            except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
                sink.damage(f"the compressed data breaks off after {read} bytes of text ({str(problem)[:80]})", "everything after")
                return
            if not chunk:
                return
            if read == 0:
                encoding = next((e for mark, e in _WIDE if chunk.startswith(mark)), None)
                if encoding is not None:
                    decoder, chunk = codecs.getincrementaldecoder(encoding)("replace"), chunk[2:]
            read += len(chunk)
            sink.progress(min(len(chunk), source.size))
            if read > MAX_UNPACKED:
                sink.damage(f"more than {MAX_UNPACKED} bytes of text", "everything after")
                return
            yield decoder.decode(chunk).encode() if decoder is not None else chunk
