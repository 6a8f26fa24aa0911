"""DeepSpeed's ZeRO: every rank keeps its share of one flat array per group; here the shares are cut into parameters again.

Stages 1 and 2: the shares of all ranks, one after another, are the group's parameters one after another. Stage 3: every
parameter is cut into equal shares, and a rank's array holds its share of each parameter one after another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from forensics.model.checkpoint import Piece
from forensics.model.damage import Damage
from forensics.parsers.checkpoints.opened import Opened
from forensics.parsers.checkpoints.tree import ITEM_BYTES, Tensor, children, is_container

MASTERS = ("single_partition_of_fp32_groups", "fp32_flat_groups")
"""Where the stages keep the float32 weights of a rank."""

ENGINE = (
    *("global_steps", "global_samples", "skipped_steps", "dp_world_size", "mp_world_size"),
    *("ds_version", "lr_scheduler", "data_sampler", "epoch", "iteration"),
)
"""What is kept of the engine's state."""


Shapes = Mapping[str, tuple[int, ...]]
"""Name -> shape of the parameters of a group."""


def tree(models: Sequence[Opened], optims: Sequence[Opened], sources: list[Opened]) -> dict[str, Any]:
    """One tree out of the files of the ranks, shaped as a single process would have saved it."""
    out: dict[str, Any] = {}
    engine = next((m.tree for m in models if isinstance(m.tree, Mapping)), {})
    out.update({k: v for k, v in engine.items() if isinstance(k, str) and (k in ENGINE or k.endswith("rng_state"))})
    weights = engine.get("module")
    if isinstance(weights, Mapping):
        out["model"] = {k: v for k, v in weights.items() if not (isinstance(v, Tensor) and v.numel == 0)}
    shapes = _shapes(engine.get("param_shapes"))
    states = [o.tree.get("optimizer_state_dict") for o in optims if isinstance(o.tree, Mapping)]
    ranks = [dict(children(s)) for s in states if is_container(s)]
    if not ranks:
        plain = engine.get("optimizer")
        if isinstance(plain, Mapping):
            out["optimizer"] = plain
        return out
    scaler = ranks[0].get("loss_scaler")
    if scaler is not None:
        out["loss_scaler"] = dict(children(scaler)) or scaler
    out["optimizer"] = _optimizer(ranks, shapes, out, sources)
    return out


def _shapes(value: Any) -> list[dict[str, tuple[int, ...]]]:
    """Per group: name -> shape, in the order of the flat array."""
    groups = value if isinstance(value, (list, tuple)) else [value] if isinstance(value, Mapping) else []
    return [{str(k): v for k, v in g.items() if _is_shape(v)} for g in groups if isinstance(g, Mapping)]


def _is_shape(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(n, int) and 0 <= n < 2**62 for n in value)


def _optimizer(ranks: Sequence[Mapping[str, Any]], shapes: Sequence[Shapes], out: dict[str, Any], sources: list[Opened]) -> dict[str, Any]:
    third = "fp32_flat_groups" in ranks[0] or ranks[0].get("zero_stage") == 3
    bases = [_base(r) for r in ranks]
    groups = [dict(children(g)) for g in _items(bases[0].get("param_groups"))]
    state: dict[str, Any] = {}
    short: list[str] = []
    for number, names in enumerate(shapes):
        slots = [dict(children(v)) for b in bases if (v := _nth(b.get("state"), number)) is not None]
        for slot in ("exp_avg", "exp_avg_sq", "momentum_buffer"):
            flats = [s[slot] for s in slots if isinstance(s.get(slot), Tensor)]
            for name, tensor in _cut(flats, names, third, short).items():
                state.setdefault(name, {})[slot] = tensor
        steps = [s["step"] for s in slots if s.get("step") is not None]
        for name in names:
            if steps:
                state.setdefault(name, {})["step"] = steps[0]
        masters = [m for r in ranks if isinstance(m := _nth(next((r[k] for k in MASTERS if k in r), None), number), Tensor)]
        for name, tensor in _cut(masters, names, third, short).items():
            home = out.setdefault("model", {})
            if name in home:
                state.setdefault(name, {})["master"] = tensor
            else:
                home[name] = tensor
        if number < len(groups):
            groups[number]["params"] = list(names)
    if short and sources:
        sources[0].damage.append(Damage(str(sources[0].path.parent), "shares of ranks are missing", f"{len(short)} tensors: {', '.join(short[:5])}"))
    return {"state": state, "param_groups": groups}


def _base(rank: Mapping[str, Any]) -> Mapping[str, Any]:
    """The state of the optimizer that ZeRO wraps."""
    for key in ("base_optimizer_state", "optimizer_state_dict"):
        found = dict(children(rank.get(key))) if is_container(rank.get(key)) else {}
        if "state" in found:
            return found
    return {}


def _items(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _nth(value: Any, number: int) -> Any:
    if isinstance(value, (list, tuple)):
        return value[number] if number < len(value) else None
    return dict(children(value)).get(str(number)) if is_container(value) else None


def _cut(flats: Sequence[Tensor], names: Mapping[str, tuple[int, ...]], third: bool, short: list[str]) -> dict[str, Tensor]:
    """Parameters as pieces of the ranks' flat arrays."""
    if not flats or not all(f.pieces and len(f.shape) == 1 for f in flats):
        return {}
    out = {}
    at = 0
    for name, shape in names.items():
        tensor = Tensor(None, flats[0].dtype, shape, ())
        total = tensor.numel
        pieces = _third(flats, at, total) if third else _first(flats, at, total)
        at += -(-total // len(flats)) if third else total
        tensor.pieces = tuple(pieces)
        if sum(p.shape[0] for p in pieces) < total:
            short.append(name)
        out[name] = tensor
    return out


def _first(flats: Sequence[Tensor], at: int, total: int) -> list[Piece]:
    """Elements ``at`` to ``at + total`` of the arrays one after another."""
    pieces, before, done = [], 0, 0
    for flat in flats:
        low, high = max(at, before), min(at + total, before + flat.shape[0])
        if low < high:
            pieces.append(_slice(flat, low - before, high - low, done))
            done += high - low
        before += flat.shape[0]
    return pieces


def _third(flats: Sequence[Tensor], at: int, total: int) -> list[Piece]:
    """A share of each array, the last ones padded."""
    share = -(-total // len(flats))
    pieces = []
    for rank, flat in enumerate(flats):
        start = rank * share
        count = min(share, total - start)
        if count > 0 and at + count <= flat.shape[0]:
            pieces.append(_slice(flat, at, count, start))
    return pieces


def _slice(flat: Tensor, at: int, count: int, start: int) -> Piece:
    """``start`` is the place in the parameter as if it were flat."""
    assert flat.pieces
    whole = flat.pieces[0]
    return Piece(whole.path, whole.offset + at * ITEM_BYTES[flat.dtype], (count,), (start,), None, whole.swapped, whole.data)
