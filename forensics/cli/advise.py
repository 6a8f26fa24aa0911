"""What to do now: the checkpoint to go back to and why, the batches to leave out, and what to log next time, as code.

Code for the training framework that wrote the log goes to standard output after the advice; --code writes only it.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from forensics.cli.options import case_of

if TYPE_CHECKING:
    from forensics.advice.checkpoints import Judge, Saved


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``forensics advise``."""
    parser.add_argument("case", type=Path, metavar="CASE_OR_RUN", help="a case.json, or a run that is analysed now")
    parser.add_argument("--checkpoints", type=Path, metavar="DIR", help="where checkpoints lie (default: the run's own folder)")
    parser.add_argument("--code", action="store_true", help="only the code that logs what was missing")


def execute(args: argparse.Namespace) -> int:
    """Print advice, then code."""
    from forensics.advice.logging import logging_advice
    from forensics.advice.sentences import going_back, leaving_out
    from forensics.reports import wording

    case = case_of(args.case)
    advice = logging_advice(case)
    if args.code:
        sys.stdout.write(advice.code)
        return 0
    run = Path(case.run.path)
    saved, judge = _saved(args.checkpoints or (run if run.is_dir() else run.parent))
    rows = [wording.without_home(row) for row in going_back(case, saved, judge)]
    rows = rows or ["Nothing went wrong in this run: no step to go back to, no batch to leave out."]
    rows += leaving_out(case)
    if advice.wanted or advice.settings:
        rows.append(f"For next time ({advice.framework.value}):")
        rows += [f"  - log {w.name}: {w.why}" for w in advice.wanted] + [f"  - set {option}" for option in advice.settings]
    for row in rows:
        indent = "    " if row.startswith("  - ") else ""
        sys.stdout.write(textwrap.fill(wording.line(row) if not indent else "  " + wording.line(row), 100, subsequent_indent=indent) + "\n")
    if advice.code:
        sys.stdout.write("\n" + advice.code)
    return 0


def _saved(folder: Path) -> tuple[Sequence[Saved], Judge | None]:
    """Checkpoints of a folder with the step they hold, and how to look into them; by their names alone where none can be read."""
    from forensics.advice.checkpoints import Saved, find_saved
    from forensics.parsers.checkpoints.beside import checkpoints_of
    from forensics.parsers.checkpoints.health import health

    known = {c.path: c for c in checkpoints_of(folder) if c.step is not None} if folder.is_dir() else {}
    if not known:
        return find_saved(folder), None

    def judge(saved: Saved) -> str | None:
        found = health(known[saved.path])
        problems = [f.text for f in found.faults] + [d.what for d in found.damage]
        return None if found.good is not False else (problems[0] if problems else "it cannot be read whole")

    return [Saved(path, c.step) for path, c in known.items() if c.step is not None], judge
