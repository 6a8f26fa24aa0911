"""The parsers that ship with forensics, and those that others register under the entry point group ``forensics.parsers``.

Each is imported when it is first asked for: a log that is plainly W&B's never pays for the patterns of console logs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import cast

from forensics.parsers.interface import Claim, Parser, RunKey, Source
from forensics.parsers.sink import Sink

MODULES = (
    "flight_recorder",
    "wandb",
    "tensorboard",
    "mlflow_sqlite",
    "mlflow_files",
    "hf_trainer",
    "jsonl",
    "json_history",
    "parquet",
    "csv_table",
    "gzipped",
    "config_files",
    "console.megatron",
    "console.llmc",
    "console.modded_nanogpt",
    "console.nanogpt",
    "console.torchtitan",
    "console.olmo",
    "console.fairseq",
    "console.axolotl",
    "console.hf_print",
    "console.lightning",
    "console.composer",
    "console.pytorch_examples",
    "console.deepspeed",
    "console.generic",
)
"""Modules in this folder. The order is the reading order of a run's sources: exact values before rounded ones."""

SIGNS: Mapping[str, Callable[[Source], bool]] = {
    "flight_recorder": lambda source: source.head.startswith(b"FLIGHT1"),
    "wandb": lambda source: source.head.startswith(b":W&B") or source.path.suffix == ".wandb",
    "parquet": lambda source: source.head.startswith(b"PAR1"),
    "gzipped": lambda source: source.path.suffix.lower() == ".gz",
    "json_history": lambda source: source.head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"[", b"{"),
    "tensorboard": lambda source: "tfevents" in source.path.name or source.head[4:8] == bytes(4) or source.head.startswith(b"\x1f\x8b"),
}
"""What a file must show for its parser to be imported at all, where the import costs a tenth of reading a small log."""

GROUP = "forensics.parsers"

CONSOLE = "console."

Loader = Callable[[], Parser]
Waiting = Iterable[tuple[str, Loader]]


class Parsers:
    """The parsers in the order they are asked, and a sentence for each that could not be loaded.

    Those of console logs are asked last, after those that others registered: they know a text by its lines.
    """

    def __init__(self, loaded: Iterable[Parser] = (), failed: Iterable[str] = (), waiting: Waiting = (), console: Waiting = ()) -> None:
        self._plain = list(loaded)
        self._console: list[Parser] = []
        self._waiting, self._waiting_console = iter(waiting), iter(console)
        self.problems = list(failed)
        """What failed so far; ``failed`` loads the rest first."""

    def plain(self) -> Iterator[Parser]:
        """Those of structured logs."""
        return self._each(self._plain, self._waiting)

    def console(self) -> Iterator[Parser]:
        """Those of console logs."""
        return self._each(self._console, self._waiting_console)

    @property
    def loaded(self) -> tuple[Parser, ...]:
        """All of them."""
        return (*self.plain(), *self.console())

    @property
    def failed(self) -> tuple[str, ...]:
        """All that could not be loaded."""
        for _ in chain(self.plain(), self.console()):
            pass
        return tuple(self.problems)

    def named(self, name: str) -> Parser:
        """The parser of a claim. Raises KeyError."""
        for parser in chain(self.plain(), self.console()):
            if name == parser.NAME:
                return parser
        raise KeyError(name)

    def _each(self, loaded: list[Parser], waiting: Iterator[tuple[str, Loader]]) -> Iterator[Parser]:
        place = 0
        while place < len(loaded) or self._load(loaded, waiting):
            yield loaded[place]
            place += 1

    def _load(self, loaded: list[Parser], waiting: Iterator[tuple[str, Loader]]) -> bool:
        """Load one more; False where there is none."""
        for label, load in waiting:
            try:
                loaded.append(load())
            except Exception as problem:  # noqa: BLE001 - one broken parser must not take the others with it
                self.problems.append(f"{label} could not be loaded ({type(problem).__name__}: {problem})")
            else:
                return True
        return False


@lru_cache(maxsize=1)
def parsers() -> Parsers:
    """All parsers. One that fails to import is left out and named in ``failed``."""
    console = [name for name in MODULES if name.startswith(CONSOLE)]
    plain = [name for name in MODULES if name not in console]
    return Parsers(waiting=chain(_own(plain), _others()), console=_own(console))


def _own(names: Sequence[str]) -> Iterator[tuple[str, Loader]]:
    return ((f"parser {name}", _module(name)) for name in names)


def _others() -> Iterator[tuple[str, Loader]]:
    if _registered():
        from importlib.metadata import entry_points  # noqa: PLC0415 - costs 0.04 s of import

        for entry in entry_points(group=GROUP):
            yield f"plugin {entry.name}", cast("Loader", entry.load)


def _module(name: str) -> Loader:
    return lambda: _Later(name) if name in SIGNS else _imported(name)


def _imported(name: str) -> Parser:
    return cast("Parser", import_module(f"forensics.parsers.{name}"))


class _Later:
    """Stands for a parser until a file shows its sign."""

    def __init__(self, name: str) -> None:
        self.NAME = name

    def sniff(self, source: Source) -> Claim | None:
        """Ask the parser, where the file may be its own."""
        return _imported(self.NAME).sniff(source) if not source.is_dir and SIGNS[self.NAME](source) else None

    def parse(self, source: Source, sink: Sink, run: RunKey) -> None:
        """Let the parser read."""
        _imported(self.NAME).parse(source, sink, run)


def _registered() -> bool:
    """Whether any installed package names the group; asked of the files themselves, for nearly always none does."""
    for folder in map(Path, sys.path):
        try:
            for place in folder.iterdir():
                if place.name.endswith((".dist-info", ".egg-info")) and _names_group(place / "entry_points.txt"):
                    return True
        except OSError:
            continue
    return any(folder.endswith((".zip", ".egg", ".whl")) for folder in sys.path if Path(folder).is_file())


def _names_group(path: Path) -> bool:
    try:
        return GROUP in path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
