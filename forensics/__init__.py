"""Find what went wrong in a training run, at which step, and why."""

from forensics.version import __version__

__all__ = ["__version__"]
