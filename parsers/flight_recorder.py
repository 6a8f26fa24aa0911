"""Records of the flight recorder (``forensics.recorder``): every step's values, and digests of its batch.

Rank 0 of a job with one rank writes ``loss``; with several ranks the losses are those of one rank each and are named so.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from forensics.flight.records import MAGIC, Frame, Gap, Kind, StepRecord, decode, decode_step, signed
from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.sink import Sink

NAME = "flight_recorder"

MAX_BYTES = 1 << 31
"""A recorder with its default bounds writes a quarter of it into one file."""
BATCH_ID = "batch_id"
MAX_NOTES = 50
"""Remarks kept of one file."""
HEAD_RECORDS = 8
"""Records of the head among which the session is looked for."""

_INT64 = range(-(2**63), 2**63)
_FILE = re.compile(r"rank(\d{1,9})")


@dataclass(slots=True)
class _Columns:
    """What the records of a file say, column by column."""

    steps: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    digests: list[int] = field(default_factory=list)
    values: dict[str, tuple[list[int], list[float]]] = field(default_factory=dict)
    """Name -> (places in ``steps``, values)."""
    notes: list[Mapping[str, object]] = field(default_factory=list)
    samples: list[tuple[int, array[int] | tuple[str, ...]]] = field(default_factory=list)
    rank: int = 0
    world: int = 1
    unreadable: int = 0

    def add(self, record: StepRecord, number: int) -> None:
        place = len(self.steps)
        self.steps.append(record.step)
        self.times.append(record.time)
        self.numbers.append(number)
        self.digests.append(record.batch_digest)
        if record.sample_ids:
            self.samples.append((record.step, _packed(record.sample_ids)))
        for name, value in record.values.items():
            places, column = self.values.setdefault(name, ([], []))
            places.append(place)
            column.append(value)


def _packed(ids: Sequence[int | str]) -> array[int] | tuple[str, ...]:
    """Ids in as little memory as they need."""
    try:
        return array("q", ids)  # type: ignore[arg-type]
    except (TypeError, OverflowError):
        return tuple(map(str, ids))


def sniff(source: Source) -> Claim | None:
    """Claim by the first bytes. The order of the run puts ranks one after the other, and of one rank the older half first."""
    if not source.head.startswith(MAGIC):
        return None
    found = _FILE.match(source.path.name)
    rank, began = int(found[1]) if found else 0, 0.0
    for number, item in enumerate(decode(source.head)):
        if number >= HEAD_RECORDS:
            break
        if isinstance(item, Frame) and item.kind == Kind.SESSION:
            began = _float(_object(item.payload).get("time"))
            break
    return Claim(NAME, 100, (RunKey(order=rank * 1e11 + began),))


def parse(source: Source, sink: Sink, run: RunKey) -> None:  # noqa: ARG001 - a file holds one rank of one run
    """Read every record whose checksum holds; ``records`` is the number of the record in the file."""
    with source.path.open("rb") as file:
        data = file.read(MAX_BYTES)
    sink.progress(len(data))
    columns, names = _Columns(), list[str]()
    for item in decode(data):
        if isinstance(item, Gap):
            _damaged(item, sink)
        else:
            names = _take(item, columns, names)
    if source.size > MAX_BYTES:
        sink.damage(f"larger than {MAX_BYTES} bytes", "the records past that")
    if columns.unreadable:
        sink.damage("records whose content does not fit their kind", f"{columns.unreadable} records")
    _emit(columns, sink)


def _take(item: Frame, columns: _Columns, names: list[str]) -> list[str]:
    """Take one record; the names of the values that follow."""
    try:
        if item.kind == Kind.STEP:
            columns.add(decode_step(item.payload, names), item.number)
        elif item.kind == Kind.NAMES:
            listed = json.loads(item.payload)
            return [str(name)[:200] for name in listed] if isinstance(listed, list) else names
        elif item.kind == Kind.SESSION:
            facts = _object(item.payload)
            columns.rank, columns.world = int(_float(facts.get("rank"))), max(1, int(_float(facts.get("world"), 1.0)))
        elif item.kind == Kind.NOTE and len(columns.notes) < MAX_NOTES:
            columns.notes.append(_object(item.payload))
    except (ValueError, RecursionError, OverflowError):
        columns.unreadable += 1
    return names


def _damaged(gap: Gap, sink: Sink) -> None:
    if gap.at_end:
        sink.damage("the last record is cut: the process died while it wrote, or still writes", f"{gap.size} bytes at the end")
    else:
        sink.damage(f"no record at byte {gap.offset}", f"{gap.size} bytes")


def _emit(columns: _Columns, sink: Sink) -> None:
    for name, (places, values) in columns.values.items():
        steps, times, numbers = ([column[p] for p in places] for column in (columns.steps, columns.times, columns.numbers))
        for shown in _shown(name, columns.rank, columns.world):
            sink.points(shown, steps, values, wall_times=times, records=numbers)
    batches = [place for place, digest in enumerate(columns.digests) if digest]
    steps, times, numbers = ([column[p] for p in batches] for column in (columns.steps, columns.times, columns.numbers))
    name = BATCH_ID if columns.rank == 0 else f"rank{columns.rank}/{BATCH_ID}"
    sink.points(name, steps, [signed(columns.digests[p]) for p in batches], wall_times=times, records=numbers)
    for step, ids in columns.samples:
        sink.samples(step, ids)
    said = [text for note in columns.notes if (text := _text(note))]
    if said:
        sink.note(f"flight_recorder_rank{columns.rank}", said)


def _shown(name: str, rank: int, world: int) -> tuple[str, ...]:
    """Under which names a value is shown. A loss of one of several ranks is not the loss of the run."""
    if world == 1 and rank == 0:
        return (name,)
    if name == "loss":
        return ("loss/flight_rank0", "loss_rank_0") if rank == 0 else (f"loss_rank_{rank}",)
    return (name,) if rank == 0 else ()


def _text(note: Mapping[str, object]) -> str:
    what = str(note.get("what"))[:100]
    if what in {"closed", "batch kept"}:
        return ""
    step, why = note.get("step"), str(note.get("why", ""))[:200]
    return what + (f" at step {step}" if step is not None else "") + (f": {why}" if why else "")


def _object(payload: bytes) -> Mapping[str, object]:
    content = json.loads(payload)
    if not isinstance(content, dict):
        raise ValueError("not an object")
    return content


def _float(value: object, default: float = 0.0) -> float:
    return float(value) if isinstance(value, (int, float)) and abs(value) < 1e11 else default
