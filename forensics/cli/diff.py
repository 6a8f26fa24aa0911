"""What changed between two checkpoints, tensor by tensor, and what did not move at all.

Formats and shard layouts may differ; parameters are matched by name.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forensics.cli.options import output
from forensics.errors import InputError

if TYPE_CHECKING:
    from forensics.model.checkpoint import Checkpoint, TensorChange
    from forensics.parsers.checkpoints.differences import Difference

ROWS = 30
"""Tensors shown unless --all is given."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``forensics diff``."""
    parser.add_argument("before", type=Path, help="the earlier checkpoint: a file or a folder")
    parser.add_argument("after", type=Path, help="the later one")
    parser.add_argument("--json", metavar="OUT", help="write the changes as JSON; - for standard output")
    parser.add_argument("--sort", choices=("relative", "change", "name"), default="relative", help="order of the tensors (default: relative)")
    parser.add_argument("--all", action="store_true", help="show every tensor")
    parser.add_argument("--quiet", action="store_true", help="nothing on the terminal")


def execute(args: argparse.Namespace) -> int:
    """Compare and show."""
    from forensics.parsers.checkpoints.differences import compare

    difference = compare(_read(args.before), _read(args.after))
    if args.json:
        with output(args.json) as stream:
            json.dump(_document(difference), stream, indent=1, allow_nan=False)
            stream.write("\n")
    if not args.quiet and args.json != "-":
        _show(difference, args.sort, args.all)
    return 3 if difference.damage else 0


def _read(path: Path) -> Checkpoint:
    from forensics.parsers.checkpoints.reading import read

    if not path.exists():
        raise InputError(f"{path} does not exist", "give two checkpoints: files, or folders that hold one each")
    checkpoint = read(path)
    if checkpoint.format == "unknown":
        raise InputError(f"{path}: {checkpoint.damage[0].what}", "forensics inspect says what a file is")
    return checkpoint


def _document(difference: Difference) -> dict[str, Any]:
    from forensics.model.codec import to_json
    from forensics.parsers.checkpoints.differences import settings_changed

    return {
        "schema": "forensics/1",
        "before": {"path": difference.before.path, "format": difference.before.format, "step": difference.before.step},
        "after": {"path": difference.after.path, "format": difference.after.format, "step": difference.after.step},
        "settings": {k: to_json(list(v)) for k, v in settings_changed(difference.before, difference.after).items()},
        "tensors": [{**to_json(c), "relative": to_json(c.relative)} for c in difference.changes],
        "still": [{"name": c.name, "kind": c.kind.value} for c in difference.changes if c.still],
        "appeared": [{"name": t.name, "kind": t.kind.value} for t in difference.appeared],
        "vanished": [{"name": t.name, "kind": t.kind.value} for t in difference.vanished],
        "reshaped": [{"name": a.name, "kind": a.kind.value, "before": list(a.shape), "after": list(b.shape)} for a, b in difference.reshaped],
        "retyped": [{"name": a.name, "kind": a.kind.value, "before": a.dtype, "after": b.dtype} for a, b in difference.retyped],
        "damage": to_json(difference.damage),
    }


def _show(difference: Difference, sort: str, everything: bool) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from forensics.parsers.checkpoints.differences import settings_changed

    console = Console(file=sys.stdout, highlight=False, markup=False)

    def say(line: str) -> None:
        console.print(Text(line), soft_wrap=True)

    say(f"{difference.before.path} (step {difference.before.step}) -> {difference.after.path} (step {difference.after.step})")
    for title, (old, new) in settings_changed(difference.before, difference.after).items():
        say(f"  {title}: {old} -> {new}")
    for line in _summary(difference):
        say(line)
    changes = _sorted([c for c in difference.changes if not c.still], sort)
    shown = changes if everything else changes[:ROWS]
    if shown:
        table = Table(box=None, pad_edge=False)
        for title in ("tensor", "kind", "norm", "change", "relative", "unchanged", "largest"):
            table.add_column(title, justify="left" if title in {"tensor", "kind"} else "right", overflow="fold", no_wrap=title != "tensor")
        for c in shown:
            share = c.unchanged / c.elements if c.elements else 0.0
            numbers = (f"{c.norm_after:.4g}", f"{c.change:.3g}", f"{c.relative:.2e}", f"{share:.0%}" if share >= 0.005 else "", f"{c.largest:.3g}")
            table.add_row(Text(c.name), c.kind.value, *numbers)
        console.print(table)
    if len(shown) < len(changes):
        say(f"... and {len(changes) - len(shown)} more that moved (--all)")
    for damage in difference.damage:
        say(f"damaged: {damage.path}: {damage.what}; lost: {damage.lost}")


def _summary(difference: Difference) -> list[str]:
    still = [c for c in difference.changes if c.still]
    lines = [f"{len(difference.changes) - len(still)} tensors moved, {len(still)} did not"]
    for c in difference.changes:
        if c.jump is not None:
            bit = f"; that is bit {c.jump.bit} flipped" if c.jump.bit is not None else ""
            went = f"element {list(c.jump.index)} went from {c.was:.6g} to {c.jump.value:.6g}"
            lines.append(f"!  {_named(c)}: {went}, every other moved by {c.jump.usual:.3g} or less{bit}")
        if c.non_finite_after > c.non_finite_before:
            lines.append(f"!  {_named(c)}: {c.non_finite_after} elements are not finite, {c.non_finite_before} were not before")
    groups = (
        ("did not move at all", [_named(c) for c in still]),
        ("appeared", [t.name for t in difference.appeared]),
        ("vanished", [t.name for t in difference.vanished]),
        ("have another shape", [f"{a.name} {list(a.shape)} -> {list(b.shape)}" for a, b in difference.reshaped]),
        ("have another type", [f"{a.name} {a.dtype} -> {b.dtype}" for a, b in difference.retyped]),
    )
    for title, names in groups:
        if names:
            more = f" and {len(names) - 10} more" if len(names) > 10 else ""
            lines.append(f"  {title}: {', '.join(names[:10])}{more}")
    return lines


def _named(change: TensorChange) -> str:
    return change.name if change.kind == "param" else f"{change.name} ({change.kind.value})"


def _sorted(changes: list[TensorChange], sort: str) -> list[TensorChange]:
    if sort == "name":
        return sorted(changes, key=lambda c: c.name)
    if sort == "change":
        return sorted(changes, key=lambda c: -c.change)
    return sorted(changes, key=lambda c: -c.relative if math.isfinite(c.relative) else -math.inf)
