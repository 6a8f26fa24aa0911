"""From what the experiments gave to a verdict: the matrix of the replay protocol, judged against the noise band."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from forensics.replay.host import Replay
from forensics.replay.wire import Request

DATA = (
    "bad_batch_outlier",
    "nan_in_input",
    "loss_mask_error",
    "degenerate_data_pocket",
    "repeated_ngram_docs",
    "long_sequence_outlier",
    "label_noise_or_shuffle",
)
STEP_SIZE = ("lr_rewarm_or_jump", "lr_too_high", "lr_warmup_missing", "lr_peak_instability", "sharpness_edge", "grad_clip_missing", "resume_scheduler_lost")
STATE = ("adam_v_stale", "attention_logit_growth", "output_logit_divergence", "residual_growth", "gradient_explosion_depth", "momentum_contamination")
PRECISION = ("fp16_grad_overflow", "fp16_activation_overflow", "fp8_outlier", "numeric_domain_error", "bf16_update_stall")

JUMP = 1.5
"""A learning rate this many times the one before the event has jumped."""

LOST = {
    "the data": "resume_data_or_rng_lost",
    "the schedule": "resume_scheduler_lost",
    "a fresh optimizer": "resume_optimizer_lost",
    "momentum": "resume_optimizer_lost",
    "the second moment": "resume_optimizer_lost",
}
"""Beginning of what a resumed run went on with -> the cause."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A verdict with its reason. ``samples`` are ids, or places in the batch where the recipe has no ids."""

    verdict: str
    why: str
    cause: str | None = None
    reproduced: bool | None = None
    samples: tuple[Any, ...] = ()
    module: str | None = None
    tensor: str | None = None
    tokens: tuple[Mapping[str, Any], ...] = ()
    checkpoint: str | None = None
    calm_with: tuple[str, ...] = ()
    limits: tuple[str, ...] = field(default=())


def conclude(request: Request, replay: Replay, suspects: Sequence[str] = ()) -> Conclusion:
    """Judge. ``suspects`` are the case's hypotheses, best first: among the causes of one verdict the case decides."""
    first = replay.outcomes.get("R1")
    if first is None:
        return Conclusion("undetermined", replay.failed or "the replay ended before its first experiment did")
    audit: Mapping[str, Any] = replay.outcomes.get("R11", {}).get("result", {})
    if not first["result"].get("tracks", True):
        return Conclusion("not_reproduced", "the calm steps before the event are not those of the log: this is not a replay of the same run", reproduced=False)
    lost = audit.get("agrees_with")
    if lost:
        cause = next((c for start, c in LOST.items() if lost.startswith(start)), None)
        return Conclusion("lost_state", f"the resumed run went on with {lost}", cause, None, checkpoint=audit.get("checkpoint"))
    wrong = _wrong_file(audit)
    if wrong is not None and audit.get("as_saved"):
        why = f"the run resumed from a file that is not what it had saved: {wrong} differs"
        return Conclusion("state", why, "resume_weights_wrong", replay.reproduced, tensor=wrong, checkpoint=audit.get("checkpoint"))
    if not request.target.is_event:
        return _without_event(replay, first["result"])
    if replay.reproduced is None:
        parted = first["result"].get("parted")
        if parted is None:
            return Conclusion("none", "every step agrees with the log: the event is in the log alone, not in the training", "metric_artifact", None)
        return Conclusion("undetermined", f"the replay parts from the log at step {parted}, and nothing that was tried gives the logged steps", None, None)
    if not replay.reproduced:
        return _calm(request, first["result"], audit)
    return _returned(request, replay, suspects)


def _wrong_file(audit: Mapping[str, Any]) -> str | None:
    """The tensor in which the checkpoint that was resumed from is not what the run had arrived at."""
    against = audit.get("saved_against_replayed", {})
    for key in ("non_finite", "strays", "different"):
        for item in against.get(key, ())[:1]:
            return str(item["tensor"] if isinstance(item, Mapping) else item)
    return None


def _without_event(replay: Replay, first: Mapping[str, Any]) -> Conclusion:
    if replay.reproduced:
        return Conclusion("none", "every step agrees with the log", None, True)
    return Conclusion("not_reproduced", f"there is no event, and the replay parts from the log at step {first.get('parted')}", None, False)


def _calm(request: Request, first: Mapping[str, Any], audit: Mapping[str, Any]) -> Conclusion:
    parted = first.get("parted")
    if not first.get("calm_steps"):
        return Conclusion("not_reproduced", "the event does not come back, and no calm steps show that the replay is faithful", None, False)
    if parted is not None and parted < request.target.onset - 2:
        return Conclusion("not_reproduced", f"the replay parts from the log at step {parted}, before the event", None, False)
    stray = audit.get("stray")
    tensor = stray["tensor"] if stray else (audit.get("non_finite") or [None])[0]
    seen = f"; the next checkpoint shows it in {tensor}" if tensor else ""
    why = f"the calm steps are those of the run and the event does not come back{seen}"
    return Conclusion("transient_hardware", why, "sdc_transient", False, tensor=tensor, checkpoint=audit.get("after"))


def _returned(request: Request, replay: Replay, suspects: Sequence[str]) -> Conclusion:
    back = {k: o.get("returned") for k, o in replay.outcomes.items()}
    calm = tuple(o["calm_with"] for k, o in replay.outcomes.items() if o.get("calm_with"))
    samples = replay.outcomes.get("R4", {}).get("result", {})
    module = (replay.slide or {}).get("first_bad") or {}
    place = module.get("module")
    common: dict[str, Any] = {"reproduced": True, "calm_with": calm, "module": place}
    if back.get("R5") is False:
        formats = ", ".join(replay.outcomes["R5"]["result"].get("formats", [])) or "half precision"
        where = f", first in the {module['where']} pass of {place} ({module['operation']}, {module['dtype']})" if module else ""
        return Conclusion("precision", f"in float32 the event is gone; the step computes in {formats}{where}", _precision(replay, suspects), **common)
    if back.get("R9") is False:
        return Conclusion("persistent_hardware", "another device is calm on the same steps", "sdc_persistent", **common)
    if back.get("R2"):
        ids = tuple(c["id"] for c in samples.get("culprits", ()))
        tokens = tuple(t for b in samples.get("batches", ()) for t in b.get("tokens", ()))
        return Conclusion("data", _data(ids), _data_cause(samples, suspects), samples=ids, tokens=tokens, **common)
    if back.get("R3") is False and back.get("R2") is None and samples.get("culprits"):
        ids = tuple(c["id"] for c in samples["culprits"])
        return Conclusion("data", _data(ids) + "; no earlier state was there to try them on", _data_cause(samples, suspects), samples=ids, **common)
    if back.get("R3") is False:
        why = "other batches are calm on this state, and these batches are harmless on an earlier one"
        if back.get("R2") is None:
            return Conclusion(
                "undetermined", "other batches are calm on this state; without an earlier state, data and state cannot be told apart", None, **common
            )
        return Conclusion("batch_state", why, "batch_state_interaction", **common)
    if back.get("R3") is None:
        return Conclusion("undetermined", "the event comes back; the experiments that tell why were not done", None, **common)
    return _state(request, replay, suspects, back, common)


def _state(request: Request, replay: Replay, suspects: Sequence[str], back: Mapping[str, Any], common: Mapping[str, Any]) -> Conclusion:
    by_lr = back.get("R6") is False and replay.outcomes["R6"].get("calm_with")
    if by_lr:
        return Conclusion("state_step_size", f"other batches bring it too, and it is gone with {by_lr}", _step_size(request, replay, suspects), **common)
    if back.get("R8") is False:
        part = replay.outcomes["R8"]["calm_with"]
        stale = "adam_v_stale" if any(word in part for word in ("second moment", "beta2")) else "momentum_contamination"
        return Conclusion("state", f"other batches bring it too, and it is gone with {part}", stale if "eps" not in part else _among(STATE, suspects), **common)
    if back.get("R14") is False:
        part = replay.outcomes["R14"]["calm_with"]
        cause = "attention_logit_growth" if part.startswith(("softcap", "QK")) else _among(STATE, suspects)
        return Conclusion("state", f"other batches bring it too, and it is gone with {part}", cause, **common)
    return Conclusion(
        "state", "other batches bring it too, whatever the step size: the state was broken before this checkpoint", _among(STATE, suspects), **common
    )


def _data(ids: Sequence[Any]) -> str:
    named = f": samples {', '.join(map(str, ids[:8]))}" if ids else ""
    return f"the same batches do it on an earlier state too{named}"


def _data_cause(samples: Mapping[str, Any], suspects: Sequence[str]) -> str:
    if any(not b.get("finite_inputs", True) for b in samples.get("batches", ())):
        return "nan_in_input"
    return _among(DATA, suspects) or DATA[0]


def _precision(replay: Replay, suspects: Sequence[str]) -> str | None:
    formats = replay.outcomes["R5"]["result"].get("formats", [])
    scale = replay.outcomes.get("R10", {}).get("result", {}).get("finite", {})
    if "float16" in formats:
        if scale and any(scale.values()) and not all(scale.values()) and scale.get("2^0"):
            return "fp16_grad_overflow"
        return "fp16_activation_overflow"
    return _among(PRECISION, suspects)


def _step_size(request: Request, replay: Replay, suspects: Sequence[str]) -> str:
    lr = {r["step"]: r["lr"] for r in replay.rows if r.get("lr")} or dict(request.logged.get("lr", {}))
    before = [v for s, v in lr.items() if s < request.target.onset - 1]
    inside = [v for s, v in lr.items() if request.target.onset - 1 <= s <= request.target.last]
    if before and inside and max(inside) > JUMP * before[-1]:
        return "lr_rewarm_or_jump"
    return _among(STEP_SIZE, suspects) or "lr_too_high"


def _among(family: Sequence[str], suspects: Sequence[str]) -> str | None:
    return next((s for s in suspects if s in family), None)
