"""Logs packed with gzip: unpacked to a temporary file, bounded, and read by the parser that knows what is inside.

Event files of TensorBoard are not among them: their parser unpacks by itself, piece by piece.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from forensics.parsers.interface import HEAD_BYTES, Claim, NotMine, Parser, RunKey, Source
from forensics.parsers.sink import Sink

NAME = "gzipped"

MAGIC = b"\x1f\x8b"
SUFFIX = ".gz"
BLOCK = 1 << 20
MAX_UNPACKED = 8 << 30
"""Bytes taken out of one file: more than the largest text log measured, and an end to a decompression bomb."""

_GZIP_BITS = 31  # window bits of a stream with a gzip header


def sniff(source: Source) -> Claim | None:
    """Claim what another parser would claim of the unpacked head."""
    if source.is_dir or source.path.suffix.lower() != SUFFIX or not source.head.startswith(MAGIC) or "tfevents" in source.path.name:
        return None
    try:
        head = zlib.decompressobj(_GZIP_BITS).decompress(source.head, HEAD_BYTES)
    except zlib.error:
        return Claim(NAME, 15)
    found = _inner(Source(source.path.with_suffix(""), max(source.size, len(head)), head))
    return None if found is None or found[1].adjunct else Claim(NAME, found[1].confidence, found[1].runs)


def parse(source: Source, sink: Sink, run: RunKey) -> None:
    """Unpack what can be unpacked, and let its parser read it. Raises NotMine where nobody knows what is inside."""
    with tempfile.TemporaryDirectory(prefix="forensics-") as folder:
        place = Path(folder) / source.path.with_suffix("").name
        with source.path.open("rb") as packed, place.open("wb") as out:
            size = 0
            for block in _unpacked(packed, sink):
                size += len(block)
                if size > MAX_UNPACKED:
                    sink.damage(f"the file unpacks to more than {MAX_UNPACKED:,} bytes", "everything after that; unpack it to read it whole")
                    break
                out.write(block)
        if place.stat().st_size == 0:
            sink.damage("nothing could be unpacked", "the whole file")
            return
        inside = Source.of(place)
        found = _inner(inside)
        if found is None:
            raise NotMine("what is packed in it is no log")
        found[0].parse(inside, sink, run)


def _unpacked(packed: BinaryIO, sink: Sink) -> Iterator[bytes]:
    """Blocks of the unpacked stream; one that is cut or damaged ends there, and is said. Members may follow each other."""
    member = zlib.decompressobj(_GZIP_BITS)
    while data := packed.read(BLOCK):
        while data:
            if member.eof:
                if not data.startswith(MAGIC):
                    return  # padding after the last member
                member = zlib.decompressobj(_GZIP_BITS)
            try:
                block = member.decompress(data, BLOCK)
            except zlib.error as problem:
                sink.damage(f"the packed stream is damaged ({problem})", "everything after that place")
                return
            if block:
                yield block
            data = member.unused_data if member.eof else member.unconsumed_tail
    if not member.eof:
        sink.damage("the packed stream is cut", "everything after that place")


def _inner(source: Source) -> tuple[Parser, Claim] | None:
    from forensics.parsers import builtin  # noqa: PLC0415 - the list holds this module

    best: tuple[Parser, Claim] | None = None
    known = builtin.parsers()
    for parser in (p for group in (known.plain(), known.console()) for p in group):
        if parser.NAME == NAME:
            continue
        claim = parser.sniff(source)
        if claim is not None and (best is None or claim.confidence > best[1].confidence):
            best = (parser, claim)
    return best
