"""The protobuf wire format, and the few messages of a ``.wandb`` file that are read one at a time.

No schema compiler and no protobuf package: a message is a list of (field number, value) where a value is an integer
(varint or fixed) or bytes. Field numbers are those of wandb_internal.proto. A message that breaks off gives the fields
before the break.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

HISTORY, SUMMARY, CONFIG, STATS, METRIC, RUN, EXIT, HEADER = 2, 3, 5, 7, 12, 17, 18, 21
"""Field numbers of the record types that are read (and of the summary, which is skipped)."""

READ = frozenset({CONFIG, STATS, METRIC, RUN, EXIT, HEADER})

MAX_CONFIG_TEXT = 1 << 20
"""Bytes of JSON parsed for one configuration value; a longer one is data, not a setting."""

_VALUE_JSON = 16
_NUMBER = re.compile(rb"-?\d+(\.\d+)?([eE][-+]?\d+)?|NaN|-?Infinity")
_INT64 = range(-(1 << 63), 1 << 63)


class MalformedError(ValueError):
    """The bytes are not a protobuf message."""


@dataclass(frozen=True, slots=True)
class Item:
    """One logged value: its name ("/" between the levels of a nested key), and the number or None where it is none."""

    name: str
    value: float | None


@dataclass(frozen=True, slots=True)
class Row:
    """A history row that was read item by item. ``step`` is None where the row has no step field."""

    items: tuple[Item, ...]
    step: int | None
    whole: bool


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What the RunRecord says about the run; people and machines in it are left unread."""

    id: str = ""
    name: str = ""
    project: str = ""
    start_time: float | None = None
    resumed: bool = False
    config: tuple[ConfigChange, ...] = ()


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """A configuration value that was set (``remove`` false) or taken away; ``path`` is its nested name."""

    path: tuple[str, ...]
    value: object = None
    remove: bool = False


@dataclass(frozen=True, slots=True)
class Metric:
    """A ``define_metric`` call: the metric ``name``, or all that match ``glob``, are drawn over ``step_metric``."""

    name: str
    glob: str
    step_metric: str


@dataclass(frozen=True, slots=True)
class Stats:
    """One sample of the system metrics. ``time`` in UTC epoch seconds."""

    time: float
    items: tuple[Item, ...]


def spans(data: bytes, *, cut: bool = False) -> Iterator[tuple[int, int, int, int]]:
    """The fields of a message as (field number, wire type, first byte, end). Raises MalformedError where they break off.

    With ``cut``, a last field of bytes that runs past the message ends with it.
    """
    at, stop = 0, len(data)
    while at < stop:
        tag, at = varint(data, at)
        wire = tag & 7
        if wire == 0:
            end = varint(data, at)[1]
        elif wire == 2:
            size, at = varint(data, at)
            end = at + size
        elif wire in {1, 5}:
            end = at + (8 if wire == 1 else 4)
        else:
            raise MalformedError(f"wire type {wire}")
        if cut and wire == 2:
            end = min(end, stop)
        if end > stop:
            raise MalformedError("field runs past its message")
        yield tag >> 3, wire, at, end
        at = end


def fields(data: bytes, *, cut: bool = False) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message as (field number, value), in order. Raises MalformedError where they break off."""
    for field, wire, at, end in spans(data, cut=cut):
        if wire == 0:
            yield field, varint(data, at)[0]
        else:
            yield field, data[at:end] if wire == 2 else int.from_bytes(data[at:end], "little")


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A varint and the position after it. Raises MalformedError."""
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
    raise MalformedError("varint does not end")


def known_fields(data: bytes, *, cut: bool = False) -> list[tuple[int, int | bytes]]:
    """The fields of a message as far as it can be read. ``cut`` as for ``spans``."""
    found = []
    try:
        for entry in fields(data, cut=cut):
            found.append(entry)  # noqa: PERF402 - what came before the break must stay
    except MalformedError:
        pass
    return found


def signed(value: int) -> int:
    """A varint as int64."""
    return value - (1 << 64) if value >> 63 else value


def number(text: bytes) -> float | None:
    """A JSON number, bare NaN or Infinity, or boolean as int (where it is one and fits int64) or float; else None."""
    if text in {b"true", b"false"}:
        return int(text == b"true")
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    if match[1] is None and match[2] is None and text[-1:].isdigit() and len(text) <= 20 and (value := int(text)) in _INT64:
        return value
    return float(text)


def row(data: bytes) -> Row:
    """A HistoryRecord, item by item. ``whole`` is false where it breaks off."""
    items: list[Item] = []
    step: int | None = None
    try:
        for field, value in fields(data):
            if field == 1 and isinstance(value, bytes):
                items.append(item(value))
            elif field == 2 and isinstance(value, bytes):
                step = signed(_last_int(value, 1))
    except MalformedError:
        return Row(tuple(items), step, whole=False)
    return Row(tuple(items), step, whole=True)


def item(data: bytes) -> Item:
    """A HistoryItem or StatsItem: ``value_json`` first, then the typed value. Raises MalformedError."""
    key, nested, text, typed = "", [], None, None
    for field, value in fields(data):
        if field == 1 and isinstance(value, bytes):
            key = _text(value)
        elif field == 2 and isinstance(value, bytes):
            nested.append(_text(value))
        elif field == _VALUE_JSON and isinstance(value, bytes):
            text = value
        else:
            typed = _typed(field, value, typed)
    return Item(key or "/".join(nested), number(text) if text else typed)


def _typed(field: int, value: int | bytes, before: float | None) -> float | None:
    """The oneof of a HistoryItem: 3 none, 4 boolean, 5 integer (zigzag), 6 double, 7 text, 8 json."""
    if isinstance(value, bytes):
        return number(value) if field == 8 else None if field == 7 else before
    if field == 4:
        return int(value != 0)
    if field == 5:
        return (value >> 1) ^ -(value & 1)
    if field == 6:
        return float(struct.unpack("<d", value.to_bytes(8, "little"))[0])
    return None if field == 3 else before


def run_facts(data: bytes) -> RunFacts:
    """A RunRecord, as far as it can be read."""
    found = known_fields(data)
    seconds: float | None = None
    if start := _messages(found, 17):
        seconds = _timestamp(start[-1])
    return RunFacts(
        id=_string(found, 1),
        name=_string(found, 8),
        project=_string(found, 3),
        start_time=seconds,
        resumed=any(field in {18, 24} and value == 1 for field, value in found),
        config=tuple(change for message in _messages(found, 4) for change in config_changes(message)),
    )


def config_changes(data: bytes) -> tuple[ConfigChange, ...]:
    """A ConfigRecord: updates first, then removals. Values that are no JSON are kept as text."""
    changes = []
    for field, value in known_fields(data):
        if field in {1, 2} and isinstance(value, bytes):
            parts = known_fields(value)
            path = tuple(_text(part) for part in _messages(parts, 2)) or (_string(parts, 1),)
            text = _messages(parts, _VALUE_JSON)
            changes.append(ConfigChange(path, _json(text[-1]) if text else None, remove=field == 2))
    return tuple(changes)


def metric(data: bytes) -> Metric:
    """A MetricRecord."""
    found = known_fields(data)
    return Metric(_string(found, 1), _string(found, 2), _string(found, 4))


def stats(data: bytes) -> Stats:
    """A StatsRecord; items that are no numbers are left out."""
    found = known_fields(data)
    items = []
    for message in _messages(found, 3):
        try:
            items.append(item(message))
        except MalformedError:
            continue
    time = _messages(found, 2)
    return Stats(_timestamp(time[-1]) if time else float("nan"), tuple(i for i in items if i.value is not None and i.name))


def exit_code(data: bytes) -> int:
    """The exit code of a RunExitRecord."""
    return signed(_last_int(data, 1))


def writer_version(data: bytes) -> str:
    """The producer named by a HeaderRecord, without its build suffix."""
    info = _messages(known_fields(data), 1)
    return _string(known_fields(info[-1]), 1).partition("+")[0] if info else ""


def _timestamp(data: bytes) -> float:
    return signed(_last_int(data, 1)) + _last_int(data, 2) * 1e-9


def _last_int(data: bytes, field: int) -> int:
    values = [value for number_, value in known_fields(data) if number_ == field and isinstance(value, int)]
    return values[-1] if values else 0


def _messages(found: Sequence[tuple[int, int | bytes]], field: int) -> list[bytes]:
    return [value for number_, value in found if number_ == field and isinstance(value, bytes)]


def _string(found: Sequence[tuple[int, int | bytes]], field: int) -> str:
    values = _messages(found, field)
    return _text(values[-1]) if values else ""


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _json(text: bytes) -> object:
    if len(text) > MAX_CONFIG_TEXT:
        return f"({len(text)} bytes)"
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return _text(text)
    return value
