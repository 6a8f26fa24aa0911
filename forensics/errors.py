"""Errors a user can do something about. Everything else is a bug."""

from __future__ import annotations

from pathlib import Path


class InputError(Exception):
    """Nothing can be analysed. ``hint`` says what to do next."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class SeveralRunsError(InputError):
    """The path holds more than one run. ``runs`` are their names and paths."""

    def __init__(self, path: Path, runs: tuple[tuple[str, str], ...]) -> None:
        super().__init__(f"{path} holds {len(runs)} runs; say which", "give the path of one, or --run NAME")
        self.runs = runs
