"""R4: the loss of every sample and token of the event's batches, and what the gradient is without each sample."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from forensics.replay.child.bench import Bench
from forensics.replay.child.microscope import gradient_norm
from forensics.replay.child.session import Session, parts, samples, tensors
from forensics.replay.wire import Outcome

ID, WHAT = "R4", "the loss of every sample of the event's batches"

FAR = 6.0
"""Standard deviations (robust) above the samples of calm batches from which a sample stands out."""

BEYOND = 1.25
"""And this many times as far from the typical loss as the worst of those: losses of samples have heavy tails."""

MOST_STEPS, MOST_SAMPLES = 6, 4096
"""Batches of the event, and samples of one, that are looked at."""

REFERENCES = 12
"""Calm batches whose samples are the yardstick."""

LEFT_OUT = 64
"""Batches up to this size have the gradient norm without each sample computed."""

GRAM = 4
"""Tokens of an n-gram whose repeats are counted."""

MOST_TOKENS = 12


def run(bench: Bench) -> Outcome:
    """Losses per sample on the state before the event, against those of calm batches on the same state."""
    session, target = bench.session, bench.target
    first, last = max(target.onset - 1, bench.first), min(target.last + 1, target.onset + MOST_STEPS - 1)
    session.put(bench.before())
    reference: list[float] = []
    repeats: list[float] = []
    for step in range(max(0, bench.first - REFERENCES), bench.first):
        batch = session.batch(step)
        reference += [x for x in losses(session, batch) if math.isfinite(x)]
        repeats.append(repeated(batch))
    if len(reference) < 3:
        return Outcome(ID, WHAT, {}, "not done: the batch cannot be taken apart into samples (give the recipe losses(model, batch))")
    centre = statistics.median(reference)
    spread = max(1.4826 * statistics.median(abs(x - centre) for x in reference), 1e-3 * abs(centre), 1e-12)
    limit = centre + max(FAR * spread, BEYOND * (max(reference) - centre))
    result: dict[str, Any] = {"typical": centre, "spread": spread, "limit": limit, "batches": []}
    culprits: list[dict[str, Any]] = []
    for step in range(first, last + 1):
        batch = session.batch(step)
        values = losses(session, batch)[:MOST_SAMPLES]
        ids = session.recipe.ids(step)
        row: dict[str, Any] = {"step": step, "losses": values, "repeated_ngrams": repeated(batch), "finite_inputs": finite(batch)}
        row["ids"] = ids if ids is not None and len(ids) == len(values) else None
        out = [i for i, x in enumerate(values) if bench.stands_out_at(step) and (not math.isfinite(x) or x > limit)]
        names = row["ids"] or list(range(len(values)))
        culprits += [{"step": step, "index": i, "id": names[i], "loss": values[i]} for i in out]
        if out and len(values) <= LEFT_OUT:
            row["gradient_norm"], row["gradient_norm_without"] = left_out(session, batch, len(values))
            row["tokens"] = tokens(session, batch, out)
        result["batches"].append(row)
    result |= {"culprits": culprits, "usual_repeated_ngrams": statistics.median(repeats) if repeats else None}
    return Outcome(ID, WHAT, result, _reading(culprits, result, target.onset))


def _reading(culprits: list[dict[str, Any]], result: dict[str, Any], onset: int) -> str:
    if not result["batches"]:
        return "no batch to look at"
    if not all(row["finite_inputs"] for row in result["batches"]):
        step = next(row["step"] for row in result["batches"] if not row["finite_inputs"])
        return f"the batch of step {step} holds values that are not finite"
    if not culprits:
        return f"no sample of the batches around step {onset} stands out"
    size = len(next(r for r in result["batches"] if r["step"] == culprits[0]["step"])["losses"])
    named = ", ".join(str(c["id"]) for c in culprits[:8])
    return f"{len(culprits)} samples stand out (typical loss {result['typical']:.3g}): {named}; the batch of step {culprits[0]['step']} has {size}"


def losses(session: Session, batch: Any) -> list[float]:
    """The loss of each sample, the recipe's way or one sample at a time. Shape (samples,)."""
    with torch.no_grad():
        if session.recipe.has("losses"):
            return [float(x) for x in session.recipe.inner.losses(session.model, batch).detach().flatten().float()]
        size = samples(batch)
        try:
            return [float(session.loss(parts(batch, i, i + 1, size))) for i in range(min(size, MOST_SAMPLES))]
        except (RuntimeError, ValueError, IndexError, TypeError):
            return []


def finite(batch: Any) -> bool:
    """Whether every value that a batch feeds is finite."""
    return all(bool(torch.isfinite(t).all()) for t in tensors(batch) if t.is_floating_point())


def left_out(session: Session, batch: Any, size: int) -> tuple[float, list[float]]:
    """Gradient norm of a batch, and without each sample. Shape (samples,)."""
    whole = gradient_norm(session, batch)
    out = []
    for i in range(size):
        rest = _without(batch, i, size)
        out.append(gradient_norm(session, rest))
    return whole, out


def _without(batch: Any, index: int, size: int) -> Any:
    if isinstance(batch, torch.Tensor):
        return torch.cat([batch[:index], batch[index + 1 :]]) if batch.dim() and batch.shape[0] == size else batch
    if isinstance(batch, dict):
        return {k: _without(v, index, size) for k, v in batch.items()}
    if isinstance(batch, (list, tuple)):
        cut = [_without(v, index, size) for v in batch]
        return type(batch)(*cut) if hasattr(batch, "_fields") else type(batch)(cut)
    return batch


class _PerToken(TorchFunctionMode):
    """Keeps the unreduced cross entropy and its targets."""

    def __init__(self) -> None:
        super().__init__()
        self.losses: Any = None
        self.targets: Any = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") == "cross_entropy" and self.losses is None and len(args) >= 2 and not args[1].is_floating_point():
            plain = {k: v for k, v in kwargs.items() if k in ("weight", "ignore_index", "label_smoothing")}
            with torch._C.DisableTorchFunction():
                self.losses = func(args[0], args[1], reduction="none", **plain).detach().flatten().float()
            self.targets = args[1].detach().flatten()
        return func(*args, **kwargs)


def tokens(session: Session, batch: Any, out: list[int]) -> list[dict[str, Any]]:
    """The tokens with the highest loss in the samples that stand out; empty where the loss is no cross entropy over tokens."""
    watch = _PerToken()
    with torch.no_grad(), watch:
        session.loss(batch)
    size = samples(batch)
    if watch.losses is None or not size or len(watch.losses) % size or len(watch.losses) == size:
        return []
    each = len(watch.losses) // size
    rows = []
    for sample in out:
        part = watch.losses[sample * each : (sample + 1) * each]
        for value, place in zip(*(x.tolist() for x in torch.topk(torch.nan_to_num(part, nan=math.inf), min(4, each))), strict=True):
            rows.append({"sample": sample, "position": place, "token": int(watch.targets[sample * each + place]), "loss": value})
    return sorted(rows, key=lambda r: -r["loss"])[:MOST_TOKENS]


def repeated(batch: Any) -> float:
    """Share of the n-grams of token ids that occur more than once in a sample; 0 where the batch holds no token ids."""
    ids = next((t for t in tensors(batch) if t.dim() == 2 and not t.is_floating_point() and t.shape[1] > GRAM), None)
    if ids is None:
        return 0.0
    shares = []
    for row in ids[:256].tolist():
        grams = Counter(tuple(row[i : i + GRAM]) for i in range(len(row) - GRAM + 1))
        shares.append(sum(n for n in grams.values() if n > 1) / sum(grams.values()))
    return statistics.fmean(shares)
