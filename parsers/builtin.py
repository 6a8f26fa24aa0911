"""The parsers that ship with forensics, and those that others register under the entry point group ``forensics.parsers``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
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


@dataclass(frozen=True, slots=True)
class Parsers:
    """What could be loaded, and a sentence for each that could not."""

    loaded: tuple[Parser, ...]
    failed: tuple[str, ...]

    def named(self, name: str) -> Parser:
        """The parser of a claim. Raises KeyError."""
        for parser in self.loaded:
            if name == parser.NAME:
                return parser
        raise KeyError(name)


@lru_cache(maxsize=1)
def parsers() -> Parsers:
    """All parsers. One that fails to import is left out and named in ``failed``."""
    loaded: list[Parser] = []
    failed: list[str] = []
    for name in MODULES:
        try:
            loaded.append(cast("Parser", import_module(f"forensics.parsers.{name}")))
        except Exception as problem:  # noqa: BLE001 - one broken parser must not take the others with it
            failed.append(f"parser {name} could not be loaded ({type(problem).__name__}: {problem})")
    for entry in entry_points(group=GROUP):
        try:
            loaded.append(cast("Parser", entry.load()))
        except Exception as problem:  # noqa: BLE001 - the same for other people's
            failed.append(f"plugin {entry.name} could not be loaded ({type(problem).__name__}: {problem})")
    return Parsers(tuple(loaded), tuple(failed))
