"""Find what went wrong in a training run, at which step, and why.

``forensics.analyze(path)`` reads a run and returns its Case; ``forensics.load(path)`` only reads it;
``forensics.changepoints(values)`` divides any series. They are imported when first used: ``import forensics`` itself loads
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forensics.version import __version__

if TYPE_CHECKING:
    from forensics.loading import load
    from forensics.pipeline import analyze
    from forensics.primitives.changepoints import changepoints

__all__ = ["__version__", "analyze", "changepoints", "load"]

_LAZY = {"analyze": "forensics.pipeline", "load": "forensics.loading", "changepoints": "forensics.primitives.changepoints"}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
