"""What a checkpoint holds, for people and for scripts."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forensics.cli.options import output

if TYPE_CHECKING:
    from forensics.model.checkpoint import Checkpoint, TensorInfo, TensorKind, TensorStats

NUMBERS_BELOW = 256 << 20
"""Bytes of a checkpoint whose numbers are read without being asked for: less than a second."""

ROWS = 30
"""Tensors shown unless --all is given."""

SORTS = ("offenders", "norm", "max", "zeros", "size", "name", "file")

Stats = Mapping[tuple[str, "TensorKind"], "TensorStats"]


def inspect(path: Path, *, norms: bool | None, sort: str, everything: bool, json_out: str | None, quiet: bool) -> int:
    """Read a checkpoint, show it, and return the exit code: 2 where nothing of it could be read, 3 where a part could not."""
    from forensics.parsers.checkpoints.reading import read

    checkpoint = read(path)
    stats: Stats = {}
    damage = list(checkpoint.damage)
    counted = norms if norms is not None else checkpoint.size <= NUMBERS_BELOW
    if counted and checkpoint.tensors:
        from forensics.parsers.checkpoints.stats import measure

        measured = measure(checkpoint)
        stats = measured.stats
        damage += measured.damage
    if json_out:
        with output(json_out) as stream:
            json.dump(_document(checkpoint, stats, damage), stream, indent=1, allow_nan=False)
            stream.write("\n")
    if not quiet and json_out != "-":
        _show(checkpoint, stats, sort, everything, counted)
    if checkpoint.format == "unknown":
        sys.stderr.write(f"forensics: {path}: {damage[0].what}\n")
        return 2
    return 3 if damage else 0


def _document(checkpoint: Checkpoint, stats: Stats, damage: list[Any]) -> dict[str, Any]:
    """The contract of ``inspect --json`` on a checkpoint."""
    from forensics.model.codec import to_json

    return {
        "schema": "forensics/1",
        "checkpoint": {
            "path": checkpoint.path,
            "format": checkpoint.format,
            "step": checkpoint.step,
            "step_from": checkpoint.step_from,
            "optimizer_steps": to_json(checkpoint.optimizer_steps),
            "param_groups": [to_json(g) for g in checkpoint.param_groups],
            "scaler": to_json(checkpoint.scaler),
            "scheduler": to_json(checkpoint.scheduler),
            "rng": list(checkpoint.rng),
            "loader": to_json(checkpoint.loader),
            "facts": to_json(checkpoint.facts),
            "tensors": [_tensor(t, stats.get((t.name, t.kind))) for t in checkpoint.tensors],
            "classes": list(checkpoint.classes),
            "findings": list(checkpoint.findings),
            "files": list(checkpoint.files),
            "size": checkpoint.size,
        },
        "damage": to_json(damage),
    }


def _tensor(tensor: TensorInfo, stats: TensorStats | None) -> dict[str, Any]:
    from forensics.model.codec import to_json

    out: dict[str, Any] = {"name": tensor.name, "kind": tensor.kind.value, "shape": list(tensor.shape), "dtype": tensor.dtype, "key": tensor.key}
    numbers = ("norm", "max_abs", "non_finite", "zeros")
    out |= dict.fromkeys((*numbers, "outliers")) if stats is None else {k: to_json(getattr(stats, k)) for k in (*numbers, "outliers", "first_bad")}
    return out


def _show(checkpoint: Checkpoint, stats: Stats, sort: str, everything: bool, counted: bool) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False, markup=False)
    for line in _head(checkpoint):
        console.print(Text(line), soft_wrap=True)
    for finding in checkpoint.findings:
        console.print(Text(f"!  {finding}"))
    for remark in _remarks(checkpoint, stats):
        console.print(Text(f"!  {remark}"))
    tensors = _sorted(checkpoint.tensors, stats, sort)
    shown = tensors if everything else tensors[:ROWS]
    if shown:
        table = Table(box=None, pad_edge=False)
        for title in ("tensor", "kind", "shape", "type", *(("norm", "largest", "zeros", "bad") if stats else ())):
            right = title in {"norm", "largest", "zeros", "bad"}
            table.add_column(title, justify="right" if right else "left", overflow="fold", no_wrap=title != "tensor")
        for tensor in shown:
            cells = [Text(tensor.name), tensor.kind.value, "x".join(map(str, tensor.shape)) or "number", tensor.dtype]
            table.add_row(*cells, *(_numbers(stats.get((tensor.name, tensor.kind))) if stats else ()))
        console.print(table)
    if len(shown) < len(tensors):
        console.print(f"... and {len(tensors) - len(shown)} more tensors (--all; --sort {'|'.join(SORTS)})")
    if not counted and checkpoint.tensors:
        console.print("numbers were not read; --norms reads them")
    for damage in checkpoint.damage:
        console.print(Text(f"damaged: {damage.path}: {damage.what}; lost: {damage.lost}"))


def _head(checkpoint: Checkpoint) -> list[str]:
    total = sum(t.numel for t in checkpoint.tensors if t.kind == "param")
    lines = [f"{checkpoint.path}: {checkpoint.format}, {checkpoint.size:,} bytes, {len(checkpoint.tensors)} tensors, {total:,} parameters"]
    if checkpoint.step is not None:
        taken = checkpoint.optimizer_steps
        counted = "" if taken is None else f"; the optimizer has counted {taken[0]}" + (f" to {taken[1]}" if taken[1] != taken[0] else "")
        lines.append(f"  step {checkpoint.step} (from {checkpoint.step_from}){counted}")
    for n, group in enumerate(checkpoint.param_groups):
        named = (("lr", group.lr), ("betas", group.betas), ("eps", group.eps), ("weight decay", group.weight_decay))
        settings = [f"{k} {v}" for k, v in named if v is not None]
        lines.append(f"  group {n}: {', '.join(settings)}, {len(group.params)} parameters")
    if checkpoint.scaler is not None:
        lines.append(f"  loss scaler: {_short(checkpoint.scaler)}")
    if checkpoint.scheduler is not None:
        lines.append(f"  scheduler: {_short(checkpoint.scheduler)}")
    lines.append(f"  random generators: {', '.join(checkpoint.rng) or 'none saved'}")
    if checkpoint.loader is not None:
        lines.append(f"  data: {_short(checkpoint.loader)}")
    if checkpoint.classes:
        more = f" and {len(checkpoint.classes) - 8} more" if len(checkpoint.classes) > 8 else ""
        lines.append(f"  classes named in it, none of them made: {', '.join(checkpoint.classes[:8])}{more}")
    return lines


def _short(facts: Mapping[str, object]) -> str:
    text = ", ".join(f"{k} {v}" for k, v in facts.items() if not isinstance(v, Mapping)) or "saved"
    return text if len(text) <= 200 else text[:197] + "..."


def _numbers(stats: TensorStats | None) -> tuple[str, ...]:
    if stats is None:
        return ("not read", "", "", "")
    share = stats.zeros / stats.elements if stats.elements else 0.0
    return (f"{stats.norm:.4g}", f"{stats.max_abs:.4g}", f"{share:.0%}" if share >= 0.005 else "", str(stats.non_finite or ""))


def _remarks(checkpoint: Checkpoint, stats: Stats) -> list[str]:
    """What is wrong with the numbers, in words."""
    if not stats:
        return []
    from forensics.parsers.checkpoints.health import faults_of
    from forensics.parsers.checkpoints.replicas import unequal_replicas

    known = [(t, stats[t.name, t.kind]) for t in checkpoint.tensors if (t.name, t.kind) in stats]
    return [f.text for f in (*unequal_replicas(checkpoint), *(f for t, found in known for f in faults_of(t.name, t.kind, found)))]


def _sorted(tensors: tuple[TensorInfo, ...], stats: Stats, sort: str) -> list[TensorInfo]:
    """Offenders first: what is not finite, then stray elements, then the largest peak against the rest of the tensor."""
    if sort == "file" or (sort in {"offenders", "norm", "max", "zeros"} and not stats):
        return list(tensors)
    if sort == "name":
        return sorted(tensors, key=lambda t: t.name)
    if sort == "size":
        return sorted(tensors, key=lambda t: -t.numel)
    keys: dict[str, Callable[[TensorStats], tuple[float, ...]]] = {
        "offenders": lambda s: (-s.non_finite, -max((abs(o.value) / o.usual for o in s.outliers), default=0.0), -(s.max_abs / s.rms if s.rms else 0.0)),
        "norm": lambda s: (-s.norm,),
        "max": lambda s: (-s.max_abs,),
        "zeros": lambda s: (-s.zeros / max(s.elements, 1),),
    }

    def order(tensor: TensorInfo) -> tuple[float, ...]:
        found = stats.get((tensor.name, tensor.kind))
        return (1.0,) if found is None else (0.0, float(sort == "offenders" and tensor.kind in {"other", "buffer"}), *keys[sort](found))

    return sorted(tensors, key=order)
