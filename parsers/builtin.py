"""The parsers that ship with forensics, and those that others register under the entry point group ``forensics.parsers``.

Each is imported when it is first asked for: a log that is plainly W&B's never pays for the patterns of console logs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import cast

from forensics.parsers.interface import Parser

MODULES = (
    "wandb",
    "tensorboard",
    "mlflow_sqlite",
    "mlflow_files",
    "hf_trainer",
    "jsonl",
    "csv_table",
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

GROUP = "forensics.parsers"

CONSOLE = "console."
"""Modules that are asked last, after those that others registered: they know a text by its lines."""

Loader = Callable[[], Parser]


class Parsers:
    """The parsers in the order they are asked, and a sentence for each that could not be loaded."""

    def __init__(self, loaded: Iterable[Parser] = (), failed: Iterable[str] = (), waiting: Iterable[tuple[str, Loader]] = ()) -> None:
        self._loaded = list(loaded)
        self._waiting = iter(waiting)
        self.problems = list(failed)
        """What failed so far; ``failed`` loads the rest first."""

    def __iter__(self) -> Iterator[Parser]:
        place = 0
        while place < len(self._loaded) or self._load():
            yield self._loaded[place]
            place += 1

    @property
    def loaded(self) -> tuple[Parser, ...]:
        """All of them."""
        return tuple(self)

    @property
    def failed(self) -> tuple[str, ...]:
        """All that could not be loaded."""
        for _ in self:
            pass
        return tuple(self.problems)

    def named(self, name: str) -> Parser:
        """The parser of a claim. Raises KeyError."""
        for parser in self:
            if name == parser.NAME:
                return parser
        raise KeyError(name)

    def _load(self) -> bool:
        """Load one more; False where there is none."""
        for label, load in self._waiting:
            try:
                self._loaded.append(load())
            except Exception as problem:  # noqa: BLE001 - one broken parser must not take the others with it
                self.problems.append(f"{label} could not be loaded ({type(problem).__name__}: {problem})")
            else:
                return True
        return False


@lru_cache(maxsize=1)
def parsers() -> Parsers:
    """All parsers. One that fails to import is left out and named in ``failed``."""
    return Parsers(waiting=_loaders(MODULES))


def _loaders(names: Sequence[str]) -> Iterator[tuple[str, Loader]]:
    for name in (m for m in names if not m.startswith(CONSOLE)):
        yield f"parser {name}", _module(name)
    if _registered():
        from importlib.metadata import entry_points  # noqa: PLC0415 - costs 0.04 s of import

        for entry in entry_points(group=GROUP):
            yield f"plugin {entry.name}", cast("Loader", entry.load)
    for name in (m for m in names if m.startswith(CONSOLE)):
        yield f"parser {name}", _module(name)


def _module(name: str) -> Loader:
    return lambda: cast("Parser", import_module(f"forensics.parsers.{name}"))


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
