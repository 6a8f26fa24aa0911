"""Accuracy: ``forensics bench`` on the labelled runs of fixtures/, and on the larger sets beside the checkout where they are."""

from __future__ import annotations

import sys
from pathlib import Path

from forensics.cli.main import main

ROOT = Path(__file__).parents[2]
SETS = (ROOT / "fixtures/labelled", ROOT.parent / "shared/bakeoff", ROOT.parent / "shared/faultlab")


def run() -> int:
    """Score every set that is there; the worst exit code."""
    worst = 0
    for folder in SETS:
        labels = folder / "labels.json"
        if not labels.exists():
            sys.stdout.write(f"\n{labels}: not here, skipped\n")
            continue
        sys.stdout.write(f"\n$ forensics bench {labels}\n")
        sys.stdout.flush()
        worst = max(worst, main(["bench", str(labels)]))
    return worst


if __name__ == "__main__":
    sys.exit(run())
