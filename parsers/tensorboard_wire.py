"""Where things are in a serialised TensorBoard Event: a small protobuf wire walk that yields positions, not objects.

Positions serve twice: one record is read at them, and a whole group of records of the same shape is too. The fields used
are those of the public event.proto, summary.proto and tensor.proto; unknown ones are stepped over.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types. Groups (3, 4) do not occur in these messages."""

MAX_VARINT = 10
"""Bytes of the longest varint, a negative 64-bit number."""

RANK_LIMIT = 8
"""Dimensions looked at in a tensor shape; a scalar has none, or ones."""

SESSION_START = 1
"""SessionLog.status of a restarted writer."""


class MalformedError(ValueError):
    """The bytes are not a well-formed message."""


class Form(StrEnum):
    """How a number is stored: the numpy type code, or a varint."""

    FLOAT32 = "<f4"
    FLOAT64 = "<f8"
    INT32 = "<i4"
    INT64 = "<i8"
    VARINT = "varint"

    @property
    def is_int(self) -> bool:
        """Whether values are int64."""
        return self not in (Form.FLOAT32, Form.FLOAT64)


class Kind(StrEnum):
    """What a summary value that is not a scalar holds."""

    HISTOGRAM = "histogram"
    IMAGE = "image"
    AUDIO = "audio"
    TENSOR = "tensor"
    EMPTY = "empty"


MEDIA = (Kind.HISTOGRAM, Kind.IMAGE, Kind.AUDIO)
"""Kinds whose content says nothing about scalars; the others need a look at their metadata."""


class Field(NamedTuple):
    """One field of a message: its key (number * 8 + wire type) and the bytes ``start:stop`` of its content."""

    key: int
    start: int
    stop: int


class Scalar(NamedTuple):
    """A scalar value: the bytes of its tag and of its number. An empty number is zero, as protobuf leaves out zeros."""

    tag_start: int
    tag_stop: int
    form: Form
    start: int
    stop: int


class Other(NamedTuple):
    """A value that is not a scalar: its tag, and the bytes of its content and of its SummaryMetadata."""

    kind: Kind
    tag_start: int
    tag_stop: int
    start: int
    stop: int
    metadata_start: int
    metadata_stop: int


@dataclass(slots=True)
class EventMap:
    """Positions of everything of interest in an Event. Positions of absent things are -1 (wall) or empty ranges."""

    wall: int = -1
    step_start: int = 0
    step_stop: int = 0
    scalars: list[Scalar] = field(default_factory=list)
    others: list[Other] = field(default_factory=list)
    file_version: Field | None = None
    session_log: Field | None = None
    source: Field | None = None

    @property
    def plain(self) -> bool:
        """Nothing but scalars, and values whose content does not matter."""
        if self.file_version is not None or self.session_log is not None or self.source is not None:
            return False
        return all(other.kind in MEDIA for other in self.others)


def fields(data: bytes, start: int, stop: int) -> Iterator[Field]:
    """The fields of the message ``data[start:stop]`` in order. Raises MalformedError."""
    position = start
    while position < stop:
        key = data[position]
        position += 1
        if key >= 128:
            position -= 1
            after = varint_end(data, position, stop)
            key = varint(data, position, after)
            position = after
        wire = key & 7
        if wire == BYTES:
            after = varint_end(data, position, stop)
            end = after + varint(data, position, after)
            position = after
        elif wire == VARINT:
            end = varint_end(data, position, stop)
        elif wire == FIXED64:
            end = position + 8
        elif wire == FIXED32:
            end = position + 4
        else:
            raise MalformedError(f"wire type {wire} at byte {position}")
        if end > stop or key < 8:
            raise MalformedError(f"field at byte {position} leaves its message")
        yield Field(key, position, end)
        position = end


def varint_end(data: bytes, start: int, stop: int) -> int:
    """The position after the varint at ``start``. Raises MalformedError."""
    for position in range(start, min(stop, start + MAX_VARINT)):
        if data[position] < 128:
            return position + 1
    raise MalformedError(f"varint without end at byte {start}")


def varint(data: bytes, start: int, stop: int) -> int:
    """The unsigned value of the varint ``data[start:stop]``, 64 bits."""
    value = 0
    for position in range(stop - 1, start - 1, -1):
        value = value << 7 | data[position] & 127
    return value & 0xFFFFFFFFFFFFFFFF


def signed(value: int) -> int:
    """An unsigned 64-bit number as int64."""
    return value - (1 << 64) if value >> 63 else value


def number(data: bytes, form: Form, start: int, stop: int) -> float | int:
    """The number at a Scalar's bytes."""
    if start == stop:
        return 0 if form.is_int else 0.0
    if form is Form.VARINT:
        return signed(varint(data, start, stop))
    value: float | int = struct.unpack_from("<" + {"f4": "f", "f8": "d", "i4": "i", "i8": "q"}[form[1:]], data, start)[0]
    return value


def walk_event(data: bytes) -> EventMap:
    """Map one Event. As in protobuf, the last of a repeated single field counts. Raises MalformedError."""
    event = EventMap()
    for item in fields(data, 0, len(data)):
        match item.key:
            case 0x09:
                event.wall = item.start
            case 0x10:
                event.step_start, event.step_stop = item.start, item.stop
            case 0x2A:
                for value in fields(data, item.start, item.stop):
                    if value.key == 0x0A:
                        _walk_value(data, value, event)
            case 0x1A:
                event.file_version = item
            case 0x3A:
                event.session_log = item
            case 0x52:
                event.source = item
    return event


def _walk_value(data: bytes, outer: Field, event: EventMap) -> None:
    tag = metadata = Field(0, outer.start, outer.start)
    content: Field | None = None
    for item in fields(data, outer.start, outer.stop):
        match item.key:
            case 0x0A:
                tag = item
            case 0x4A:
                metadata = item
            case 0x15 | 0x22 | 0x2A | 0x32 | 0x42:
                content = item
    if content is not None and content.key == 0x15:
        event.scalars.append(Scalar(tag.start, tag.stop, Form.FLOAT32, content.start, content.stop))
        return
    if content is not None and content.key == 0x42:
        found = _walk_tensor(data, content)
        if found is not None:
            event.scalars.append(Scalar(tag.start, tag.stop, *found))
            return
    kinds = {0x22: Kind.IMAGE, 0x2A: Kind.HISTOGRAM, 0x32: Kind.AUDIO, 0x42: Kind.TENSOR}
    kind = Kind.EMPTY if content is None else kinds[content.key]
    place = content or Field(0, outer.stop, outer.stop)
    event.others.append(Other(kind, tag.start, tag.stop, place.start, place.stop, metadata.start, metadata.stop))


class _Number(NamedTuple):
    form: Form
    start: int
    stop: int


class _Storage(NamedTuple):
    """How a dtype is stored: raw in tensor_content, or as elements of the repeated field ``field``."""

    raw: Form
    field: int
    element: Form


_STORAGE = {
    1: _Storage(Form.FLOAT32, 5, Form.FLOAT32),
    2: _Storage(Form.FLOAT64, 6, Form.FLOAT64),
    3: _Storage(Form.INT32, 7, Form.VARINT),
    9: _Storage(Form.INT64, 10, Form.VARINT),
}
"""Numeric dtypes that summary writers use for scalars: float, double, int32, int64."""

_WIDTH = {Form.FLOAT32: 4, Form.FLOAT64: 8, Form.INT32: 4, Form.INT64: 8}


def _walk_tensor(data: bytes, outer: Field) -> _Number | None:
    """The only number of a TensorProto, or None where it is not a scalar of a known dtype."""
    dtype = 0
    parts: list[Field] = []
    for item in fields(data, outer.start, outer.stop):
        if item.key == 0x08:
            dtype = varint(data, item.start, item.stop)
        elif item.key != 0x12:
            parts.append(item)
        elif not _one_element(data, item):
            return None
    storage = _STORAGE.get(dtype)
    if storage is None:
        return None
    numbers: list[_Number] = []
    for item in parts:
        if item.key == 0x22 and item.stop > item.start:
            if item.stop - item.start != _WIDTH[storage.raw]:
                return None
            return _Number(storage.raw, item.start, item.stop)
        if item.key >> 3 == storage.field and len(numbers) < 2:
            numbers.extend(_elements(data, item, storage.element))
    return _only(numbers, _Number(storage.raw, outer.stop, outer.stop))


def _only(numbers: list[_Number], absent: _Number) -> _Number | None:
    if len(numbers) > 1:
        return None
    return numbers[0] if numbers else absent


def _elements(data: bytes, item: Field, form: Form) -> list[_Number]:
    """Elements of a repeated number, packed or not; two stand for any larger count."""
    if item.key & 7 != BYTES:
        expected = {Form.FLOAT32: FIXED32, Form.FLOAT64: FIXED64, Form.VARINT: VARINT}[form]
        return [_Number(form, item.start, item.stop)] if item.key & 7 == expected else []
    out: list[_Number] = []
    position = item.start
    while position < item.stop and len(out) < 2:
        end = varint_end(data, position, item.stop) if form is Form.VARINT else position + _WIDTH[form]
        if end > item.stop:
            raise MalformedError(f"packed numbers at byte {item.start} are cut")
        out.append(_Number(form, position, end))
        position = end
    return out


def _one_element(data: bytes, shape: Field) -> bool:
    """Whether a TensorShapeProto describes one element: no dimension, or all of size one."""
    for rank, dim in enumerate(fields(data, shape.start, shape.stop)):
        if rank >= RANK_LIMIT:
            return False
        if dim.key == 0x12:
            size = 0
            for item in fields(data, dim.start, dim.stop):
                if item.key == 0x08:
                    size = varint(data, item.start, item.stop)
            if size != 1:
                return False
    return True
