"""Reads a text with a console parser, for the tests of this folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from forensics.model import Signal
from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.sink import Collector, Sink

FIXTURES = Path(__file__).parents[4] / "fixtures" / "console"


class ConsoleParser(Protocol):
    NAME: str

    def sniff(self, source: Source) -> Claim | None: ...

    def parse(self, source: Source, sink: Sink, run: RunKey) -> None: ...


@dataclass
class Read:
    signals: dict[str, Signal]
    collector: Collector

    @property
    def damage(self) -> list[str]:
        return [f"{d.what}: {d.lost}" for d in self.collector.damage]

    @property
    def notes(self) -> dict[str, object]:
        return self.collector.notes

    def points(self, name: str) -> list[tuple[int, float]]:
        signal = self.signals[name]
        return list(zip(signal.steps.tolist(), signal.values.tolist(), strict=True))

    def lines(self, name: str) -> list[int]:
        records = self.signals[name].records
        assert records is not None
        return [int(line) for line in records]


def read(parser: ConsoleParser, path: Path) -> Read:
    collector = Collector()
    sink = collector.sink(str(path), parser.NAME)
    parser.parse(Source.of(path), sink, RunKey())
    return Read({s.name: s for s in collector.signals()}, collector)


def read_text(parser: ConsoleParser, folder: Path, text: str | bytes, name: str = "train.log") -> Read:
    return read(parser, put(folder, text, name))


def put(folder: Path, text: str | bytes, name: str = "train.log") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def claim(parser: ConsoleParser, path: Path) -> int:
    found = parser.sniff(Source.of(path))
    return 0 if found is None else found.confidence
