"""Detectors and causes that others register under an entry point; a broken one never takes the analysis with it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points

DETECTORS = "forensics.detectors"
CAUSES = "forensics.causes"


@dataclass(frozen=True, slots=True)
class Plugins:
    """Loaded modules, and a sentence for each that could not be loaded."""

    loaded: tuple[object, ...]
    failed: tuple[tuple[str, str], ...]


@cache
def plugins(group: str) -> Plugins:
    """Everything registered under an entry point group, in order of name."""
    loaded: list[object] = []
    failed: list[tuple[str, str]] = []
    for entry in sorted(entry_points(group=group), key=lambda e: e.name):
        try:
            loaded.append(entry.load())
        except Exception as problem:  # noqa: BLE001 - other people's code
            failed.append((f"plugin {entry.name}", f"could not be loaded ({type(problem).__name__}: {problem})"))
    return Plugins(tuple(loaded), tuple(failed))
