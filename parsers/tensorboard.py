"""TensorBoard event files: every scalar of one file, exactly as written, with every checksum verified."""

from __future__ import annotations

import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO

import numpy as np

from forensics.parsers.interface import Claim, NotMine, RunKey, Source
from forensics.parsers.sink import TEXT_LIMIT, Sink
from forensics.parsers.tensorboard_config import HPARAMS_PLUGIN, TEXT_PLUGIN, TEXT_SUFFIX, hparams, json_text, plugin, text_of
from forensics.parsers.tensorboard_points import Points, TagPoints
from forensics.parsers.tensorboard_wire import SESSION_START, EventMap, Kind, MalformedError, fields, varint
from forensics.parsers.tfrecord import HEADER, Batch, Gap, GapKind, find_headers, header_length, read_records

NAME = "tensorboard"

MAX_UNPACKED = 1 << 30
"""Bytes taken out of a gzipped file: three times the largest log measured, and an end to a decompression bomb."""

LISTED = 8
"""Damaged places named one by one; the rest is counted."""

MARKS = 1000
"""Restart marks kept of one file; a writer leaves one per restart."""

READ_PACKED = 1 << 20
"""Packed bytes read at once."""

_GZIP = b"\x1f\x8b"
_GZIP_BITS = 31  # window bits of a stream with a gzip header
_LFS = b"version https://git-lfs.github.com/spec/"
_EVENT_STARTS = frozenset(b"\x09\x10\x1a\x22\x2a\x32\x3a\x42\x4a\x52")
"""First bytes of an Event: the keys of its ten fields. Other TFRecord files begin with other messages."""

_NAME_TIME = re.compile(r"tfevents\.(\d{9,11})\.")
"""Epoch seconds that every writer puts into the file name."""


def sniff(source: Source) -> Claim | None:
    """Claim a file that begins with an Event record, or that is named like an event file and cannot be one whole."""
    if source.is_dir:
        return None
    named = "tfevents" in source.path.name
    head = _unpacked_head(source.head)
    if _starts_with_event(head):
        return Claim(NAME, 100 if named else 90, (RunKey(order=_first_wall(head, source)),))
    if not named:
        return None
    return Claim(NAME, 60, (RunKey(order=_first_wall(head, source)),))


def parse(source: Source, sink: Sink, run: RunKey) -> None:  # noqa: ARG001 - an event file holds one run
    """Read one event file. Raises NotMine or OSError (the file cannot be opened); everything else is Damage."""
    named = "tfevents" in source.path.name
    if source.is_dir or not (named or _starts_with_event(_unpacked_head(source.head))):
        raise NotMine(f"{source.path.name} does not begin with an event record")
    if source.size == 0:
        sink.damage("the event file is empty", "everything: no record was ever written to disk, or the copy failed")
        return
    if source.head.startswith(_LFS):
        sink.damage("this is a Git LFS pointer, not the event file", f"everything{_lfs_size(source.head)}; fetch it with: git lfs pull")
        return
    report = _Report(sink)
    with _open(source, sink) as stream:
        for batch in read_records(stream.read):
            report.add(batch)
    report.finish()


@dataclass(slots=True)
class _Reader:
    """Bounded reading of a plain or gzipped file. A read error ends the stream and is said."""

    file: IO[bytes]
    sink: Sink
    gunzip: _Gunzip | None
    size: int = 0
    told: int = 0

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes, b"" at the end."""
        try:
            data = self.file.read(size) if self.gunzip is None else self.gunzip.read(size)
        except (OSError, EOFError, zlib.error) as error:
            self.sink.damage(f"reading stopped after {self.size:,} bytes: {_short(error)}", "everything after that")
            return b""
        self.size += len(data)
        if self.gunzip is not None and self.size > MAX_UNPACKED:
            self.sink.damage(f"the file unpacks to more than {MAX_UNPACKED:,} bytes", "everything after that; unpack it to read it whole")
            return b""
        position = self.file.tell()
        self.sink.progress(position - self.told)
        self.told = position
        return data


@dataclass(slots=True)
class _Gunzip:
    """Unpacks piece by piece, so that a cut or damaged stream gives everything before the damage."""

    file: IO[bytes]
    pending: bytes = b""
    member: zlib._Decompress = field(default_factory=lambda: zlib.decompressobj(_GZIP_BITS))

    def read(self, size: int) -> bytes:
        """Up to ``size`` unpacked bytes, b"" at the end. Raises EOFError where the stream is cut, zlib.error where damaged."""
        while True:
            self.pending = self.pending or self.file.read(READ_PACKED)
            if self.member.eof and self.pending.startswith(_GZIP):
                self.member = zlib.decompressobj(_GZIP_BITS)
            elif self.member.eof:
                return b""
            data = self.member.decompress(self.pending, size)
            if not self.pending and not data:
                raise EOFError("the gzip stream is cut")
            self.pending = self.member.unused_data if self.member.eof else self.member.unconsumed_tail
            if data:
                return data


@contextmanager
def _open(source: Source, sink: Sink) -> Iterator[_Reader]:
    with source.path.open("rb") as file:
        yield _Reader(file, sink, _Gunzip(file) if source.head.startswith(_GZIP) else None)


@dataclass(slots=True)
class _Places:
    """Damaged records: all counted, the first ones kept with the step logged before each."""

    count: int = 0
    records: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)

    def add(self, records: list[int], points: Points) -> None:
        """Take the damaged records of the latest batch, ascending."""
        self.count += len(records)
        for record in records[: max(0, LISTED - len(self.records))]:
            self.records.append(record)
            step = points.near(record)
            if step is not None and step not in self.steps:
                self.steps.append(step)

    def counted(self) -> str:
        """Their number in words."""
        return f"{self.count:,} record{'' if self.count == 1 else 's'}"

    def listed(self) -> str:
        """The record numbers."""
        return ", ".join(map(str, self.records)) + self._more()

    def near(self) -> str:
        """The steps around them."""
        if not self.steps:
            return ""
        return f" near step{'' if len(self.steps) == 1 else 's'} {', '.join(map(str, self.steps))}{self._more()}"

    def _more(self) -> str:
        return ", ..." if self.count > len(self.records) else ""


@dataclass(slots=True)
class _Report:
    """Takes the batches of one file and tells the sink what they held and what was lost."""

    sink: Sink
    points: Points = field(init=False)
    skipped: Counter[str] = field(default_factory=Counter)
    purges: list[int] = field(default_factory=list)
    restarts: list[int] = field(default_factory=list)
    failed: _Places = field(default_factory=_Places)
    unreadable: _Places = field(default_factory=_Places)
    mended: _Places = field(default_factory=_Places)
    gaps: list[tuple[Gap, int | None]] = field(default_factory=list)
    gap_bytes: int = 0
    gap_count: int = 0
    _plugins: dict[bytes, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.points = Points(self._special)

    def add(self, batch: Batch) -> None:
        """Read a batch, and remember what of it could not be."""
        self.points.add(batch)
        self.failed.add(batch.bad, self.points)
        self.unreadable.add(self.points.malformed, self.points)
        self.points.malformed.clear()
        self.mended.add([gap.record for gap in batch.gaps if gap.recovered], self.points)
        for gap in batch.gaps:
            if not gap.recovered:
                self.gap_count += 1
                self.gap_bytes += gap.size
                if self.gap_count <= LISTED or gap.kind in _LAST:
                    self.gaps.append((gap, self.points.near(gap.record)))

    def finish(self) -> None:
        """Hand everything over."""
        for tag in _by_name(self.points.signals()):
            name = text_of(tag.tag) or "(untagged)"
            self.sink.points(name, tag.steps, tag.values, wall_times=tag.wall_times, records=tag.records)
        for kind, count in self.points.skipped.items():
            if count:
                self.skipped[kind.value] += count
        if self.skipped:
            self.sink.note("tensorboard_skipped", dict(sorted(self.skipped.items())))
        if self.purges:
            self.sink.note("purge_step", self.purges[0] if len(self.purges) == 1 else self.purges)
        if self.restarts:
            self.sink.note("writer_restarts", self.restarts)
        self._tell_damage()

    def _special(self, record: int, step: int, payload: bytes, event: EventMap) -> None:
        """Facts of an event that is more than scalars."""
        try:
            if event.file_version is not None and record > 1 and len(self.restarts) < MARKS:
                self.restarts.append(step)
            if event.session_log is not None:
                inner = fields(payload, event.session_log.start, event.session_log.stop)
                status = [varint(payload, f.start, f.stop) for f in inner if f.key == 0x08]
                if status[-1:] == [SESSION_START] and len(self.purges) < MARKS:
                    self.purges.append(step)
            if event.source is not None:
                for item in fields(payload, event.source.start, event.source.stop):
                    if item.key == 0x0A:
                        self.sink.note("writer", text_of(payload[item.start : item.stop])[:TEXT_LIMIT])
            self._special_values(payload, event)
        except MalformedError:
            self.points.malformed.append(record)

    def _special_values(self, payload: bytes, event: EventMap) -> None:
        for other in event.others:
            if other.kind not in (Kind.TENSOR, Kind.EMPTY):  # hyperparameters are metadata without a value
                continue
            tag = payload[other.tag_start : other.tag_stop]
            name, content = plugin(payload, other)
            if not name:  # only the first value of a tag says which plugin it is for
                name = self._plugins.get(tag, TEXT_PLUGIN if tag.endswith(TEXT_SUFFIX.encode()) else "")
            elif len(self._plugins) < MARKS:
                self._plugins[tag] = name
            if name == HPARAMS_PLUGIN:
                self.sink.config(hparams(content))
                continue
            found = json_text(payload, other) if name == TEXT_PLUGIN else {}
            if found:
                self.sink.config(found)
                continue
            if other.kind is Kind.TENSOR:
                self.skipped[name[:TEXT_LIMIT] or Kind.TENSOR.value] += 1

    def _tell_damage(self) -> None:
        damage = self.sink.damage
        for places, what in ((self.failed, "with a wrong checksum"), (self.unreadable, "without a readable event")):
            if places.count:
                damage(f"{places.counted()} {what}: {places.listed()}", f"{places.counted()}{places.near()}")
        if self.mended.count:
            damage(f"{self.mended.counted()} with a damaged length: {self.mended.listed()}", "nothing: the content passed its own checksum")
        for gap, near in self.gaps:
            what, lost = _GAP_TEXTS[gap.kind]
            step = f" near step {near}" if near is not None else ""
            damage(f"{what} at byte {gap.offset:,} (record {gap.record})", f"{gap.size:,} bytes{step}{lost}")
        if self.gap_count > len(self.gaps):
            rest = self.gap_bytes - sum(gap.size for gap, _ in self.gaps)
            damage(f"{self.gap_count - len(self.gaps):,} more damaged places", f"{rest:,} bytes, at least one record at each")
        if self.points.overflow:
            damage("more tags than a training log has", f"{self.points.overflow:,} points of the tags past that number")


_LAST = (GapKind.TAIL, GapKind.ZEROS, GapKind.GIVEN_UP)
"""Kinds that stand at the end of a file and are told however many came before."""

_GAP_TEXTS = {
    GapKind.LENGTH: ("a damaged record length", ", at least 1 record"),
    GapKind.PAYLOAD: ("a damaged record that no other one follows", ", at least 1 record"),
    GapKind.OVERSIZE: ("a record too large to be read", ", 1 record (a scalar takes some 50 bytes)"),
    GapKind.TAIL: ("the file ends inside a record: stray bytes", ", at most 1 record: the writer was stopped, or is still writing"),
    GapKind.GIVEN_UP: ("too many damaged places to go on", " in memory and everything after them"),
    GapKind.ZEROS: ("zeros where records should be", "; space that was reserved but never written, as after a power loss"),
}


def _by_name(signals: Iterator[TagPoints]) -> Iterator[TagPoints]:
    """One entry per tag: a tag that holds integers and floats becomes float, in the order written."""
    together: dict[bytes, list[TagPoints]] = {}
    for tag in signals:
        together.setdefault(tag.tag, []).append(tag)
    for parts in together.values():
        yield parts[0] if len(parts) == 1 else _merged(parts)


def _merged(parts: Sequence[TagPoints]) -> TagPoints:
    records = np.concatenate([p.records for p in parts])
    order = np.argsort(records, kind="stable")
    values = np.concatenate([p.values.astype(np.float64) for p in parts])
    steps = np.concatenate([p.steps for p in parts])
    walls = np.concatenate([p.wall_times for p in parts])
    return TagPoints(parts[0].tag, steps[order], values[order], walls[order], records[order])


def _starts_with_event(head: bytes) -> bool:
    length = header_length(head)
    return bool(length) and len(head) > HEADER and head[HEADER] in _EVENT_STARTS


def _unpacked_head(head: bytes) -> bytes:
    if not head.startswith(_GZIP):
        return head
    try:
        return zlib.decompressobj(_GZIP_BITS).decompress(head, 1 << 16)
    except zlib.error:
        return b""


def _first_wall(head: bytes, source: Source) -> float:
    """Wall time of the first record that shows in the head, else the time in the file name, else 0."""
    for position in [0] if header_length(head) is not None else find_headers(head)[:1].tolist():
        start = position + HEADER
        if head[start : start + 1] == b"\x09" and len(head) >= start + 9:
            wall = float(struct.unpack_from("<d", head, start + 1)[0])
            if 0 < wall < 1e12:
                return wall
    named = _NAME_TIME.search(source.path.name)
    return float(named[1]) if named else 0.0


def _lfs_size(head: bytes) -> str:
    found = re.search(rb"\nsize (\d{1,15})\n", head[:1024])
    return f" ({int(found[1]):,} bytes)" if found else ""


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]
