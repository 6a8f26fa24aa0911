"""Two runs, step by step: where they part, which settings differ, what happened to both at the same step."""

from forensics.comparison.compare import compare

__all__ = ["compare"]
