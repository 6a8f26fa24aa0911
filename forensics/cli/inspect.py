"""Show how the names of a run were read, or what a checkpoint holds; write it as JSON, or every point as Parquet."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from forensics.cli import checkpoint
from forensics.cli.checkpoint import SORTS
from forensics.cli.options import add_run_arguments, metrics, output, reading
from forensics.parsers.checkpoints.reading import looks_like_checkpoint

if TYPE_CHECKING:
    from forensics.model import Run, SignalInfo


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``forensics inspect``."""
    add_run_arguments(parser)
    parser.add_argument("--json", metavar="OUT", help="write run, signals and damage (or the checkpoint) as JSON; - for standard output")
    parser.add_argument("--export", metavar="OUT.parquet", help="write every point: signal, attempt, step, wall_time, value, value_int, source")


    group = parser.add_argument_group("for a checkpoint")
    text = "read the numbers: norms, largest and stray elements, non-finite ones (default: below 256 MiB)"
    group.add_argument("--norms", action=argparse.BooleanOptionalAction, default=None, help=text)
    group.add_argument("--sort", choices=SORTS, default="offenders", help="order of the tensors (default: offenders, what looks worst first)")
    group.add_argument("--all", action="store_true", help="show every tensor")


def execute(args: argparse.Namespace) -> int:
    """Read the run, or the checkpoint, and show it."""
    if looks_like_checkpoint(args.path):
        return checkpoint.inspect(args.path, norms=args.norms, sort=args.sort, everything=args.all, json_out=args.json, quiet=args.quiet)
    from forensics.loading import describe, load

    with reading(args.path, args.quiet) as progress:
        run = load(args.path, metrics=metrics(args.metric), choose=args.run, progress=progress)
    infos = [describe(s) for s in run.signals]
    if args.json:
        with output(args.json) as stream:
            json.dump(_document(run, infos), stream, indent=1, allow_nan=False)
            stream.write("\n")
    if args.export:
        from forensics.export import write_parquet

        write_parquet(run, args.export)
    if not args.quiet and args.json != "-":
        _show(run, infos)
    return 3 if run.damage else 0


def _document(run: Run, infos: list[SignalInfo]) -> dict[str, object]:
    from forensics.loading import header
    from forensics.model import to_json

    return {"schema": "forensics/1", "run": to_json(header(run)), "signals": to_json(infos), "damage": to_json(run.damage)}


def _show(run: Run, infos: list[SignalInfo]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False, markup=False)
    table = Table(box=None, pad_edge=False)
    for title, side in (("logged name", "left"), ("read as", "left"), ("points", "right"), ("steps", "right"), ("every", "right"), ("not finite", "right")):
        table.add_column(title, justify="right" if side == "right" else "left", overflow="fold")
    for info in infos:
        role = "" if info.role is None else info.role + ("" if info.primary else " (another)")
        span = "" if info.first_step is None else f"{info.first_step} to {info.last_step}"
        table.add_row(Text(info.name), Text(role), str(info.points), span, "" if info.every is None else f"{info.every:g}", str(info.non_finite or ""))
    console.print(Text(f"{run.name}: {len(infos)} signals, {sum(i.points for i in infos):,} points, {len(run.attempts) or 1} attempt(s)"))
    for source in run.sources:
        console.print(Text(f"  {source.format}: {source.path} ({source.points:,} points)"))
    console.print(table)
    for damage in run.damage:
        console.print(Text(f"damaged: {damage.path}: {damage.what}; lost: {damage.lost}"))
