"""R14: one component changed at a time, through hooks: capped logits, normalised queries and keys, frozen embeddings, no dropout."""

from __future__ import annotations

import torch

from forensics.replay.child.bench import Bench, shown
from forensics.replay.child.change import Change
from forensics.replay.wire import Outcome

ID, WHAT = "R14", "one component changed at a time"

SOFTCAP = 30.0
"""Cap on attention logits, in logits; published values lie between 30 and 50."""


def run(bench: Bench) -> Outcome:
    """Try what applies to this model."""
    result: dict[str, object] = {}
    calm: list[str] = []
    for name, change in _trials(bench).items():
        rows = bench.window(change)
        returned = not bench.calm(rows)
        result[name] = {"returned": returned, **shown(rows)}
        if not returned:
            calm.append(name)
    if not result:
        return Outcome(ID, WHAT, {}, "not done: the model has no component that this can reach (attention, embeddings, dropout)")
    return Outcome(ID, WHAT, result, f"calm with {', '.join(calm)}" if calm else "none of them matters", not calm, calm[0] if calm else None)


def _trials(bench: Bench) -> dict[str, Change]:
    model = bench.session.model
    out: dict[str, Change] = {}
    if bench.slide is not None and bench.slide.attention:
        out[f"softcap {SOFTCAP:g}"] = Change(softcap=SOFTCAP)
        out["QK-norm"] = Change(qk_norm=True)
    tables = tuple(f"{n}." for n, m in model.named_modules() if isinstance(m, torch.nn.Embedding))
    if tables:
        out["embeddings frozen"] = Change(frozen=tables)
    if any(isinstance(m, torch.nn.modules.dropout._DropoutNd) and m.p > 0 for m in model.modules()):
        out["dropout off"] = Change(calm=True)
    return out
