"""The batches to leave out when the run is done again, ready to paste.

Only what the data did is answered by skipping: exactly the batches where they are known, else the published
practice (go back about 100 steps, leave out 200 to 500 batches). What to paste goes to standard output, why
to standard error.

formats:
  megatron   --iterations-to-skip N N N ... of Megatron-LM
  range      FIRST-LAST FIRST-LAST, as --skip-train-iteration-range of several Megatron forks takes them
  lightning  skip_batches.json: the list of batch indices that Lightning's SpikeDetection writes. Indices are
             steps of the log: with several epochs or gradient accumulation, convert them first
  json       everything, with batch ids, for a sampler or a data loader of your own
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from forensics.cli.options import case_of, output
from forensics.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``forensics skip``."""
    parser.add_argument("case", type=Path, metavar="CASE_OR_RUN", help="a case.json, or a run that is analysed now")
    parser.add_argument("--format", choices=["megatron", "range", "lightning", "json"], default="range", help="what to write (default: range)")
    parser.add_argument("--event", metavar="ID", help="for this event only, even if the data are not its best explanation")
    parser.add_argument("--out", metavar="OUT", default="-", help="write to a file (default: standard output)")


def execute(args: argparse.Namespace) -> int:
    """Write the steps, and say why; nothing where no event is answered by skipping."""
    from forensics.advice.skip import FORMATS, batches_to_skip

    case = case_of(args.case)
    try:
        skips = batches_to_skip(case, args.event)
    except KeyError as problem:
        known = ", ".join(e.id for e in case.events) or "none"
        raise InputError(f"the case has no event {args.event!r}", f"events in it: {known}") from problem
    if not skips:
        sys.stderr.write("nothing to skip: no event of this case is best explained by its data\n")
    if skips or args.format in {"json", "lightning"}:
        with output(args.out) as stream:
            stream.write(FORMATS[args.format](skips) + "\n")
    for skip in skips:
        cause = f" [{skip.cause}]" if skip.cause else ""
        sys.stderr.write(f"{skip.event}{cause}: {skip.why}; go back to a checkpoint of step {skip.go_back_to} or before\n")
    return 0
