"""A byte-true writer of event files for tests, independent of the reader's code, and a one-call reader."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from forensics.model import Damage, Signal
from forensics.parsers import tensorboard
from forensics.parsers.interface import RunKey, Source
from forensics.parsers.sink import Collector

FIXTURES = Path(__file__).parents[3] / "fixtures" / "tensorboard"


def plain_crc(data: bytes) -> int:
    """CRC-32C bit by bit."""
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = (state >> 1) ^ (0x82F63B78 if state & 1 else 0)
    return state ^ 0xFFFFFFFF


def stored(data: bytes) -> bytes:
    crc = plain_crc(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def record(payload: bytes) -> bytes:
    head = struct.pack("<Q", len(payload))
    return head + stored(head) + payload + stored(payload)


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def message(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def simple(tag: str, value: float) -> bytes:
    """A Summary.Value with a simple_value."""
    return message(1, message(1, tag.encode()) + b"\x15" + struct.pack("<f", value))


def tensor(tag: str, content: bytes, metadata: bytes = b"") -> bytes:
    """A Summary.Value with a TensorProto."""
    return message(1, message(1, tag.encode()) + (message(9, metadata) if metadata else b"") + message(8, content))


def event(step: int, *values: bytes, wall: float = 1.7e9) -> bytes:
    head = b"\x09" + struct.pack("<d", wall) + (b"\x10" + varint(step) if step else b"")
    return head + (message(5, b"".join(values)) if values else b"")


def version(step: int = 0) -> bytes:
    return event(step) + message(3, b"brain.Event:2")


def curve_records(count: int, tag: str = "train/loss") -> list[bytes]:
    """The version record and ``count`` scalars, value = step / 4."""
    return [record(version())] + [record(event(step, simple(tag, step / 4), wall=1.7e9 + step)) for step in range(count)]


@dataclass(frozen=True)
class Read:
    signals: dict[str, Signal]
    damage: list[Damage]
    config: dict[str, object]
    notes: dict[str, object]

    @property
    def said(self) -> str:
        return " | ".join(f"{d.what}: {d.lost}" for d in self.damage)


def read_file(*paths: Path) -> Read:
    collector = Collector()
    for path in paths:
        tensorboard.parse(Source.of(path), collector.sink(path.name, tensorboard.NAME), RunKey())
    return Read({s.name: s for s in collector.signals()}, collector.damage, collector.config, collector.notes)


def read_bytes(folder: Path, data: bytes, name: str = "events.out.tfevents.1700000000.host") -> Read:
    path = folder / name
    path.write_bytes(data)
    return read_file(path)


def rows(signal: Signal) -> list[tuple[int, int, float]]:
    """(record, step, value) in the order written, NaN as a text so that rows compare."""
    assert signal.records is not None
    values = [str(v) if v != v else v for v in signal.values.tolist()]
    return list(zip(signal.records.tolist(), signal.steps.tolist(), values, strict=True))


def float32(values: list[object]) -> list[float]:
    return [float(np.float32(v)) for v in values]
